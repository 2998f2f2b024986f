//! Looking closely: at histories, at the whole store, at messages on their way.

use std::time::Duration;

use duroxide::providers::memory::MemorySnapshot;
use duroxide::providers::{Provider, WorkItem};
use duroxide::{ErrorDetails, Event, EventKind, OrchestrationStatus};
use tokio::time::{Instant, sleep};

use super::{PATIENCE, World, kinds};

/// Whether a history has an event of this kind.
pub fn has(history: &[Event], kind: &str) -> bool {
    count(history, kind) > 0
}

/// How many events of this kind a history has.
pub fn count(history: &[Event], kind: &str) -> usize {
    kinds(history).iter().filter(|k| *k == kind).count()
}

/// Reasons of all cancellation rows of a kind, in order, each with what it cancels.
pub fn cancellations(history: &[Event], wanted: &str) -> Vec<(u64, String)> {
    let rows = history.iter().filter(|event| kinds(std::slice::from_ref(event)) == [wanted]);
    rows.map(|event| match &event.kind {
        EventKind::ActivityCancelRequested { reason }
        | EventKind::SubOrchestrationCancelRequested { reason }
        | EventKind::ExternalSubscribedCancelled { reason }
        | EventKind::QueueSubscriptionCancelled { reason } => {
            (event.source_event_id.unwrap_or_default(), reason.clone())
        }
        other => panic!("no cancellation: {other:?}"),
    })
    .collect()
}

/// A client's start.
pub fn start(instance: &str, orchestration: &str, input: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: orchestration.to_owned(),
        input: input.to_owned(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

/// The start of a child of execution `execution` of `parent`, scheduled by event `id`.
pub fn child_start(
    instance: &str,
    orchestration: &str,
    (parent, execution, id): (&str, Option<u64>, u64),
) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: orchestration.to_owned(),
        input: String::new(),
        version: None,
        parent_instance: Some(parent.to_owned()),
        parent_id: Some(id),
        parent_execution_id: execution,
        execution_id: 1,
    }
}

/// A queue message.
pub fn queued(instance: &str, name: &str, data: &str) -> WorkItem {
    WorkItem::QueueMessage { instance: instance.into(), name: name.into(), data: data.into() }
}

/// An external event.
pub fn raised(instance: &str, name: &str, data: &str) -> WorkItem {
    WorkItem::ExternalRaised { instance: instance.into(), name: name.into(), data: data.into() }
}

/// Puts messages into a store, in order.
pub async fn preload(store: &impl Provider, items: impl IntoIterator<Item = WorkItem>) {
    for item in items {
        store.enqueue_for_orchestrator(item, None).await.unwrap();
    }
}

/// What a snapshot's queue holds for an instance.
pub fn messages_for(snapshot: &MemorySnapshot, instance: &str) -> Vec<WorkItem> {
    let all = snapshot.orchestrator_queue.iter();
    all.filter(|message| message.instance == instance).map(|m| m.item.clone()).collect()
}

impl World {
    /// Puts messages into the store, in order.
    pub async fn send(&self, items: impl IntoIterator<Item = WorkItem>) {
        preload(&*self.memory, items).await;
    }

    /// Waits until a condition on the whole store holds.
    pub async fn until_store(&self, holds: impl Fn(&MemorySnapshot) -> bool) -> MemorySnapshot {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let snapshot = self.memory.snapshot();
            if holds(&snapshot) {
                return snapshot;
            }
            assert!(Instant::now() < deadline, "never got there: {snapshot:#?}");
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until no message waits and no turn runs.
    pub async fn settled(&self) -> MemorySnapshot {
        self.until_store(|store| {
            store.orchestrator_queue.is_empty() && store.instance_locks.is_empty()
        })
        .await
    }

    /// Waits until an instance has an event of this kind.
    pub async fn until_kind(&self, instance: &str, kind: &str) -> Vec<Event> {
        self.until(instance, |history| has(history, kind)).await
    }

    /// Waits until an instance fails, for as long as retries may take in paused time.
    pub async fn error_at_last(&self, instance: &str) -> ErrorDetails {
        let patience = Duration::from_secs(24 * 3600);
        match self.client.wait_for_orchestration(instance, patience).await {
            Ok(OrchestrationStatus::Failed { details, .. }) => details,
            other => panic!("{instance} should have failed: {other:?}"),
        }
    }

    /// Events of one execution.
    pub async fn execution(&self, instance: &str, execution_id: u64) -> Vec<Event> {
        self.memory.read_with_execution(instance, execution_id).await.unwrap()
    }

    /// Stops the runtime, keeps the store.
    pub async fn close(self) -> std::sync::Arc<duroxide::providers::memory::MemoryProvider> {
        let memory = self.memory.clone();
        self.finish().await;
        memory
    }
}
