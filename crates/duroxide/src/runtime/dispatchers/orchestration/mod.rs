//! One turn: fetch, admit, replay, commit.

mod admit;
mod resolve;
mod collisions;
mod commit;
mod poison;
mod pardon;
mod warm;
mod report;

use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide_core::model::{INITIAL_EXECUTION_ID, WorkItem};
use duroxide_core::replay::{
    HistoryManager, Suspended, Turn, TurnOutcome, WorkItemReader, run_turn_and_keep,
};
use tokio_util::sync::CancellationToken;

use self::admit::{Admission, admit};
use self::commit::Aside;
pub(crate) use self::pardon::Pardons;
use super::fetch::{Lead, Pace};
use super::lease::{Lease, LeaseKeeper};
use crate::providers::{
    DispatcherCapabilityFilter, FetchedTurn, OrchestrationItem, ProviderError, TurnCommit,
};
use crate::runtime::builtin::TurnSystemCalls;
use crate::runtime::catch_panic::catch_panic;
use crate::runtime::node::{Kind, Node, log_storage_error};
use crate::runtime::observability::targets;

/// What the slots of this dispatcher share.
pub(crate) struct Dispatcher {
    pub(crate) node: Arc<Node>,
    pub(crate) leases: Arc<LeaseKeeper>,
    pub(crate) lead: Lead,
    pub(crate) filter: DispatcherCapabilityFilter,
    pub(crate) pardons: Pardons,
}

/// A locked turn on its way through the dispatcher.
struct Batch {
    item: OrchestrationItem,
    lock_token: String,
    /// How often it has been tried, from 1; not counting what the store is to blame for.
    attempt: u32,
    /// Id of the last event of the current execution; 0 if it has none.
    last_event_id: u64,
    history_included: bool,
    worker_id: String,
    lease: Lease,
}

impl Batch {
    fn instance(&self) -> &str {
        &self.item.instance
    }
}

impl Dispatcher {
    /// One slot: wait for the lead, fetch, pass the lead on, process; until told to stop.
    pub(crate) async fn run_slot(self: Arc<Self>, worker_id: String, stop: CancellationToken) {
        let mut pace = Pace::default();
        let options = &self.node.options;
        let min_interval = options.dispatcher_min_poll_interval;
        loop {
            let fetched = {
                let Some(Some(_lead)) = super::fetch::or_stop(&stop, self.lead.take()).await else {
                    return;
                };
                let fetch = self.node.store.fetch_turn(
                    options.orchestrator_lock_timeout,
                    options.dispatcher_long_poll_timeout,
                    Some(&self.filter),
                );
                pace.fetch(&stop, min_interval, log_fetch_error, fetch).await
            };
            match fetched {
                None => return,
                Some(None) => {}
                Some(Some(turn)) => self.process_guarded(turn, &worker_id).await,
            }
        }
    }

    /// A panic in here would be a bug of ours; it costs this turn a retry, not the slot its life.
    async fn process_guarded(self: &Arc<Self>, turn: FetchedTurn, worker_id: &str) {
        let began = Instant::now();
        self.node.metrics.record_orch_dispatcher_items_fetched(1);
        let FetchedTurn { item, lock_token, last_event_id, history_included, .. } = turn;
        let instance = item.instance.clone();
        let batch = Batch {
            lease: self.leases.hold(&lock_token),
            attempt: self.pardons.counted(&instance, turn.attempt_count),
            item,
            lock_token,
            last_event_id,
            history_included,
            worker_id: worker_id.to_owned(),
        };
        if let Err(panic) = catch_panic(self.process(batch)).await {
            tracing::error!(target: targets::ORCHESTRATION_DISPATCHER, %instance, %panic,
                "turn processing panicked; the turn will be repeated when its lock expires");
        }
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.node.metrics.record_orch_dispatcher_processing_duration(took_ms);
    }

    /// One fetched batch, from admission to commit.
    async fn process(self: &Arc<Self>, mut batch: Batch) {
        self.delay_for_tests(batch.instance()).await;
        if let Some(suspended) = self.take_warm(&batch) {
            return self.run_warm(batch, suspended).await;
        }
        if !self.read_history(&mut batch).await {
            return;
        }
        let history = HistoryManager::from_owned(std::mem::take(&mut batch.item.history));
        let range = self.node.options.supported_range();
        match admit(&batch, &history, &self.node.options, &range) {
            Admission::Run => self.run(batch, history).await,
            Admission::Retry { after, why } => self.abandon(&batch, after, &why).await,
            Admission::Discard => self.discard(batch, &history).await,
            Admission::Poison => self.poison(batch, history).await,
        }
    }

    async fn run(self: &Arc<Self>, mut batch: Batch, history: HistoryManager) {
        let notices = self.collision_notices(&batch, &history).await;
        let messages = std::mem::take(&mut batch.item.messages);
        let reader = WorkItemReader::from_owned(messages, &history, &batch.item.instance);
        let Some((version, handler)) = self.resolve(&batch.item, &reader) else {
            return self.back_off_unregistered(&batch, &reader).await;
        };
        let is_successor = reader.is_continue_as_new;
        let execution_id = batch.item.execution_id + u64::from(is_successor);
        let history = if is_successor { Vec::new() } else { history.into_history() };
        let now_ms = self.node.now_ms();
        let aside = Aside::of(&reader, &history, execution_id, &version)
            .with_notices(notices)
            .with_remembered(self.node.facts.get(&batch.item.instance, execution_id));
        let turn = Turn {
            instance: batch.item.instance.clone(),
            execution_id,
            parent_execution_fallback: self.parent_execution_fallback(&reader).await,
            history,
            messages: reader,
            handler,
            version,
            kv_snapshot: std::mem::take(&mut batch.item.kv_snapshot),
            now_ms,
            system_calls: Some(Box::new(TurnSystemCalls { node: Arc::clone(&self.node), now_ms })),
            foreign_wait: self.node.tuning.foreign_wait,
        };
        let (outcome, next) = run_turn_and_keep(turn);
        self.report_before_commit(&batch, &outcome, &aside);
        self.commit_and_keep(batch, outcome, aside, next).await;
    }

    /// Commits a turn, and keeps the instance in memory for its next one if that worked.
    async fn commit_and_keep(
        &self,
        batch: Batch,
        outcome: TurnOutcome,
        aside: Aside,
        next: Option<Suspended>,
    ) {
        let instance = batch.item.instance.clone();
        let committed = self.commit(batch, outcome, aside).await;
        if let Some(next) = next.filter(|_| committed && self.node.warm.is_on()) {
            self.node.warm.keep(&instance, next);
        }
    }

    /// A terminal instance: the batch is consumed, nothing happens but notices (R1.26).
    async fn discard(&self, batch: Batch, history: &HistoryManager) {
        let notices = self.collision_notices(&batch, history).await;
        self.consume(&batch, notices).await;
    }

    /// Consumes a batch that changes nothing in its instance.
    async fn consume(&self, batch: &Batch, orchestrator_items: Vec<WorkItem>) {
        let execution_id = batch.item.execution_id;
        let commit = TurnCommit { execution_id, orchestrator_items, ..Default::default() };
        if let Err(rejected) = self.commit_while_leased(batch, commit).await {
            self.give_back(batch, rejected.error).await;
        }
    }

    /// Gives the batch back, the attempt counted.
    async fn abandon(&self, batch: &Batch, after: Duration, why: &str) {
        tracing::debug!(target: targets::ORCHESTRATION_DISPATCHER, instance = %batch.instance(),
            attempt_count = batch.attempt, ?after, why, "turn given back");
        let store = &self.node.store;
        let result = store.abandon_orchestration_item(&batch.lock_token, Some(after), false).await;
        log_storage_error(batch.instance(), result);
    }

    async fn back_off_unregistered(&self, batch: &Batch, reader: &WorkItemReader) {
        let options = &self.node.options;
        let name = &reader.orchestration_name;
        let backoff = options.unregistered_backoff.delay(batch.attempt);
        self.node.announce_unknown(Kind::Orchestration, name, "the store");
        self.node.announce_unknown_version(name, reader.version.as_deref());
        tracing::warn!(
            target: targets::ORCHESTRATION_DISPATCHER,
            instance = %batch.instance(),
            orchestration = %name,
            version = %reader.version.as_deref().unwrap_or("by policy"),
            attempt_count = batch.attempt,
            max_attempts = options.max_attempts,
            remaining_attempts = options.max_attempts.saturating_add(1).saturating_sub(batch.attempt),
            backoff_secs = backoff.as_secs_f64(),
            "orchestration not registered here, backing off"
        );
        self.abandon(batch, backoff, "orchestration not registered").await;
    }

    /// The parent's current execution, for starts that do not name it (R3.116).
    async fn parent_execution_fallback(&self, reader: &WorkItemReader) -> u64 {
        match (&reader.parent_instance, reader.parent_execution_id) {
            (Some(parent), None) => self.current_execution_of(parent).await,
            _ => INITIAL_EXECUTION_ID,
        }
    }

    async fn current_execution_of(&self, instance: &str) -> u64 {
        let read = log_storage_error(instance, self.node.store.read(instance).await);
        read.and_then(|events| events.last().map(|event| event.execution_id))
            .unwrap_or(INITIAL_EXECUTION_ID)
    }

    #[cfg(feature = "test-hooks")]
    async fn delay_for_tests(&self, instance: &str) {
        if let Some(delay) = crate::runtime::test_hooks::get_orch_processing_delay(instance) {
            tokio::time::sleep(delay).await;
        }
    }

    #[cfg(not(feature = "test-hooks"))]
    async fn delay_for_tests(&self, _instance: &str) {}
}

fn log_fetch_error(error: &ProviderError) {
    tracing::warn!(target: targets::ORCHESTRATION_DISPATCHER, %error, retryable = error.retryable,
        "fetch failed");
}
