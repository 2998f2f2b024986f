//! Messages, activities, events and commits, each in one word.

use duroxide_core::model::{AppErrorKind, ErrorDetails, Event, EventKind, WorkItem};
use semver::Version;

use crate::providers::{
    DispatcherCapabilityFilter, ExecutionMetadata, ScheduledActivityIdentifier, SemverRange,
    TurnCommit,
};

// ---- Messages and activities --------------------------------------------------------------------

pub(crate) fn start(instance: &str) -> WorkItem {
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

/// The start of a child, as its parent sends it.
pub(crate) fn start_child(instance: &str, parent: &str) -> WorkItem {
    let mut item = start(instance);
    if let WorkItem::StartOrchestration {
        parent_instance, parent_id, parent_execution_id, ..
    } = &mut item
    {
        (*parent_instance, *parent_id) = (Some(parent.into()), Some(2));
        *parent_execution_id = Some(1);
    }
    item
}

/// What a child tells its parent when it has ended.
pub(crate) fn child_done(parent: &str) -> WorkItem {
    WorkItem::SubOrchCompleted {
        parent_instance: parent.into(),
        parent_execution_id: 1,
        parent_id: 2,
        result: "out".into(),
    }
}

pub(crate) fn continue_as_new(instance: &str) -> WorkItem {
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

pub(crate) fn raise(instance: &str, name: &str) -> WorkItem {
    WorkItem::ExternalRaised { instance: instance.into(), name: name.into(), data: "d".into() }
}

pub(crate) fn queue_message(instance: &str, data: &str) -> WorkItem {
    WorkItem::QueueMessage { instance: instance.into(), name: "q".into(), data: data.into() }
}

pub(crate) fn cancel(instance: &str) -> WorkItem {
    WorkItem::CancelInstance { instance: instance.into(), reason: "because".into() }
}

pub(crate) fn timer_fired(instance: &str, fire_at_ms: u64) -> WorkItem {
    WorkItem::TimerFired { instance: instance.into(), execution_id: 1, id: 2, fire_at_ms }
}

pub(crate) fn activity(instance: &str, id: u64) -> WorkItem {
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

pub(crate) fn tagged(id: u64, with: &str) -> WorkItem {
    with_tag(activity("a", id), with)
}

pub(crate) fn with_tag(mut item: WorkItem, with: &str) -> WorkItem {
    if let WorkItem::ActivityExecute { tag, .. } = &mut item {
        *tag = Some(with.into());
    }
    item
}

pub(crate) fn in_session(id: u64, session: &str) -> WorkItem {
    let mut item = activity("a", id);
    if let WorkItem::ActivityExecute { session_id, .. } = &mut item {
        *session_id = Some(session.into());
    }
    item
}

pub(crate) fn done(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityCompleted {
        instance: instance.into(),
        execution_id: 1,
        id,
        result: "ok".into(),
    }
}

pub(crate) fn failed(instance: &str, id: u64) -> WorkItem {
    let details = ErrorDetails::Application {
        kind: AppErrorKind::ActivityFailed,
        message: "no".into(),
        retryable: false,
    };
    WorkItem::ActivityFailed { instance: instance.into(), execution_id: 1, id, details }
}

pub(crate) fn identity(instance: &str, activity_id: u64) -> ScheduledActivityIdentifier {
    ScheduledActivityIdentifier { instance: instance.into(), execution_id: 1, activity_id }
}

/// A filter with one inclusive range.
pub(crate) fn versions(min: &str, max: &str) -> DispatcherCapabilityFilter {
    let range = SemverRange::new(Version::parse(min).unwrap(), Version::parse(max).unwrap());
    DispatcherCapabilityFilter { supported_duroxide_versions: vec![range] }
}

// ---- Events and commits -------------------------------------------------------------------------

pub(crate) fn event(event_id: u64, kind: EventKind) -> Event {
    Event::with_event_id(event_id, "a", 1, None, kind)
}

pub(crate) fn started(instance: &str) -> Event {
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
pub(crate) fn note(event_id: u64) -> Event {
    said(event_id, "d")
}

/// An event with some content.
pub(crate) fn said(event_id: u64, data: &str) -> Event {
    event(event_id, EventKind::ExternalEvent { name: "n".into(), data: data.into() })
}

pub(crate) fn set(event_id: u64, key: &str, value: &str) -> Event {
    let (key, value) = (key.into(), value.into());
    event(event_id, EventKind::KeyValueSet { key, value, last_updated_at_ms: event_id * 10 })
}

pub(crate) fn clear(event_id: u64, key: &str) -> Event {
    event(event_id, EventKind::KeyValueCleared { key: key.into() })
}

pub(crate) fn clear_all(event_id: u64) -> Event {
    event(event_id, EventKind::KeyValuesCleared)
}

pub(crate) fn show(event_id: u64, status: Option<&str>) -> Event {
    event(event_id, EventKind::CustomStatusUpdated { status: status.map(Into::into) })
}

/// A commit that does nothing yet.
pub(crate) fn commit() -> TurnCommit {
    TurnCommit { execution_id: 1, ..TurnCommit::default() }
}

/// The commit that brings an instance into being.
pub(crate) fn first_commit(instance: &str) -> TurnCommit {
    commit().named("Orch", "1.0.0").event(started(instance))
}

/// What a commit is made of.
pub(crate) trait CommitWords: Sized {
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
