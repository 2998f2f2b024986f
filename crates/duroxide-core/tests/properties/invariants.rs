//! What holds for every history we write.

use std::collections::HashSet;

use duroxide_core::model::{Event, EventKind};

/// The kind of schedule that an answer or breadcrumb belongs to.
fn scheduled_by(kind: &EventKind) -> Option<fn(&EventKind) -> bool> {
    Some(match kind {
        EventKind::ActivityCompleted { .. }
        | EventKind::ActivityFailed { .. }
        | EventKind::ActivityCancelRequested { .. } => {
            |kind| matches!(kind, EventKind::ActivityScheduled { .. })
        }
        EventKind::TimerFired { .. } => |kind| matches!(kind, EventKind::TimerCreated { .. }),
        EventKind::SubOrchestrationCompleted { .. }
        | EventKind::SubOrchestrationFailed { .. }
        | EventKind::SubOrchestrationCancelRequested { .. } => {
            |kind| matches!(kind, EventKind::SubOrchestrationScheduled { .. })
        }
        EventKind::ExternalSubscribedCancelled { .. } => {
            |kind| matches!(kind, EventKind::ExternalSubscribed { .. })
        }
        EventKind::QueueSubscriptionCancelled { .. } => {
            |kind| matches!(kind, EventKind::QueueSubscribed { .. })
        }
        _ => return None,
    })
}

fn is_breadcrumb(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::ActivityCancelRequested { .. }
            | EventKind::SubOrchestrationCancelRequested { .. }
            | EventKind::ExternalSubscribedCancelled { .. }
            | EventKind::QueueSubscriptionCancelled { .. }
    )
}

/// Ids without a gap, answers to what was asked, each once, one end and nothing after it but the
/// cancellation of activities.
pub(crate) fn assert_sound(history: &[Event]) {
    let mut answered = HashSet::new();
    let mut cancelled = HashSet::new();
    let mut ended = false;
    for (position, event) in history.iter().enumerate() {
        assert_eq!(event.event_id, position as u64 + 1, "R2.10: {history:#?}");
        if ended {
            assert!(
                matches!(event.kind, EventKind::ActivityCancelRequested { .. }),
                "after the end: {event:?}"
            );
        }
        assert!(!(ended && event.is_terminal()), "R2.28: two ends");
        ended |= event.is_terminal();
        let is_start = matches!(event.kind, EventKind::OrchestrationStarted { .. });
        assert_eq!(is_start, position == 0, "R2.20");
        let Some(is_schedule) = scheduled_by(&event.kind) else {
            assert_eq!(event.source_event_id, None, "{event:?}");
            continue;
        };
        let source = event.source_event_id.expect("a source");
        let schedule = &history[..position][source as usize - 1];
        assert!(is_schedule(&schedule.kind), "{event:?} of {schedule:?}");
        let seen = if is_breadcrumb(&event.kind) { &mut cancelled } else { &mut answered };
        assert!(seen.insert(source), "twice: {event:?}");
    }
}
