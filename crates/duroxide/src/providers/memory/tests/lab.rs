//! The words the tests are written in.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use duroxide_core::model::{Event, EventKind, WorkItem};
use semver::Version;

use super::super::{MemoryOptions, MemoryProvider};
use crate::providers::{
    DispatcherCapabilityFilter, ExecutionMetadata, FetchedTurn, Provider, ProviderError,
    ScheduledActivityIdentifier, SemverRange, SessionFetchConfig, TagFilter, TurnCommit,
};

/// How long locks last here, in milliseconds.
pub(super) const LOCK_MS: u64 = 5_000;
pub(super) const LOCK: Duration = Duration::from_millis(LOCK_MS);
pub(super) const AT_ONCE: Duration = Duration::ZERO;
/// A poll that outlasts every test.
pub(super) const LONG: Duration = Duration::from_secs(30);

/// A store to experiment on.
#[derive(Clone)]
pub(super) struct Lab(pub(super) Arc<MemoryProvider>);

impl Deref for Lab {
    type Target = MemoryProvider;
    fn deref(&self) -> &MemoryProvider {
        &self.0
    }
}

/// A locked activity.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) item: WorkItem,
    pub(super) token: String,
    pub(super) attempt: u32,
}

impl Job {
    /// Number of the activity.
    pub(super) fn id(&self) -> u64 {
        match &self.item {
            WorkItem::ActivityExecute { id, .. } => *id,
            other => panic!("not an activity: {other:?}"),
        }
    }
}

pub(super) fn lab() -> Lab {
    Lab(Arc::new(MemoryProvider::new()))
}

pub(super) fn lab_with_retention(retention: Duration) -> Lab {
    let options = MemoryOptions { orphan_retention: retention, ..MemoryOptions::default() };
    Lab(Arc::new(MemoryProvider::with_options(options)))
}

/// Lets paused time pass.
pub(super) async fn pass(ms: u64) {
    tokio::time::advance(Duration::from_millis(ms)).await;
}

impl Lab {
    pub(super) fn now(&self) -> u64 {
        self.store_time_ms().unwrap()
    }

    pub(super) async fn send(&self, item: WorkItem) {
        self.enqueue_for_orchestrator(item, None).await.unwrap();
    }

    pub(super) async fn send_later(&self, item: WorkItem, delay_ms: u64) {
        let delay = Some(Duration::from_millis(delay_ms));
        self.enqueue_for_orchestrator(item, delay).await.unwrap();
    }

    /// The next turn, which must be there.
    pub(super) async fn turn(&self) -> FetchedTurn {
        self.try_turn(None).await.expect("a turn to fetch")
    }

    pub(super) async fn no_turn(&self) {
        let turn = self.try_turn(None).await;
        assert!(turn.is_none(), "unexpected turn {turn:?}");
    }

    pub(super) async fn try_turn(
        &self,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Option<FetchedTurn> {
        let fetched = self.fetch_orchestration_item(LOCK, AT_ONCE, filter).await.unwrap();
        fetched.map(|(item, token, attempt)| FetchedTurn::with_history(item, token, attempt))
    }

    pub(super) async fn commit(
        &self,
        turn: &FetchedTurn,
        commit: TurnCommit,
    ) -> Result<(), ProviderError> {
        self.ack_orchestration_item(
            &turn.lock_token,
            commit.execution_id,
            commit.history_delta,
            commit.worker_items,
            commit.orchestrator_items,
            commit.metadata,
            commit.cancelled_activities,
        )
        .await
    }

    pub(super) async fn abandon(&self, turn: &FetchedTurn) {
        self.abandon_orchestration_item(&turn.lock_token, None, false).await.unwrap();
    }

    pub(super) async fn abandon_for(&self, turn: &FetchedTurn, ms: u64) {
        let delay = Some(Duration::from_millis(ms));
        self.abandon_orchestration_item(&turn.lock_token, delay, false).await.unwrap();
    }

    /// Brings an instance into being: one event, status Running.
    pub(super) async fn begin(&self, instance: &str) {
        self.begin_as(instance, first_commit(instance)).await;
    }

    pub(super) async fn begin_child(&self, instance: &str, parent: &str) {
        self.begin_as(instance, first_commit(instance).child_of(parent)).await;
    }

    pub(super) async fn begin_as(&self, instance: &str, commit: TurnCommit) {
        self.send(start(instance)).await;
        let turn = self.turn().await;
        assert_eq!(turn.item.instance, instance);
        self.commit(&turn, commit).await.unwrap();
    }

    /// One more turn of an existing instance.
    pub(super) async fn step(&self, instance: &str, commit: TurnCommit) {
        self.send(raise(instance, "step")).await;
        let turn = self.turn().await;
        assert_eq!(turn.item.instance, instance);
        self.commit(&turn, commit).await.unwrap();
    }

    /// An ended instance.
    pub(super) async fn ended(&self, instance: &str, status: &str) {
        self.begin(instance).await;
        self.step(instance, commit().ends(status, "out")).await;
    }

    /// An instance that continued as new until it is in execution `current`, which runs.
    pub(super) async fn looping(&self, instance: &str, current: u64) {
        self.begin(instance).await;
        for number in 2..=current {
            self.step(instance, commit().in_execution(number - 1).ends("ContinuedAsNew", "x"))
                .await;
            let next = commit().in_execution(number).event(started(instance));
            self.step(instance, next).await;
        }
    }

    pub(super) async fn queue(&self, item: WorkItem) {
        self.enqueue_for_worker(item).await.unwrap();
    }

    /// The next untagged activity without a session, which must be there.
    pub(super) async fn job(&self) -> Job {
        self.try_job(None, &TagFilter::DefaultOnly).await.expect("an activity to fetch")
    }

    pub(super) async fn no_job(&self) {
        let job = self.try_job(None, &TagFilter::DefaultOnly).await;
        assert!(job.is_none(), "unexpected activity {job:?}");
    }

    /// The next untagged activity for a session owner.
    pub(super) async fn job_for(&self, owner: &str) -> Option<Job> {
        self.try_job(Some(&lease(owner)), &TagFilter::DefaultOnly).await
    }

    pub(super) async fn job_tagged(&self, tags: &TagFilter) -> Option<Job> {
        self.try_job(None, tags).await
    }

    pub(super) async fn try_job(
        &self,
        session: Option<&SessionFetchConfig>,
        tags: &TagFilter,
    ) -> Option<Job> {
        let fetched = self.fetch_work_item(LOCK, AT_ONCE, session, tags).await.unwrap();
        fetched.map(|(item, token, attempt)| Job { item, token, attempt })
    }

    pub(super) async fn status(&self, instance: &str) -> String {
        let admin = self.as_management_capability().unwrap();
        admin.get_instance_info(instance).await.unwrap().status
    }

    pub(super) async fn kv(&self, instance: &str) -> HashMap<String, String> {
        self.get_kv_all_values(instance).await.unwrap()
    }
}

// ---- Messages and activities --------------------------------------------------------------------

pub(super) fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.into(),
        orchestration: "Orch".into(),
        input: "in".into(),
        version: Some("1.0.0".into()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

pub(super) fn continue_as_new(instance: &str) -> WorkItem {
    WorkItem::ContinueAsNew {
        instance: instance.into(),
        orchestration: "Orch".into(),
        input: "next".into(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: Vec::new(),
        initial_custom_status: None,
    }
}

pub(super) fn raise(instance: &str, name: &str) -> WorkItem {
    WorkItem::ExternalRaised { instance: instance.into(), name: name.into(), data: "d".into() }
}

pub(super) fn queue_message(instance: &str, data: &str) -> WorkItem {
    WorkItem::QueueMessage { instance: instance.into(), name: "q".into(), data: data.into() }
}

pub(super) fn cancel(instance: &str) -> WorkItem {
    WorkItem::CancelInstance { instance: instance.into(), reason: "because".into() }
}

pub(super) fn timer_fired(instance: &str, fire_at_ms: u64) -> WorkItem {
    WorkItem::TimerFired { instance: instance.into(), execution_id: 1, id: 2, fire_at_ms }
}

pub(super) fn activity(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.into(),
        execution_id: 1,
        id,
        name: "Act".into(),
        input: "in".into(),
        session_id: None,
        tag: None,
    }
}

pub(super) fn tagged(id: u64, with: &str) -> WorkItem {
    let mut item = activity("a", id);
    if let WorkItem::ActivityExecute { tag, .. } = &mut item {
        *tag = Some(with.into());
    }
    item
}

pub(super) fn in_session(id: u64, session: &str) -> WorkItem {
    let mut item = activity("a", id);
    if let WorkItem::ActivityExecute { session_id, .. } = &mut item {
        *session_id = Some(session.into());
    }
    item
}

pub(super) fn done(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityCompleted {
        instance: instance.into(),
        execution_id: 1,
        id,
        result: "ok".into(),
    }
}

pub(super) fn identity(instance: &str, activity_id: u64) -> ScheduledActivityIdentifier {
    ScheduledActivityIdentifier { instance: instance.into(), execution_id: 1, activity_id }
}

pub(super) fn lease(owner: &str) -> SessionFetchConfig {
    SessionFetchConfig { owner_id: owner.into(), lock_timeout: LOCK }
}

/// A filter with one inclusive range.
pub(super) fn versions(min: &str, max: &str) -> DispatcherCapabilityFilter {
    let range = SemverRange::new(Version::parse(min).unwrap(), Version::parse(max).unwrap());
    DispatcherCapabilityFilter { supported_duroxide_versions: vec![range] }
}

// ---- Events and commits -------------------------------------------------------------------------

pub(super) fn event(event_id: u64, kind: EventKind) -> Event {
    Event::with_event_id(event_id, "a", 1, None, kind)
}

pub(super) fn started(instance: &str) -> Event {
    let kind = EventKind::OrchestrationStarted {
        name: "Orch".into(),
        version: "1.0.0".into(),
        input: "in".into(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    Event::with_event_id(1, instance, 1, None, kind)
}

/// Some event, where only its id matters.
pub(super) fn note(event_id: u64) -> Event {
    event(event_id, EventKind::ExternalEvent { name: "n".into(), data: "d".into() })
}

pub(super) fn set(event_id: u64, key: &str, value: &str) -> Event {
    let (key, value) = (key.into(), value.into());
    event(event_id, EventKind::KeyValueSet { key, value, last_updated_at_ms: event_id * 10 })
}

pub(super) fn clear(event_id: u64, key: &str) -> Event {
    event(event_id, EventKind::KeyValueCleared { key: key.into() })
}

pub(super) fn clear_all(event_id: u64) -> Event {
    event(event_id, EventKind::KeyValuesCleared)
}

pub(super) fn show(event_id: u64, status: Option<&str>) -> Event {
    event(event_id, EventKind::CustomStatusUpdated { status: status.map(Into::into) })
}

/// A commit that does nothing yet.
pub(super) fn commit() -> TurnCommit {
    TurnCommit { execution_id: 1, ..TurnCommit::default() }
}

/// The commit that brings an instance into being.
pub(super) fn first_commit(instance: &str) -> TurnCommit {
    commit().named("Orch", "1.0.0").event(started(instance))
}

/// What a commit is made of.
pub(super) trait CommitWords: Sized {
    fn change(self, change: impl FnOnce(&mut TurnCommit)) -> Self;

    fn metadata(self, change: impl FnOnce(&mut ExecutionMetadata)) -> Self {
        self.change(|commit| change(&mut commit.metadata))
    }
    fn in_execution(self, number: u64) -> Self {
        self.change(|commit| commit.execution_id = number)
    }
    fn event(self, event: Event) -> Self {
        self.change(|commit| commit.history_delta.push(event))
    }
    fn work(self, item: WorkItem) -> Self {
        self.change(|commit| commit.worker_items.push(item))
    }
    fn message(self, item: WorkItem) -> Self {
        self.change(|commit| commit.orchestrator_items.push(item))
    }
    fn cancelling(self, activity: ScheduledActivityIdentifier) -> Self {
        self.change(|commit| commit.cancelled_activities.push(activity))
    }
    fn named(self, name: &str, version: &str) -> Self {
        self.metadata(|metadata| {
            metadata.orchestration_name = Some(name.into());
            metadata.orchestration_version = Some(version.into());
        })
    }
    fn child_of(self, parent: &str) -> Self {
        self.metadata(|metadata| metadata.parent_instance_id = Some(parent.into()))
    }
    fn pinned(self, version: &str) -> Self {
        let version = Version::parse(version).unwrap();
        self.metadata(|metadata| metadata.pinned_duroxide_version = Some(version))
    }
    fn ends(self, status: &str, output: &str) -> Self {
        self.metadata(|metadata| {
            metadata.status = Some(status.into());
            metadata.output = Some(output.into());
        })
    }
}

impl CommitWords for TurnCommit {
    fn change(mut self, change: impl FnOnce(&mut TurnCommit)) -> Self {
        change(&mut self);
        self
    }
}

/// Asserts that an operation was refused for good, with these words.
#[track_caller]
pub(super) fn assert_refused<T: std::fmt::Debug>(
    result: Result<T, ProviderError>,
    operation: &str,
    words: &str,
) {
    let error = result.expect_err("should have been refused");
    assert!(!error.is_retryable(), "{error} should be permanent");
    assert_eq!(error.operation, operation);
    assert!(error.message.contains(words), "{error} should say {words:?}");
}
