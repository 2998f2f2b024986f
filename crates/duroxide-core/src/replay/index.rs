//! What a history says about its schedules, found in one pass, so that no lookup is ever linear.

use crate::id_map::IdMap;
use crate::model::{Event, EventKind};

/// What was scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Activity,
    Timer,
    Child,
    Wait,
    Dequeue,
}

impl Class {
    /// Whether it is done outside this execution, and its result comes as a message.
    pub(super) fn is_work(self) -> bool {
        matches!(self, Self::Activity | Self::Child)
    }

    /// The word the error texts use (R3.25).
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Activity => "activity",
            Self::Timer => "timer",
            Self::Child => "suborchestration",
            Self::Wait | Self::Dequeue => "wait",
        }
    }

    pub(super) fn of(kind: &EventKind) -> Option<Self> {
        match kind {
            EventKind::ActivityScheduled { .. } => Some(Self::Activity),
            EventKind::TimerCreated { .. } => Some(Self::Timer),
            EventKind::SubOrchestrationScheduled { .. } => Some(Self::Child),
            EventKind::ExternalSubscribed { .. } => Some(Self::Wait),
            EventKind::QueueSubscribed { .. } => Some(Self::Dequeue),
            _ => None,
        }
    }
}

/// A schedule event and what became of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    pub(super) class: Class,
    /// Where its event stands in history followed by delta.
    pub(super) position: usize,
    pub(super) completed: bool,
    pub(super) cancel_requested: bool,
}

#[derive(Debug, Default)]
pub(super) struct HistoryIndex {
    schedules: IdMap<Schedule>,
    noted: usize,
    pub(super) cancel_reason: Option<String>,
    pub(super) is_terminal: bool,
    /// Completed or failed, as opposed to continued as new.
    pub(super) is_ended: bool,
}

impl HistoryIndex {
    pub(super) fn of(history: &[Event]) -> Self {
        let mut index = Self::default();
        for event in history {
            index.note(event);
        }
        index
    }

    /// Takes in the next event.
    pub(super) fn note(&mut self, event: &Event) {
        let position = self.noted;
        self.noted += 1;
        if let Some(class) = Class::of(&event.kind) {
            let schedule = Schedule { class, position, completed: false, cancel_requested: false };
            self.schedules.insert(event.event_id, schedule);
            return;
        }
        match &event.kind {
            EventKind::ActivityCompleted { .. }
            | EventKind::ActivityFailed { .. }
            | EventKind::TimerFired { .. }
            | EventKind::SubOrchestrationCompleted { .. }
            | EventKind::SubOrchestrationFailed { .. } => {
                self.change(event, |schedule| schedule.completed = true);
            }
            EventKind::ActivityCancelRequested { .. }
            | EventKind::SubOrchestrationCancelRequested { .. }
            | EventKind::ExternalSubscribedCancelled { .. }
            | EventKind::QueueSubscriptionCancelled { .. } => {
                self.change(event, |schedule| schedule.cancel_requested = true);
            }
            EventKind::OrchestrationCancelRequested { reason } => {
                self.cancel_reason.get_or_insert_with(|| reason.clone());
            }
            _ => {
                self.is_terminal |= event.is_terminal();
                self.is_ended |= event.is_terminal()
                    && !matches!(event.kind, EventKind::OrchestrationContinuedAsNew { .. });
            }
        }
    }

    pub(super) fn get(&self, event_id: u64) -> Option<&Schedule> {
        self.schedules.get(event_id)
    }

    /// Activities or children that are neither completed nor cancel-requested, ascending.
    pub(super) fn in_flight(&self, class: Class) -> Vec<(u64, Schedule)> {
        let mut found: Vec<(u64, Schedule)> = self
            .schedules
            .iter()
            .filter(|(_, s)| s.class == class && !s.completed && !s.cancel_requested)
            .map(|(id, schedule)| (id, *schedule))
            .collect();
        found.sort_unstable_by_key(|(id, _)| *id);
        found
    }

    fn change(&mut self, event: &Event, change: impl FnOnce(&mut Schedule)) {
        if let Some(schedule) = event.source_event_id.and_then(|id| self.schedules.get_mut(id)) {
            change(schedule);
        }
    }
}
