//! Histories that the reference crate recorded (0.1.32) go on here: turn by turn, with equivalent
//! code and the same messages, we add the events it added.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use duroxide_core::context::{FnOrchestration, OrchestrationContext, OrchestrationHandler};
use duroxide_core::model::{Event, EventKind, KvEntry, WorkItem};
use duroxide_core::replay::{
    ForeignWait, HistoryManager, Turn, TurnOutcome, TurnStatus, WorkItemReader, run_turn,
};

type Code = Arc<dyn OrchestrationHandler>;

fn code<F, Fut>(code: F) -> Code
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    Arc::new(FnOrchestration(code))
}

/// A little of everything, then continue-as-new.
async fn main(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    if input == "second" {
        return main_continued(ctx).await;
    }
    let second = Duration::from_secs(1);
    ctx.set_custom_status("step1");
    ctx.set_kv_value("k", "v");
    let _ = ctx.schedule_activity("Echo", "hi").await;
    let _ = ctx.schedule_activity("Fail", "").await;
    let _ = ctx.new_guid().await;
    let _ = ctx.utc_now().await;
    let _ = ctx.get_kv_value_from_instance("nope", "k").await;
    let _ = ctx.schedule_activity_on_session("Ctx", "", "sess-1").await;
    let _ = ctx.schedule_sub_orchestration("Child", "good").await;
    let bad = ctx.schedule_sub_orchestration("Child", "bad").await;
    ctx.set_custom_status(format!("{bad:?}"));
    ctx.select2(ctx.schedule_activity("Slow", ""), ctx.schedule_timer(second)).await;
    ctx.select2(ctx.schedule_wait("E1"), ctx.schedule_timer(second)).await;
    ctx.select2(ctx.dequeue_event("q2"), ctx.schedule_timer(second)).await;
    let go = ctx.schedule_wait("Go").await;
    ctx.schedule_orchestration("Child", "detached-1", go);
    ctx.continue_as_new("second").await
}

async fn main_continued(ctx: OrchestrationContext) -> Result<String, String> {
    let message = ctx.dequeue_event("q").await;
    let child = ctx.schedule_sub_orchestration("Child", "x").await;
    let (status, value) = (ctx.get_custom_status(), ctx.get_kv_value("k"));
    Ok(format!("done:{message}:{child:?}:{status:?}:{value:?}"))
}

fn history(text: &str) -> Vec<Event> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The next turn of an execution whose first `len` events are stored.
fn next_turn(history: &[Event], len: usize, message: WorkItem, handler: Code) -> TurnOutcome {
    let first = &history[0];
    let stored = history[..len].to_vec();
    let manager = HistoryManager::from_history(&stored);
    let messages = WorkItemReader::from_messages(&[message], &manager, &first.instance_id);
    let snapshot = KvEntry { value: "v".to_owned(), last_updated_at_ms: 1 };
    run_turn(Turn {
        instance: first.instance_id.clone(),
        execution_id: first.execution_id,
        history: stored,
        version: "1.0.0".to_owned(),
        messages,
        handler,
        kv_snapshot: HashMap::from([("k".to_owned(), snapshot)])
            .into_iter()
            .filter(|_| first.execution_id == 2)
            .collect(),
        now_ms: 1_800_000_000_000,
        system_calls: None,
        foreign_wait: ForeignWait::Fail,
        parent_execution_fallback: 1,
    })
}

/// The message that an event records.
fn message_of(event: &Event) -> WorkItem {
    let (instance, execution_id) = (event.instance_id.clone(), event.execution_id);
    let id = event.source_event_id.unwrap_or_default();
    let (parent_instance, parent_execution_id, parent_id) = (instance.clone(), execution_id, id);
    match event.kind.clone() {
        EventKind::OrchestrationStarted {
            name,
            input,
            parent_instance,
            parent_id,
            parent_execution_id,
            carry_forward_events,
            initial_custom_status,
            ..
        } => match carry_forward_events {
            None => WorkItem::StartOrchestration {
                instance,
                orchestration: name,
                input,
                version: None,
                parent_instance,
                parent_id,
                parent_execution_id,
                execution_id: 1,
            },
            Some(carry_forward_events) => WorkItem::ContinueAsNew {
                instance,
                orchestration: name,
                input,
                version: None,
                parent_instance,
                parent_id,
                parent_execution_id,
                carry_forward_events,
                initial_custom_status,
            },
        },
        EventKind::ActivityCompleted { result } => {
            WorkItem::ActivityCompleted { instance, execution_id, id, result }
        }
        EventKind::ActivityFailed { details } => {
            WorkItem::ActivityFailed { instance, execution_id, id, details }
        }
        EventKind::TimerFired { fire_at_ms } => {
            WorkItem::TimerFired { instance, execution_id, id, fire_at_ms }
        }
        EventKind::SubOrchestrationCompleted { result } => {
            WorkItem::SubOrchCompleted { parent_instance, parent_execution_id, parent_id, result }
        }
        EventKind::SubOrchestrationFailed { details } => {
            WorkItem::SubOrchFailed { parent_instance, parent_execution_id, parent_id, details }
        }
        EventKind::QueueEventDelivered { name, data } => {
            WorkItem::QueueMessage { instance, name, data }
        }
        EventKind::ExternalEvent { name, data } => {
            WorkItem::ExternalRaised { instance, name, data }
        }
        EventKind::OrchestrationCancelRequested { reason } => {
            WorkItem::CancelInstance { instance, reason }
        }
        other => panic!("no message: {other:?}"),
    }
}

/// What must be equal: times are those of the turn.
fn timeless(event: &Event) -> (u64, Option<u64>, EventKind) {
    let kind = match event.kind.clone() {
        EventKind::TimerCreated { .. } => EventKind::TimerCreated { fire_at_ms: 0 },
        EventKind::KeyValueSet { key, value, .. } => {
            EventKind::KeyValueSet { key, value, last_updated_at_ms: 0 }
        }
        kind => kind,
    };
    (event.event_id, event.source_event_id, kind)
}

/// Plays an execution turn by turn, one message each, beginning at the events that `starts` names;
/// the outcome of the last turn.
fn assert_goes_on(text: &str, starts: &[u64], handler: &Code) -> TurnOutcome {
    let history = history(text);
    let mut last = None;
    for (turn, start) in starts.iter().enumerate() {
        let from = *start as usize - 1;
        let to = starts.get(turn + 1).map_or(history.len(), |next| *next as usize - 1);
        let outcome = next_turn(&history, from, message_of(&history[from]), handler.clone());
        let added: Vec<_> = outcome.events.iter().map(timeless).collect();
        let recorded: Vec<_> = history[from..to].iter().map(timeless).collect();
        assert_eq!(added, recorded, "the turn that begins with event {start}");
        last = Some(outcome);
    }
    last.expect("a turn")
}

#[test]
fn r2_73_r3_92_a_recorded_execution_goes_on() {
    let starts = [1, 5, 7, 9, 11, 13, 15, 17, 19, 23, 27, 31, 34, 35];
    let text = include_str!("history-main-1.1.jsonl");
    let outcome = assert_goes_on(text, &starts, &code(main));
    assert_eq!(outcome.status, TurnStatus::ContinuedAsNew("second".to_owned()));
    // The detached start goes out, which the reference crate forgot (L34); the unread message and
    // the status are carried over.
    let [WorkItem::StartOrchestration { instance, .. }, next] = &outcome.messages[..] else {
        panic!("{:?}", outcome.messages);
    };
    assert_eq!(instance, "detached-1");
    assert_eq!(*next, message_of(&history(include_str!("history-main-1.2.jsonl"))[0]));
}

#[test]
fn r2_73_r4_43_a_recorded_successor_goes_on() {
    let outcome = assert_goes_on(include_str!("history-main-1.2.jsonl"), &[1, 5], &code(main));
    assert!(matches!(outcome.status, TurnStatus::Completed(_)));
}

#[test]
fn r2_73_r3_109_a_recorded_cancellation_of_parent_and_child() {
    let parent = code(|ctx, _| async move { ctx.schedule_sub_orchestration("Waits", "").await });
    let outcome = assert_goes_on(include_str!("history-parent.jsonl"), &[1, 3], &parent);
    let cancel = WorkItem::CancelInstance {
        instance: "pw-1::sub::2".to_owned(),
        reason: "parent canceled".to_owned(),
    };
    assert_eq!(outcome.messages, [cancel]);
    let child = code(|ctx, _| async move { Ok(ctx.schedule_wait("never").await) });
    assert_goes_on(include_str!("history-child.jsonl"), &[1, 3], &child);
}

#[test]
fn r2_73_recorded_histories_are_written_as_they_were_read() {
    for text in [
        include_str!("history-main-1.1.jsonl"),
        include_str!("history-main-1.2.jsonl"),
        include_str!("history-parent.jsonl"),
        include_str!("history-child.jsonl"),
    ] {
        super::assert_golden(text, &history(text));
    }
}
