//! From events, actions, messages and results to text.

use super::NOW_MS;
use crate::model::{Action, AppErrorKind, ErrorDetails, Event, EventKind, WorkItem};
use crate::replay::TurnResult;

/// One indented line per event.
pub(crate) fn events(events: &[Event]) -> String {
    events.iter().map(|event| format!("  {}\n", event_line(event))).collect()
}

pub(crate) fn result(result: &TurnResult) -> String {
    match result {
        TurnResult::Continue => "continue".to_owned(),
        TurnResult::Completed(output) => format!("completed {output:?}"),
        TurnResult::Failed(details) => format!("failed {}", error(details)),
        TurnResult::Cancelled(reason) => format!("cancelled {reason:?}"),
        TurnResult::ContinueAsNew { input, version, unconsumed_queue_arrivals } => {
            let version = option("version", version.as_deref());
            let unread = match unconsumed_queue_arrivals {
                None => " unread=by-history".to_owned(),
                Some(unread) => carried("unread", unread),
            };
            format!("continue-as-new {input:?}{version}{unread}")
        }
    }
}

pub(crate) fn action(action: &Action) -> String {
    match action {
        Action::CallActivity { scheduling_event_id: id, .. } => format!("activity {id}"),
        Action::CreateTimer { scheduling_event_id: id, .. } => format!("timer {id}"),
        Action::WaitExternal { scheduling_event_id: id, .. } => format!("wait {id}"),
        Action::DequeueEvent { scheduling_event_id: id, .. } => format!("dequeue {id}"),
        Action::StartOrchestrationDetached { scheduling_event_id: id, .. } => {
            format!("detached {id}")
        }
        Action::StartSubOrchestration { scheduling_event_id: id, instance, .. } => {
            format!("child {id} {instance}")
        }
        Action::ContinueAsNew { .. } => "continue-as-new".to_owned(),
        Action::UpdateCustomStatus { .. } => "status".to_owned(),
        Action::SetKeyValue { key, .. } => format!("set {key}"),
        Action::ClearKeyValue { key } => format!("clear {key}"),
        Action::ClearKeyValues => "clear-all".to_owned(),
        #[cfg(feature = "replay-version-test")]
        Action::WaitExternal2 { scheduling_event_id: id, .. } => format!("wait2 {id}"),
    }
}

pub(crate) fn work_item(item: &WorkItem) -> String {
    match item {
        WorkItem::ActivityExecute { id, name, input, session_id, tag, .. } => {
            let (on, tag) = (option("on", session_id.as_deref()), option("tag", tag.as_deref()));
            format!("run {id} {name} {input:?}{on}{tag}")
        }
        WorkItem::TimerFired { id, fire_at_ms, .. } => {
            format!("timer-fired {id} {}", time(*fire_at_ms))
        }
        WorkItem::StartOrchestration {
            instance,
            orchestration,
            input,
            version,
            parent_instance,
            parent_id,
            parent_execution_id,
            ..
        } => {
            let version = option("version", version.as_deref());
            let parent = parent(parent_instance.as_deref(), *parent_id, *parent_execution_id);
            format!("start {instance} {orchestration} {input:?}{version}{parent}")
        }
        WorkItem::CancelInstance { instance, reason } => format!("cancel {instance} {reason:?}"),
        WorkItem::SubOrchCompleted { parent_instance, parent_execution_id, parent_id, result } => {
            format!(
                "child-completed {parent_instance}/{parent_execution_id}/{parent_id} {result:?}"
            )
        }
        WorkItem::SubOrchFailed { parent_instance, parent_execution_id, parent_id, details } => {
            let details = error(details);
            format!("child-failed {parent_instance}/{parent_execution_id}/{parent_id} {details}")
        }
        WorkItem::ContinueAsNew {
            orchestration,
            input,
            version,
            parent_instance,
            parent_id,
            parent_execution_id,
            carry_forward_events,
            initial_custom_status,
            ..
        } => {
            let version = option("version", version.as_deref());
            let parent = parent(parent_instance.as_deref(), *parent_id, *parent_execution_id);
            let carried = carried("carry", carry_forward_events);
            let status = option("status", initial_custom_status.as_deref());
            format!("continue {orchestration} {input:?}{version}{parent}{carried}{status}")
        }
        WorkItem::QueueMessage { name, data, .. } => format!("queue {name} {data:?}"),
        other => format!("{other:?}"),
    }
}

fn event_line(event: &Event) -> String {
    let id = number(event.event_id);
    let source = event.source_event_id.map_or_else(|| "-".to_owned(), number);
    let text = match &event.kind {
        EventKind::ActivityCompleted { result } => {
            format!("activity-completed {source} {result:?}")
        }
        EventKind::ActivityFailed { details } => {
            format!("activity-failed {source} {}", error(details))
        }
        EventKind::ActivityCancelRequested { reason } => {
            format!("activity-cancelled {source} {reason}")
        }
        EventKind::TimerFired { fire_at_ms } => {
            format!("timer-fired {source} {}", time(*fire_at_ms))
        }
        EventKind::SubOrchestrationCompleted { result } => {
            format!("child-completed {source} {result:?}")
        }
        EventKind::SubOrchestrationFailed { details } => {
            format!("child-failed {source} {}", error(details))
        }
        EventKind::SubOrchestrationCancelRequested { reason } => {
            format!("child-cancelled {source} {reason}")
        }
        EventKind::ExternalSubscribedCancelled { reason } => {
            format!("wait-cancelled {source} {reason}")
        }
        EventKind::QueueSubscriptionCancelled { reason } => {
            format!("dequeue-cancelled {source} {reason}")
        }
        kind => {
            assert_eq!(event.source_event_id, None, "only answers have a source: {event:?}");
            sourceless(kind)
        }
    };
    format!("{id} {text}")
}

fn sourceless(kind: &EventKind) -> String {
    match kind {
        EventKind::OrchestrationStarted {
            name,
            version,
            input,
            parent_instance,
            parent_id,
            parent_execution_id,
            carry_forward_events,
            initial_custom_status,
        } => {
            let parent = parent(parent_instance.as_deref(), *parent_id, *parent_execution_id);
            let carried = carried("carry", carry_forward_events.as_deref().unwrap_or_default());
            let status = option("status", initial_custom_status.as_deref());
            format!("started {name} v{version} {input:?}{parent}{carried}{status}")
        }
        EventKind::OrchestrationCompleted { output } => format!("completed {output:?}"),
        EventKind::OrchestrationFailed { details } => format!("failed {}", error(details)),
        EventKind::OrchestrationContinuedAsNew { input } => format!("continued {input:?}"),
        EventKind::OrchestrationCancelRequested { reason } => {
            format!("cancel-requested {reason:?}")
        }
        EventKind::ActivityScheduled { name, input, session_id, tag } => {
            let (on, tag) = (option("on", session_id.as_deref()), option("tag", tag.as_deref()));
            format!("activity {name} {input:?}{on}{tag}")
        }
        EventKind::TimerCreated { fire_at_ms } => format!("timer {}", time(*fire_at_ms)),
        EventKind::ExternalSubscribed { name } => format!("wait {name}"),
        EventKind::ExternalEvent { name, data } => format!("raised {name} {data:?}"),
        EventKind::QueueSubscribed { name } => format!("dequeue {name}"),
        EventKind::QueueEventDelivered { name, data } => format!("queue {name} {data:?}"),
        EventKind::SubOrchestrationScheduled { name, instance, input } => {
            format!("child {name} {instance} {input:?}")
        }
        EventKind::OrchestrationChained { name, instance, input } => {
            format!("detached {name} {instance} {input:?}")
        }
        EventKind::CustomStatusUpdated { status: Some(status) } => format!("status {status:?}"),
        EventKind::CustomStatusUpdated { status: None } => "status-reset".to_owned(),
        EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
            format!("set {key} {value:?} {}", time(*last_updated_at_ms))
        }
        EventKind::KeyValueCleared { key } => format!("clear {key}"),
        EventKind::KeyValuesCleared => "clear-all".to_owned(),
        other => format!("{other:?}"),
    }
}

/// Families of errors in one word each; the text stands as it is.
fn error(details: &ErrorDetails) -> String {
    match details {
        ErrorDetails::Infrastructure { operation, message, .. } => {
            format!("infrastructure {operation}: {message}")
        }
        ErrorDetails::Configuration { message, .. } => {
            format!("nondeterminism: {}", message.as_deref().unwrap_or_default())
        }
        ErrorDetails::Application { kind, message, .. } => match kind {
            AppErrorKind::ActivityFailed => format!("activity error: {message}"),
            AppErrorKind::OrchestrationFailed => format!("error: {message}"),
            AppErrorKind::Panicked => format!("panic: {message}"),
            AppErrorKind::Cancelled { reason } => format!("canceled: {reason}{message}"),
        },
        ErrorDetails::Poison { .. } => details.display_message(),
    }
}

fn option(name: &str, value: Option<&str>) -> String {
    value.map_or_else(String::new, |value| format!(" {name}={value:?}"))
}

fn carried(name: &str, pairs: &[(String, String)]) -> String {
    pairs.iter().map(|(queue, message)| format!(" {name}={queue}:{message}")).collect()
}

/// `parent=instance/execution/schedule`, `?` for what is not known.
fn parent(instance: Option<&str>, id: Option<u64>, execution: Option<u64>) -> String {
    let known = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), self::number);
    match instance {
        None => String::new(),
        Some(instance) => format!(" parent={instance}/{}/{}", known(execution), known(id)),
    }
}

fn number(number: u64) -> String {
    if number == u64::MAX { "max".to_owned() } else { number.to_string() }
}

fn time(ms: u64) -> String {
    match ms.checked_sub(NOW_MS) {
        _ if ms == u64::MAX => "max".to_owned(),
        None => format!("@{ms}"),
        Some(later) if later % 1000 == 0 => format!("{}s", later / 1000),
        Some(later) => format!("{later}ms"),
    }
}
