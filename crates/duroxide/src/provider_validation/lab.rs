//! A store to check, and the verbs of the checks. Every expectation that is not met ends the check
//! with the promise that is broken.

use std::collections::HashMap;
use std::fmt::Debug;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use duroxide_core::model::WorkItem;
use tokio::time::{Instant, sleep};

use super::ProviderFactory;
use super::words::{CommitWords, commit, first_commit, raise, start, started};
use crate::providers::{
    DispatcherCapabilityFilter, OrchestrationItem, Provider, ProviderAdmin, ProviderError,
    SessionFetchConfig, TagFilter, TurnCommit,
};

/// A poll that does not wait.
pub(crate) const AT_ONCE: Duration = Duration::ZERO;
/// A lock, lease or delay that outlasts any check.
pub(crate) const LONG: Duration = Duration::from_secs(600);
/// How long a look waits before the next one, for stores without long polls.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What a check is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Promise {
    /// Rule of docs/behaviour.md.
    pub(crate) rule: &'static str,
    /// The promise in one sentence.
    pub(crate) says: &'static str,
    /// Section of docs/provider-contract.md that explains it.
    pub(crate) section: &'static str,
}

impl Promise {
    /// Ends the check.
    #[track_caller]
    pub(crate) fn broken(self, expected: &str, got: impl Debug) -> ! {
        let Promise { rule, says, section } = self;
        panic!(
            "provider contract broken ({rule}): {says}\n  expected: {expected}\n  got:      \
             {got:?}\n  see docs/provider-contract.md#{section}"
        )
    }
}

/// A store to check.
#[derive(Clone)]
pub(crate) struct Lab {
    pub(crate) store: Arc<dyn Provider>,
    /// How long locks last here.
    pub(crate) lock: Duration,
    /// How long something that is to come may take.
    pub(crate) patience: Duration,
    pub(crate) promise: Promise,
}

impl Deref for Lab {
    type Target = dyn Provider;
    fn deref(&self) -> &Self::Target {
        self.store.as_ref()
    }
}

/// A locked turn.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) item: OrchestrationItem,
    pub(crate) token: String,
    pub(crate) attempt: u32,
}

/// A locked activity.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) item: WorkItem,
    pub(crate) token: String,
    pub(crate) attempt: u32,
}

impl Job {
    /// Number of the activity.
    pub(crate) fn id(&self) -> u64 {
        match &self.item {
            WorkItem::ActivityExecute { id, .. } => *id,
            other => panic!("the worker queue handed out something that is no activity: {other:?}"),
        }
    }
}

/// A fresh store to check for one promise.
pub(crate) async fn lab(factory: &dyn ProviderFactory, promise: Promise) -> Lab {
    lab_on(factory.create_provider().await, factory, promise)
}

/// A store to check that was made in some other way.
pub(crate) fn lab_on(
    store: Arc<dyn Provider>,
    factory: &dyn ProviderFactory,
    promise: Promise,
) -> Lab {
    let lock = factory.lock_timeout();
    Lab { store, lock, patience: lock * 3 + Duration::from_secs(1), promise }
}

impl Lab {
    // ---- Expectations ---------------------------------------------------------------------------

    /// Ends the check.
    #[track_caller]
    pub(crate) fn broken(&self, expected: &str, got: impl Debug) -> ! {
        self.promise.broken(expected, got)
    }

    /// Something must hold.
    #[track_caller]
    pub(crate) fn expect(&self, holds: bool, expected: &str, got: impl Debug) {
        if !holds {
            self.broken(expected, got);
        }
    }

    /// Two things must be the same.
    #[track_caller]
    pub(crate) fn same<T: PartialEq<U> + Debug, U: Debug>(&self, what: &str, got: T, expected: U) {
        if got != expected {
            self.broken(&format!("{what} to be {expected:?}"), got);
        }
    }

    /// A call must succeed.
    #[track_caller]
    pub(crate) fn ok<T>(&self, call: &str, result: Result<T, ProviderError>) -> T {
        match result {
            Ok(value) => value,
            Err(error) => self.broken(&format!("{call} to succeed"), error),
        }
    }

    /// A call must be refused for good, with one of these words (any case) in its message; no words
    /// means that any message will do.
    #[track_caller]
    pub(crate) fn refused<T: Debug>(
        &self,
        call: &str,
        result: Result<T, ProviderError>,
        words: &[&str],
    ) {
        let error = match result {
            Ok(value) => self.broken(&format!("{call} to be refused"), value),
            Err(error) => error,
        };
        self.expect(
            !error.is_retryable(),
            &format!("{call} to be refused for good, not to be worth trying again"),
            &error,
        );
        let message = error.message.to_lowercase();
        let said = words.iter().any(|word| message.contains(&word.to_lowercase()));
        let expected = format!("the refusal of {call} to say one of {words:?}");
        self.expect(words.is_empty() || said, &expected, &error);
    }

    // ---- Messages and turns ---------------------------------------------------------------------

    pub(crate) async fn send(&self, item: WorkItem) {
        let sent = self.enqueue_for_orchestrator(item, None).await;
        self.ok("enqueue_for_orchestrator", sent);
    }

    pub(crate) async fn send_later(&self, item: WorkItem, delay: Duration) {
        let sent = self.enqueue_for_orchestrator(item, Some(delay)).await;
        self.ok("enqueue_for_orchestrator", sent);
    }

    /// The next turn, which must be there.
    pub(crate) async fn turn(&self) -> Turn {
        match self.try_turn(None).await {
            Some(turn) => turn,
            None => self.broken("a turn to fetch", "nothing"),
        }
    }

    /// The next turn, which must be of this instance.
    pub(crate) async fn turn_of(&self, instance: &str) -> Turn {
        let turn = self.turn().await;
        self.same("the fetched instance", &turn.item.instance, instance);
        turn
    }

    /// A turn must have just these messages, in this order.
    #[track_caller]
    pub(crate) fn batch<const N: usize>(&self, turn: &Turn, messages: [WorkItem; N]) {
        self.same("the messages of the turn", turn.item.messages.as_slice(), messages);
    }

    pub(crate) async fn no_turn(&self) {
        if let Some(turn) = self.try_turn(None).await {
            self.broken("no turn to fetch", turn);
        }
    }

    pub(crate) async fn try_turn(
        &self,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Option<Turn> {
        let fetched = self.fetch_orchestration_item(self.lock, AT_ONCE, filter).await;
        let fetched = self.ok("fetch_orchestration_item", fetched);
        fetched.map(|(item, token, attempt)| Turn { item, token, attempt })
    }

    /// A turn that becomes fetchable within a few lock times.
    pub(crate) async fn turn_soon(&self) -> Turn {
        self.soon("a turn to become fetchable", || self.try_turn(None)).await
    }

    pub(crate) async fn commit(
        &self,
        turn: &Turn,
        mut commit: TurnCommit,
    ) -> Result<(), ProviderError> {
        // The words for events do not know where they will belong.
        for event in &mut commit.history_delta {
            event.instance_id.clone_from(&turn.item.instance);
            event.execution_id = commit.execution_id;
        }
        self.ack_orchestration_item(
            &turn.token,
            commit.execution_id,
            commit.history_delta,
            commit.worker_items,
            commit.orchestrator_items,
            commit.metadata,
            commit.cancelled_activities,
        )
        .await
    }

    /// A commit that must succeed.
    pub(crate) async fn committed(&self, turn: &Turn, commit: TurnCommit) {
        let result = self.commit(turn, commit).await;
        self.ok("ack_orchestration_item", result);
    }

    pub(crate) async fn abandon(&self, turn: &Turn) {
        let result = self.abandon_orchestration_item(&turn.token, None, false).await;
        self.ok("abandon_orchestration_item", result);
    }

    /// Gives a turn back at once, its attempt counted or not.
    pub(crate) async fn abandon_with(&self, token: &str, ignore_attempt: bool) {
        let result = self.abandon_orchestration_item(token, None, ignore_attempt).await;
        self.ok("abandon_orchestration_item", result);
    }

    // ---- Instances ------------------------------------------------------------------------------

    /// Brings an instance into being: one event, status Running.
    pub(crate) async fn begin(&self, instance: &str) {
        self.begin_as(instance, first_commit(instance)).await;
    }

    pub(crate) async fn begin_child(&self, instance: &str, parent: &str) {
        self.begin_as(instance, first_commit(instance).child_of(parent)).await;
    }

    pub(crate) async fn begin_as(&self, instance: &str, commit: TurnCommit) {
        self.send(start(instance)).await;
        let turn = self.patient().turn_of(instance).await;
        self.committed(&turn, commit).await;
    }

    /// One more turn of an existing instance.
    pub(crate) async fn step(&self, instance: &str, commit: TurnCommit) {
        self.send(raise(instance, "step")).await;
        let turn = self.patient().turn_of(instance).await;
        self.committed(&turn, commit).await;
    }

    /// An ended instance.
    pub(crate) async fn ended(&self, instance: &str, status: &str) {
        self.begin(instance).await;
        self.step(instance, commit().ends(status, "out")).await;
    }

    /// An instance that continued as new until it is in execution `current`, which runs.
    pub(crate) async fn looping(&self, instance: &str, current: u64) {
        self.begin(instance).await;
        for number in 2..=current {
            self.continue_as_new(instance, number, commit().event(started(instance))).await;
        }
    }

    /// Ends an instance's execution as continued, and begins execution `number` with this commit.
    pub(crate) async fn continue_as_new(&self, instance: &str, number: u64, first: TurnCommit) {
        let end = commit().in_execution(number - 1).ends("ContinuedAsNew", "x");
        self.step(instance, end).await;
        self.step(instance, first.in_execution(number)).await;
    }

    // ---- Activities -----------------------------------------------------------------------------

    pub(crate) async fn queue(&self, item: WorkItem) {
        let queued = self.enqueue_for_worker(item).await;
        self.ok("enqueue_for_worker", queued);
    }

    /// The next untagged activity without a session, which must be there.
    pub(crate) async fn job(&self) -> Job {
        match self.try_job(None, &TagFilter::DefaultOnly).await {
            Some(job) => job,
            None => self.broken("an activity to fetch", "nothing"),
        }
    }

    pub(crate) async fn no_job(&self) {
        if let Some(job) = self.try_job(None, &TagFilter::DefaultOnly).await {
            self.broken("no activity to fetch", job);
        }
    }

    /// The next untagged activity for a session owner.
    pub(crate) async fn job_for(&self, owner: &str) -> Option<Job> {
        self.try_job(Some(&self.lease(owner)), &TagFilter::DefaultOnly).await
    }

    pub(crate) async fn job_tagged(&self, tags: &TagFilter) -> Option<Job> {
        self.try_job(None, tags).await
    }

    pub(crate) async fn try_job(
        &self,
        session: Option<&SessionFetchConfig>,
        tags: &TagFilter,
    ) -> Option<Job> {
        let fetched = self.fetch_work_item(self.lock, AT_ONCE, session, tags).await;
        let fetched = self.ok("fetch_work_item", fetched);
        fetched.map(|(item, token, attempt)| Job { item, token, attempt })
    }

    /// An activity that becomes fetchable within a few lock times.
    pub(crate) async fn job_soon(&self) -> Job {
        let look = || self.try_job(None, &TagFilter::DefaultOnly);
        self.soon("an activity to become fetchable", look).await
    }

    /// A session lease as long as a lock.
    pub(crate) fn lease(&self, owner: &str) -> SessionFetchConfig {
        SessionFetchConfig { owner_id: owner.into(), lock_timeout: self.lock }
    }

    // ---- Looking --------------------------------------------------------------------------------

    /// The management side, which the check needs.
    pub(crate) fn admin(&self) -> &dyn ProviderAdmin {
        match self.as_management_capability() {
            Some(admin) => admin,
            None => self.broken("a management side (as_management_capability)", "none"),
        }
    }

    pub(crate) async fn event_ids(&self, instance: &str) -> Vec<u64> {
        let events = self.ok("read", self.read(instance).await);
        events.iter().map(|event| event.event_id).collect()
    }

    pub(crate) async fn kv(&self, instance: &str) -> HashMap<String, String> {
        self.ok("get_kv_all_values", self.get_kv_all_values(instance).await)
    }

    // ---- Time -----------------------------------------------------------------------------------

    /// Waits until every lock taken before has run out.
    pub(crate) async fn locks_run_out(&self) {
        sleep(self.lock + LOOK_AGAIN).await;
    }

    /// Looks until there is something, for a few lock times.
    pub(crate) async fn soon<T, Fut>(&self, what: &str, look: impl Fn() -> Fut) -> T
    where
        Fut: Future<Output = Option<T>>,
    {
        let deadline = Instant::now() + self.patience;
        loop {
            if let Some(found) = look().await {
                return found;
            }
            if deadline <= Instant::now() {
                self.broken(what, "nothing, for three lock times and more");
            }
            sleep(LOOK_AGAIN).await;
        }
    }
}
