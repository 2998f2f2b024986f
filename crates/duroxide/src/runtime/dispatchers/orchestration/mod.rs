//! One turn: fetch, admit, replay, commit.

mod admit;
mod batch;
mod resolve;
mod collisions;
mod commit;
mod succession;
mod poison;
mod pardon;
mod warm;
mod direct;
mod due;
mod report;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use duroxide_core::model::{INITIAL_EXECUTION_ID, WorkItem};
use duroxide_core::replay::{
    HistoryManager, Suspended, Turn, TurnOutcome, WorkItemReader, run_turn_and_keep,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use self::direct::Answer;

use self::admit::{Admission, admit};
use self::batch::{Batch, Subject};
use self::commit::Aside;
use self::pardon::Pardons;
use super::fetch::Pace;
use super::lease::LeaseKeeper;
use super::usual::Usual;
use crate::providers::{DispatcherCapabilityFilter, FetchedTurn, ProviderError, TurnCommit};
use crate::runtime::OrchestrationHandler;
use crate::runtime::builtin::TurnSystemCalls;
use crate::runtime::catch_panic::catch_panic;
use crate::runtime::company::{Alone, InHand, is_suspect};
use crate::runtime::node::{Node, log_storage_error};
use crate::runtime::observability::{labels, targets};
use crate::runtime::reasons::Reasons;
use crate::runtime::warm::{OwnTimers, Warm};

/// Turns fetched ahead of those that run: enough to keep those busy while the store works, as long as
/// turns are short. Before anything is known of them, fewer.
const FETCHED_MAX: usize = 128;
const FETCHED_AT_FIRST: usize = 16;
/// How long a turn fetched ahead waits for its turn before it is given back.
const AHEAD_MAX: Duration = Duration::from_millis(100);
/// Turns in hand altogether, those included that wait for their commit.
const IN_FLIGHT_MAX: usize = 256;

/// A turn in hand.
struct Fetched {
    turn: FetchedTurn,
    /// Whether it was fetched by itself, as suspects are (R7.28).
    came_alone: bool,
    _in_hand: InHand,
}

/// What the turns of this dispatcher share.
pub(crate) struct Dispatcher {
    node: Arc<Node>,
    leases: Arc<LeaseKeeper>,
    /// Of the activities that this runtime has in hand.
    activity_leases: Arc<LeaseKeeper>,
    /// How many turns may run at a time.
    concurrency: usize,
    /// As many permits.
    running: Arc<Semaphore>,
    /// How long turns run lately.
    usual: Mutex<Usual>,
    /// Turns that are fetched and do not run yet.
    waiting: AtomicUsize,
    filter: DispatcherCapabilityFilter,
    pardons: Pardons,
    /// Whether timers of instances that are kept are fired here.
    fires_timers: AtomicBool,
    /// Why turns of instances were given back here.
    reasons: Reasons<String>,
}

impl Dispatcher {
    /// A dispatcher that lets so many turns run at a time.
    pub(crate) fn new(
        node: Arc<Node>,
        (leases, activity_leases): (Arc<LeaseKeeper>, Arc<LeaseKeeper>),
        concurrency: usize,
    ) -> Self {
        Self {
            filter: node.options.capability_filter(),
            node,
            leases,
            activity_leases,
            concurrency,
            running: Arc::new(Semaphore::new(concurrency)),
            usual: Mutex::default(),
            waiting: AtomicUsize::new(0),
            pardons: Pardons::default(),
            fires_timers: AtomicBool::new(false),
            reasons: Reasons::default(),
        }
    }

    /// Fetches turns and lets each run in a task of its own, until told to stop; then what is in hand
    /// ends first (R7.20). `concurrency` turns run at a time; those that only wait for their commit
    /// do not count, so that one sync of the disk can serve many.
    pub(crate) async fn run(self: Arc<Self>, tracker: TaskTracker, stop: CancellationToken) {
        let mut pace = Pace::default();
        let mut in_flight = JoinSet::new();
        let mut number = 0;
        let mut firing = JoinSet::new();
        let fire = Arc::clone(&self).fire_timers(tracker.clone(), stop.clone());
        firing.spawn(tracker.track_future(fire));
        while let Some(room) = self.wait_for_room(&mut in_flight, &stop).await {
            let Some(turns) = self.fetch(&mut pace, room, &stop).await else { break };
            let came_alone = turns.len() == 1;
            for (turn, in_hand) in turns {
                let fetched = Fetched { turn, came_alone, _in_hand: in_hand };
                let worker_id =
                    format!("orch-{}-{}", number % self.concurrency, self.node.runtime_id);
                number += 1;
                let process = Arc::clone(&self).process_guarded(fetched, worker_id);
                in_flight.spawn(tracker.track_future(process));
            }
        }
        while in_flight.join_next().await.is_some() {}
        while firing.join_next().await.is_some() {}
    }

    /// How many turns may be fetched, as soon as there is room for any; `None` means: stop.
    async fn wait_for_room(
        &self,
        in_flight: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> Option<usize> {
        while in_flight.try_join_next().is_some() {}
        // While turns take their time, nothing is fetched ahead of them.
        drop(super::fetch::or_stop(stop, self.running.acquire()).await?);
        super::fetch::or_stop(stop, self.node.company.calm()).await?;
        loop {
            let waiting_to_run = self.waiting.load(Ordering::Relaxed);
            let ahead = self.usual().begun_soon(self.concurrency, FETCHED_MAX);
            let room = ahead.unwrap_or(FETCHED_AT_FIRST).saturating_sub(waiting_to_run);
            let room = room.min(IN_FLIGHT_MAX.saturating_sub(in_flight.len()));
            let room = match self.node.company.is_wary() {
                true => room.min(self.running.available_permits()),
                false => room,
            };
            if 0 < room {
                return Some(room);
            }
            super::fetch::or_stop(stop, in_flight.join_next()).await?;
        }
    }

    fn usual(&self) -> MutexGuard<'_, Usual> {
        self.usual.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(
        &self,
        pace: &mut Pace,
        max: usize,
        stop: &CancellationToken,
    ) -> Option<Vec<(FetchedTurn, InHand)>> {
        let (options, company) = (&self.node.options, &self.node.company);
        let fetch = async {
            let turns = self.node.store.fetch_turns(
                options.orchestrator_lock_timeout,
                options.dispatcher_long_poll_timeout,
                Some(&self.filter),
                max,
            );
            let turns: Vec<_> =
                turns.await?.into_iter().map(|turn| (turn, company.join())).collect();
            Ok(Some(turns).filter(|turns| !turns.is_empty()))
        };
        let min_interval = options.dispatcher_min_poll_interval;
        let log = |error: &ProviderError| {
            self.node.health.failed("fetch_orchestration_item", error);
        };
        let fetched = pace.fetch(stop, min_interval, log, fetch).await?;
        Some(fetched.unwrap_or_default())
    }

    /// A panic in here would be a bug of ours; it costs this turn a retry, not the slot its life.
    async fn process_guarded(self: Arc<Self>, fetched: Fetched, worker_id: String) {
        let Fetched { turn, came_alone, _in_hand } = fetched;
        let began = Instant::now();
        self.node.metrics.record_orch_dispatcher_items_fetched(1);
        let last_event = (turn.last_event_id, turn.last_event_at_ms);
        let FetchedTurn { item, lock_token, history_included, incarnation, .. } = turn;
        let instance = item.instance.clone();
        let attempt = self.pardons.counted(&instance, turn.attempt_count);
        let batch = Batch {
            lease: self.leases.hold(&lock_token),
            subject: Subject { item, attempt, worker_id, incarnation },
            lock_token,
            last_event,
            history_included,
            came_alone,
            running: None,
            timers: OwnTimers::default(),
        };
        // Boxed: a future is as large as the longest way through it, and is moved when it begins.
        if let Err(panic) = catch_panic(Box::pin(self.process(batch))).await {
            tracing::error!(target: targets::ORCHESTRATION_DISPATCHER, %instance, %panic,
                "turn processing panicked; the turn will be repeated when its lock expires");
            self.reasons.note(
                instance,
                labels::CAUSE_OTHER,
                format!("processing panicked: {panic}"),
            );
        }
        self.count_duration(began);
    }

    fn count_duration(&self, began: Instant) {
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.node.metrics.record_orch_dispatcher_processing_duration(took_ms);
    }

    /// One fetched batch, from admission to commit.
    async fn process(self: &Arc<Self>, mut batch: Batch) {
        let company = &self.node.company;
        let mut _alone = None;
        // What has no code here can do no harm.
        let is_suspect =
            batch.came_alone && is_suspect(batch.attempt, self.node.options.max_attempts);
        if is_suspect && self.has_code(&batch.item) {
            _alone = company.alone().await.map(Alone::watched);
            if _alone.is_none() {
                return self.pass_on(&batch, Some(company.retry_after())).await;
            }
            batch.running = self.permission_to_run(AHEAD_MAX).await;
        } else {
            let permission = company.unless_hushed(self.permission_to_run(AHEAD_MAX));
            batch.running = permission.await.flatten();
        }
        if batch.running.is_none() {
            return self.pass_on(&batch, None).await;
        }
        self.delay_for_tests(batch.instance()).await;
        if let Some(warm) = self.take_warm(&batch) {
            return self.run_warm(batch, warm).await;
        }
        if !self.read_history(&mut batch).await {
            return;
        }
        let history = HistoryManager::from_owned(std::mem::take(&mut batch.item.history));
        let range = self.node.options.supported_range();
        match admit(&batch, &history, &self.node.options, &range) {
            Admission::Run => self.replay(batch, history).await,
            // What is rare is boxed, so that the others need no room for it.
            Admission::Retry { after, cause, why } => {
                Box::pin(self.abandon(&batch, after, (cause, &why))).await;
            }
            Admission::Discard => Box::pin(self.discard(batch, &history)).await,
            Admission::Poison => Box::pin(self.poison(batch, history)).await,
        }
    }

    /// Gives a turn back that was fetched ahead and cannot run here soon: others may have room.
    async fn pass_on(&self, batch: &Batch, after: Option<Duration>) {
        let store = &self.node.store;
        let result = store.abandon_orchestration_item(&batch.lock_token, after, true).await;
        log_storage_error(batch.instance(), result);
    }

    async fn replay(self: &Arc<Self>, mut batch: Batch, history: HistoryManager) {
        let notices = self.collision_notices(&batch, &history).await;
        let messages = std::mem::take(&mut batch.item.messages);
        let reader = WorkItemReader::from_owned(messages, &history, &batch.item.instance);
        let Some(code) = self.resolve(&batch.item, &reader) else {
            return Box::pin(self.back_off_unregistered(&batch, &reader)).await;
        };
        let is_successor = reader.is_continue_as_new;
        let execution_id = batch.item.execution_id + u64::from(is_successor);
        let history = if is_successor { Vec::new() } else { history.into_history() };
        let aside = Aside::of(&reader, &history, execution_id, &code.0)
            .with_notices(notices)
            .with_remembered(self.node.facts.get(&batch.item.instance, execution_id));
        let kv_snapshot = batch.item.kv_snapshot.clone();
        let turn = self.turn_of(batch.instance(), execution_id, reader, code).await;
        let turn = Turn { history, kv_snapshot, ..turn };
        let run = || run_turn_and_keep(turn);
        let name = &aside.orchestration_name;
        let (outcome, next) = self.node.turns.run(batch.instance(), name, run);
        self.report_before_commit(&batch, &outcome, &aside);
        self.commit_and_keep(&mut batch, outcome, aside, next).await;
    }

    /// A turn of an instance, without history and values.
    async fn turn_of(
        &self,
        instance: &str,
        execution_id: u64,
        messages: WorkItemReader,
        (version, handler): (String, Arc<dyn OrchestrationHandler>),
    ) -> Turn {
        let now_ms = self.node.turn_time_ms(&messages.completion_messages);
        Turn {
            instance: instance.to_owned(),
            execution_id,
            history: Vec::new(),
            parent_execution_fallback: self.parent_execution_fallback(&messages).await,
            messages,
            handler,
            version,
            kv_snapshot: HashMap::new(),
            now_ms,
            system_calls: Some(Box::new(TurnSystemCalls { node: Arc::clone(&self.node), now_ms })),
            foreign_wait: self.node.tuning.foreign_wait,
        }
    }

    /// Commits a turn, and keeps the instance in memory for its next one if that worked.
    async fn commit_and_keep(
        &self,
        batch: &mut Batch,
        outcome: TurnOutcome,
        aside: Aside,
        next: Option<Suspended>,
    ) {
        let successor = self.run_successor(batch, &outcome, aside.execution_id).await;
        self.has_run(batch.running.take());
        // What is not kept ends before the commit: from then on the next turn may run elsewhere.
        let next = next.filter(|_| self.node.warm.is_on());
        let next = match successor {
            Some(successor) => Box::pin(self.commit_both(batch, outcome, aside, successor)).await,
            None => {
                let (set, incarnation) =
                    (self.own_timers(batch, &outcome, &next), batch.incarnation);
                let grace = set.grace();
                let timers = std::mem::take(&mut batch.timers).and(set);
                let is_committed = self.commit(batch, outcome, aside, grace).await;
                let kv_snapshot = std::mem::take(&mut batch.item.kv_snapshot);
                let next = next.filter(|_| is_committed);
                next.map(|suspended| Warm { suspended, kv_snapshot, incarnation, timers })
            }
        };
        if let Some(next) = next {
            self.node.warm.keep(batch.instance(), next);
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

    /// Gives the batch back, the attempt counted; `cause` is one of few words, `why` for people.
    async fn abandon(&self, batch: &Batch, after: Duration, (cause, why): (&'static str, &str)) {
        tracing::debug!(target: targets::ORCHESTRATION_DISPATCHER, instance = %batch.instance(),
            attempt_count = batch.attempt, ?after, why, "turn given back");
        self.reasons.note(batch.item.instance.clone(), cause, why);
        let store = &self.node.store;
        let result = store.abandon_orchestration_item(&batch.lock_token, Some(after), false).await;
        log_storage_error(batch.instance(), result);
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
}
