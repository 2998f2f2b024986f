//! What is recorded and what is new, with the facts of the last start event at hand (R12.1, R12.2).

use super::index::{Class, HistoryIndex};
use crate::model::{ErrorDetails, Event, EventKind, ScheduledActivityIdentifier};

/// A history and what is being appended to it.
#[derive(Debug, Clone)]
pub struct HistoryManager {
    /// Registered name.
    pub orchestration_name: Option<String>,
    /// Handler version.
    pub orchestration_version: Option<String>,
    /// Input.
    pub orchestration_input: Option<String>,
    /// Parent, for a child.
    pub parent_instance: Option<String>,
    /// The parent's schedule event, for a child.
    pub parent_id: Option<u64>,
    /// The parent's execution, for a child.
    pub parent_execution_id: Option<u64>,
    /// Whether it ended in `Ok`.
    pub is_completed: bool,
    /// Whether it ended in an error.
    pub is_failed: bool,
    /// Whether a successor follows.
    pub is_continued_as_new: bool,
    /// Number of start events seen.
    pub current_execution_id: Option<u64>,
    history: Vec<Event>,
    delta: Vec<Event>,
}

impl HistoryManager {
    /// Reads a history.
    pub fn from_history(history: &[Event]) -> Self {
        Self::from_owned(history.to_vec())
    }

    /// Reads a history without copying it.
    pub fn from_owned(history: Vec<Event>) -> Self {
        let starts = history.iter().enumerate().filter(|(_, event)| is_start(event));
        let current_execution_id = Some(starts.clone().count() as u64).filter(|count| *count > 0);
        let last_start = starts.map(|(position, _)| position).next_back();
        let ending = history
            .iter()
            .skip(last_start.unwrap_or(0))
            .find(|event| event.is_terminal())
            .map(|event| &event.kind);
        let mut manager = Self {
            orchestration_name: None,
            orchestration_version: None,
            orchestration_input: None,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            is_completed: matches!(ending, Some(EventKind::OrchestrationCompleted { .. })),
            is_failed: matches!(ending, Some(EventKind::OrchestrationFailed { .. })),
            is_continued_as_new: matches!(
                ending,
                Some(EventKind::OrchestrationContinuedAsNew { .. })
            ),
            current_execution_id,
            history: Vec::new(),
            delta: Vec::new(),
        };
        if let Some(start) = last_start.and_then(|position| history.get(position)) {
            manager.take_start_facts(&start.kind);
        }
        manager.history = history;
        manager
    }

    fn take_start_facts(&mut self, kind: &EventKind) {
        let EventKind::OrchestrationStarted {
            name,
            version,
            input,
            parent_instance,
            parent_id,
            parent_execution_id,
            ..
        } = kind
        else {
            return;
        };
        self.orchestration_name = Some(name.clone());
        self.orchestration_version = Some(version.clone());
        self.orchestration_input = Some(input.clone());
        self.parent_instance.clone_from(parent_instance);
        self.parent_id = *parent_id;
        self.parent_execution_id = *parent_execution_id;
    }

    /// Whether the execution has ended in any way.
    pub fn is_terminal(&self) -> bool {
        self.is_completed || self.is_failed || self.is_continued_as_new
    }

    /// Whether nothing was recorded before.
    pub fn is_empty(&self) -> bool {
        self.history.is_empty()
    }

    /// Number of events recorded before.
    pub fn original_len(&self) -> usize {
        self.history.len()
    }

    /// `Completed`, `Failed`, `ContinuedAsNew` or `Running`.
    pub fn status(&self) -> &'static str {
        if self.is_completed {
            "Completed"
        } else if self.is_failed {
            "Failed"
        } else if self.is_continued_as_new {
            "ContinuedAsNew"
        } else {
            "Running"
        }
    }

    /// Highest id so far, plus 1.
    pub fn next_event_id(&self) -> u64 {
        let highest = self.full_history_iter().map(|event| event.event_id).max();
        highest.unwrap_or(0).saturating_add(1)
    }

    /// Adds an event.
    pub fn append(&mut self, event: Event) {
        self.delta.push(event);
    }

    /// Adds a failure with the next id.
    pub fn append_failed(&mut self, instance_id: &str, execution_id: u64, details: ErrorDetails) {
        let kind = EventKind::OrchestrationFailed { details };
        let id = self.next_event_id();
        self.append(Event::with_event_id(id, instance_id, execution_id, None, kind));
    }

    /// Adds events.
    pub fn extend(&mut self, events: Vec<Event>) {
        self.delta.extend(events);
    }

    /// What was added.
    pub fn delta(&self) -> &[Event] {
        &self.delta
    }

    /// What was added, without copying.
    pub fn into_delta(self) -> Vec<Event> {
        self.delta
    }

    /// The events recorded before, without copying.
    pub fn into_history(self) -> Vec<Event> {
        self.history
    }

    /// The events recorded before.
    pub fn history(&self) -> &[Event] {
        &self.history
    }

    /// Number of events, new ones included.
    pub fn full_history_len(&self) -> usize {
        self.history.len() + self.delta.len()
    }

    /// Whether there is no event at all.
    pub fn is_full_history_empty(&self) -> bool {
        self.full_history_len() == 0
    }

    /// All events, new ones included.
    pub fn full_history_iter(&self) -> impl Iterator<Item = &Event> {
        self.history.iter().chain(&self.delta)
    }

    /// All events as a copy.
    pub fn full_history(&self) -> Vec<Event> {
        self.full_history_iter().cloned().collect()
    }

    /// Handler version, from a new start event if need be; `0.0.0` stands for none (R1.55).
    pub fn version(&self) -> Option<String> {
        let from_delta = || {
            self.delta.iter().find_map(|event| match &event.kind {
                EventKind::OrchestrationStarted { version, .. } => Some(version.clone()),
                _ => None,
            })
        };
        self.orchestration_version.clone().or_else(from_delta).filter(|version| version != "0.0.0")
    }

    /// Input.
    pub fn input(&self) -> Option<&str> {
        self.orchestration_input.as_deref()
    }

    /// Input and parent link (instance, execution if known, schedule event) of the newest start
    /// event, new ones included.
    pub fn extract_context(&self) -> (String, Option<(String, Option<u64>, u64)>) {
        let starts = self.delta.iter().rev().chain(self.history.iter().rev());
        let start = starts.map(|event| &event.kind).find_map(|kind| match kind {
            EventKind::OrchestrationStarted {
                input,
                parent_instance,
                parent_id,
                parent_execution_id,
                ..
            } => {
                let parent = parent_instance.clone().zip(*parent_id);
                Some((input.clone(), parent.map(|(i, id)| (i, *parent_execution_id, id))))
            }
            _ => None,
        });
        start.unwrap_or_default()
    }

    /// Activities that are scheduled and neither completed nor cancel-requested, ascending.
    pub fn compute_inflight_activities(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Vec<ScheduledActivityIdentifier> {
        let mut index = HistoryIndex::default();
        self.full_history_iter().for_each(|event| index.note(event));
        let in_flight = index.in_flight(Class::Activity).into_iter();
        in_flight
            .map(|(activity_id, _)| ScheduledActivityIdentifier {
                instance: instance.to_owned(),
                execution_id,
                activity_id,
            })
            .collect()
    }
}

fn is_start(event: &Event) -> bool {
    matches!(event.kind, EventKind::OrchestrationStarted { .. })
}
