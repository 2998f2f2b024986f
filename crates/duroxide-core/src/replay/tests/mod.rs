//! Replay, case by case.

use std::sync::Arc;

use super::*;
use crate::context::{FnOrchestration, OrchestrationContext};
use crate::model::{Event, EventKind};

#[test]
fn smoke() {
    let handler =
        Arc::new(FnOrchestration(|ctx: OrchestrationContext, input: String| async move {
            let a = ctx.schedule_activity("A", input).await?;
            let b = ctx.schedule_activity("B", a).await?;
            Ok(b)
        }));
    let started = EventKind::OrchestrationStarted {
        name: "O".into(),
        version: "1.0.0".into(),
        input: "in".into(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let history = vec![Event::with_event_id(1, "i", 1, None, started)];
    let mut engine = ReplayEngine::new("i".into(), 1, history);
    let result =
        engine.execute_orchestration(handler.clone(), "in".into(), "O".into(), "1.0.0".into(), "w");
    assert!(matches!(result, TurnResult::Continue), "{result:?}");
    let mut next = ReplayEngine::new("i".into(), 1, engine.final_history());
    next.prep_completions(vec![crate::model::WorkItem::ActivityCompleted {
        instance: "i".into(),
        execution_id: 1,
        id: 2,
        result: "a".into(),
    }]);
    let result = next.execute_orchestration(handler, "in".into(), "O".into(), "1.0.0".into(), "w");
    assert!(matches!(result, TurnResult::Continue), "{result:?}");
    assert_eq!(next.pending_actions().len(), 1);
    assert_eq!(next.final_history().len(), 4);
}
