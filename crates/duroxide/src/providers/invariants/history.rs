//! What must be true of one history, looked at by itself.

use std::collections::{HashMap, HashSet};

use duroxide_core::model::{Event, EventKind, UNREADABLE_HISTORY_EVENT_ID};

/// All that is wrong with the history of one execution.
pub(super) fn check_history(instance: &str, execution_id: u64, events: &[Event]) -> Vec<String> {
    let mut check = Check {
        at: format!("instance {instance}, execution {execution_id}"),
        violations: Vec::new(),
    };
    if events.is_empty() {
        return vec![format!("{}: has no events", check.at)];
    }
    check.owner(instance, execution_id, events);
    check.ids(events);
    check.start(events);
    check.end(events);
    check.sources(events);
    check.violations
}

/// The first event that ends the execution.
pub(super) fn terminal_event(events: &[Event]) -> Option<&Event> {
    events.iter().find(|event| event.is_terminal())
}

struct Check {
    at: String,
    violations: Vec<String>,
}

impl Check {
    fn complain(&mut self, event: &Event, what: &str) {
        self.violations.push(format!("{}, event {}: {what}", self.at, event.event_id));
    }

    /// Every event says whose it is.
    fn owner(&mut self, instance: &str, execution_id: u64, events: &[Event]) {
        for event in events {
            if event.instance_id != instance || event.execution_id != execution_id {
                let (whose, which) = (&event.instance_id, event.execution_id);
                self.complain(
                    event,
                    &format!("says it belongs to instance {whose}, execution {which}"),
                );
            }
        }
    }

    /// Ids run from 1 without a gap (R2.10), except for the failure of an unreadable history
    /// (R2.15), and for the one id that continue-as-new may consume (R2.12).
    fn ids(&mut self, events: &[Event]) {
        let continued = terminal_event(events)
            .is_some_and(|e| matches!(e.kind, EventKind::OrchestrationContinuedAsNew { .. }));
        let mut gaps_allowed = u64::from(continued);
        let mut expected = 1;
        for event in events {
            let gap = event.event_id.checked_sub(expected);
            match gap {
                Some(0) => {}
                Some(gap) if gap <= gaps_allowed => gaps_allowed -= gap,
                _ if event.event_id == UNREADABLE_HISTORY_EVENT_ID => {}
                _ => self.complain(event, &format!("should have id {expected}")),
            }
            expected = event.event_id + 1;
        }
    }

    /// The start event comes first, and once.
    fn start(&mut self, events: &[Event]) {
        for (position, event) in events.iter().enumerate() {
            let is_start = matches!(event.kind, EventKind::OrchestrationStarted { .. });
            match (position, is_start) {
                (0, false) => self.complain(event, "the history does not begin with its start"),
                (1.., true) => self.complain(event, "is another start"),
                _ => {}
            }
        }
    }

    /// After the end only the cancellations of activities in flight follow (R1.35).
    fn end(&mut self, events: &[Event]) {
        let mut ended = false;
        for event in events {
            if ended && !matches!(event.kind, EventKind::ActivityCancelRequested { .. }) {
                let what = if event.is_terminal() { "is another end" } else { "follows the end" };
                self.complain(event, what);
            }
            ended |= event.is_terminal();
        }
    }

    /// Answers and cancellations point at one earlier schedule event of their kind, and nothing is
    /// answered or cancelled twice.
    fn sources(&mut self, events: &[Event]) {
        let mut scheduled = HashMap::new();
        let mut answered = HashSet::new();
        let mut cancelled = HashSet::new();
        for event in events {
            if let Some(kind) = schedules(&event.kind) {
                scheduled.insert(event.event_id, kind);
            }
            let Some((role, kind)) = answers(&event.kind) else { continue };
            let Some(source) = event.source_event_id else {
                self.complain(event, "points at no schedule event");
                continue;
            };
            if scheduled.get(&source) != Some(&kind) {
                self.complain(event, &format!("points at event {source}, no earlier {kind:?}"));
            }
            let (seen, what) = match role {
                Role::Answer => (&mut answered, "answers"),
                Role::Cancellation => (&mut cancelled, "cancels"),
            };
            if !seen.insert(source) {
                self.complain(event, &format!("{what} event {source} again"));
            }
        }
        let requests =
            |event: &&Event| matches!(event.kind, EventKind::OrchestrationCancelRequested { .. });
        for event in events.iter().filter(requests).skip(1) {
            self.complain(event, "requests the cancellation again"); // R2.26
        }
    }
}

/// What can be scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Activity,
    Timer,
    Child,
    Wait,
    Dequeue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Answer,
    Cancellation,
}

fn schedules(event: &EventKind) -> Option<Kind> {
    match event {
        EventKind::ActivityScheduled { .. } => Some(Kind::Activity),
        EventKind::TimerCreated { .. } => Some(Kind::Timer),
        EventKind::SubOrchestrationScheduled { .. } => Some(Kind::Child),
        EventKind::ExternalSubscribed { .. } => Some(Kind::Wait),
        #[cfg(feature = "replay-version-test")]
        EventKind::ExternalSubscribed2 { .. } => Some(Kind::Wait),
        EventKind::QueueSubscribed { .. } => Some(Kind::Dequeue),
        _ => None,
    }
}

fn answers(event: &EventKind) -> Option<(Role, Kind)> {
    match event {
        EventKind::ActivityCompleted { .. } | EventKind::ActivityFailed { .. } => {
            Some((Role::Answer, Kind::Activity))
        }
        EventKind::TimerFired { .. } => Some((Role::Answer, Kind::Timer)),
        EventKind::SubOrchestrationCompleted { .. } | EventKind::SubOrchestrationFailed { .. } => {
            Some((Role::Answer, Kind::Child))
        }
        EventKind::ActivityCancelRequested { .. } => Some((Role::Cancellation, Kind::Activity)),
        EventKind::SubOrchestrationCancelRequested { .. } => {
            Some((Role::Cancellation, Kind::Child))
        }
        EventKind::ExternalSubscribedCancelled { .. } => Some((Role::Cancellation, Kind::Wait)),
        EventKind::QueueSubscriptionCancelled { .. } => Some((Role::Cancellation, Kind::Dequeue)),
        _ => None,
    }
}
