//! The engine as tools use it: history and messages in, result, events and actions out.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use duroxide::providers::memory::MemoryProvider;
use duroxide::providers::{KvEntry, WorkItem};
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::replay_engine::{ReplayEngine, TurnResult};
use duroxide::runtime::{FnOrchestration, HistoryManager, Runtime, WorkItemReader};
use duroxide::{
    Action, AppErrorKind, ErrorDetails, Event, EventKind, OrchestrationContext,
    OrchestrationHandler, OrchestrationRegistry,
};

use crate::samples;

const INSTANCE: &str = "i";

fn at(event_id: u64, source: Option<u64>, kind: EventKind) -> Event {
    Event::with_event_id(event_id, INSTANCE, 1, source, kind)
}

fn started() -> Event {
    at(
        1,
        None,
        EventKind::OrchestrationStarted {
            name: "Hello".into(),
            version: "1.2.0".into(),
            input: "in".into(),
            parent_instance: Some("p".into()),
            parent_id: Some(4),
            parent_execution_id: Some(2),
            carry_forward_events: None,
            initial_custom_status: None,
        },
    )
}

fn scheduled(event_id: u64) -> Event {
    let kind = EventKind::ActivityScheduled {
        name: "A".into(),
        input: "in".into(),
        session_id: None,
        tag: None,
    };
    at(event_id, None, kind)
}

fn completion() -> WorkItem {
    WorkItem::ActivityCompleted {
        instance: INSTANCE.into(),
        execution_id: 1,
        id: 2,
        result: "r".into(),
    }
}

struct CallsA;

#[async_trait]
impl OrchestrationHandler for CallsA {
    async fn invoke(&self, ctx: OrchestrationContext, input: String) -> Result<String, String> {
        ctx.schedule_activity("A", input).await
    }
}

/// Runs one turn of a handler over a history.
fn turn(engine: &mut ReplayEngine, handler: Arc<dyn OrchestrationHandler>) -> TurnResult {
    engine.execute_orchestration(handler, "in".into(), "Hello".into(), "1.2.0".into(), "w")
}

// R12.10, R12.12
#[test]
fn r12_10_a_turn_that_waits_and_one_that_ends() {
    let mut engine = ReplayEngine::new(INSTANCE.into(), 1, vec![started()]);
    assert!(!engine.made_progress());
    assert!(matches!(turn(&mut engine, Arc::new(CallsA)), TurnResult::Continue));
    assert_eq!(engine.history_delta()[0].kind, scheduled(2).kind);
    let [Action::CallActivity { scheduling_event_id: 2, name, .. }] = engine.pending_actions()
    else {
        panic!("{:?}", engine.pending_actions());
    };
    assert_eq!((name.as_str(), engine.made_progress()), ("A", true));
    assert!(engine.cancelled_activity_ids().is_empty());
    assert!(engine.cancelled_sub_orchestration_ids().is_empty());

    let history = engine.final_history();
    let len = history.len();
    let mut engine = ReplayEngine::new(INSTANCE.into(), 1, history)
        .with_persisted_history_len(len)
        .with_kv_snapshot(HashMap::new());
    engine.prep_completions(vec![completion()]);
    let result = turn(&mut engine, Arc::new(CallsA));
    assert!(matches!(result, TurnResult::Completed(output) if output == "r"));
    assert_eq!(engine.final_history().len(), 3);
}

#[test]
fn r12_11_the_other_results() {
    let result_of = |handler: Arc<dyn OrchestrationHandler>, messages: Vec<WorkItem>| {
        let entry = KvEntry { value: "v".into(), last_updated_at_ms: 1 };
        let mut engine = ReplayEngine::new(INSTANCE.into(), 1, vec![started()])
            .with_kv_snapshot(HashMap::from([("k".into(), entry)]));
        engine.prep_completions(messages);
        turn(&mut engine, handler)
    };
    let failing = FnOrchestration(|ctx: OrchestrationContext, _input| async move {
        Err(ctx.get_kv_value("k").unwrap_or_default())
    });
    assert!(matches!(
        result_of(Arc::new(failing), vec![]),
        TurnResult::Failed(ErrorDetails::Application {
            kind: AppErrorKind::OrchestrationFailed,
            message,
            retryable: false,
        }) if message == "v"
    ));
    let continuing = FnOrchestration(|ctx: OrchestrationContext, _input| async move {
        ctx.continue_as_new_versioned("2.0.0", "next").await
    });
    let message =
        WorkItem::QueueMessage { instance: INSTANCE.into(), name: "q".into(), data: "m".into() };
    let TurnResult::ContinueAsNew { input, version, unconsumed_queue_arrivals } =
        result_of(Arc::new(continuing), vec![message])
    else {
        panic!("not continued");
    };
    assert_eq!((input.as_str(), version.as_deref()), ("next", Some("2.0.0")));
    assert_eq!(unconsumed_queue_arrivals, Some(vec![("q".into(), "m".into())]));
    let cancel = WorkItem::CancelInstance { instance: INSTANCE.into(), reason: "why".into() };
    let cancelled = result_of(Arc::new(CallsA), vec![cancel]);
    assert!(matches!(cancelled, TurnResult::Cancelled(reason) if reason == "why"));
}

#[test]
fn r12_1_r12_2_history_manager() {
    let mut manager = HistoryManager::from_history(&[started(), scheduled(2)]);
    assert_eq!(manager.orchestration_name.as_deref(), Some("Hello"));
    assert_eq!(manager.orchestration_version, manager.version());
    assert_eq!(manager.orchestration_input.as_deref(), manager.input());
    assert_eq!(
        (manager.parent_instance.as_deref(), manager.parent_id, manager.parent_execution_id),
        (Some("p"), Some(4), Some(2))
    );
    assert_eq!(manager.current_execution_id, Some(1));
    assert!(!manager.is_completed && !manager.is_failed && !manager.is_continued_as_new);
    assert_eq!((manager.status(), manager.is_terminal()), ("Running", false));
    assert_eq!(
        (manager.is_empty(), manager.original_len(), manager.next_event_id()),
        (false, 2, 3)
    );
    assert_eq!(manager.extract_context(), ("in".into(), Some(("p".into(), Some(2), 4))));
    let in_flight = manager.compute_inflight_activities(INSTANCE, 1);
    assert_eq!(in_flight.iter().map(|id| id.activity_id).collect::<Vec<_>>(), [2]);

    let completed = EventKind::ActivityCompleted { result: "r".into() };
    manager.append(at(3, Some(2), completed));
    manager.extend(vec![scheduled(4)]);
    manager.append_failed(INSTANCE, 1, samples::error());
    assert_eq!(manager.delta().iter().map(Event::event_id).collect::<Vec<_>>(), [3, 4, 5]);
    assert_eq!((manager.full_history_len(), manager.is_full_history_empty()), (5, false));
    let ids: Vec<u64> = manager.full_history_iter().map(|event| event.event_id).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5]);
    let again = HistoryManager::from_history(&manager.clone().full_history());
    assert_eq!((again.status(), again.is_failed), ("Failed", true));
    assert_eq!(manager.into_delta().len(), 3);
}

#[test]
fn r12_3_work_item_reader() {
    let empty = HistoryManager::from_history(&[]);
    let start = samples::work_items().remove(0);
    let reader = WorkItemReader::from_messages(&[start.clone(), completion()], &empty, INSTANCE);
    assert!(reader.has_start_item() && reader.has_orchestration_name());
    assert_eq!(reader.start_item, Some(start));
    assert_eq!(reader.completion_messages, [completion()]);
    assert_eq!((reader.orchestration_name.as_str(), reader.input.as_str()), ("Child", "in"));
    assert_eq!(reader.version.as_deref(), Some("1.0.0"));
    assert_eq!(reader.parent_instance.as_deref(), Some("p"));
    assert_eq!((reader.parent_id, reader.parent_execution_id), (Some(2), Some(1)));
    assert!(!reader.is_continue_as_new);
    let nothing = WorkItemReader::from_messages(&[], &empty, INSTANCE);
    assert!(!nothing.has_start_item() && !nothing.has_orchestration_name());
}

#[tokio::test]
async fn a_single_turn_through_the_runtime() {
    let runtime = Runtime::start_with_store(
        Arc::new(MemoryProvider::new()),
        ActivityRegistry::builder().build(),
        OrchestrationRegistry::default(),
    )
    .await;
    let mut history = HistoryManager::from_history(&[started()]);
    let reader = WorkItemReader::from_messages(&[], &history, INSTANCE);
    let handler: Arc<dyn OrchestrationHandler> = Arc::new(CallsA);
    let version = "1.2.0".to_owned();
    let (events, activities, messages, cancelled, result) = runtime
        .clone()
        .run_single_execution_atomic(
            INSTANCE,
            &mut history,
            &reader,
            1,
            "w",
            handler.clone(),
            version.clone(),
            HashMap::new(),
        )
        .await;
    assert_eq!(events.iter().map(|event| &event.kind).collect::<Vec<_>>(), [&scheduled(2).kind]);
    assert_eq!(activities.len(), 1);
    assert!(messages.is_empty() && cancelled.is_empty());
    assert_eq!(result, Ok(String::new()));

    let reader = WorkItemReader::from_messages(&[completion()], &history, INSTANCE);
    let mut history = HistoryManager::from_history(&history.full_history());
    let (events, .., result) = runtime
        .clone()
        .run_single_execution_atomic(
            INSTANCE,
            &mut history,
            &reader,
            1,
            "w",
            handler,
            version,
            HashMap::new(),
        )
        .await;
    assert_eq!(result, Ok("r".into()));
    assert!(events.last().is_some_and(Event::is_terminal));
    runtime.shutdown(Some(0)).await;
}
