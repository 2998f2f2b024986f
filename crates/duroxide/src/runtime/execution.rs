//! One turn without a dispatcher around it, for tools and tests that bring their own.

use std::collections::HashMap;
use std::sync::Arc;

use duroxide_core::model::{Event, ScheduledActivityIdentifier, WorkItem};
use duroxide_core::replay::{
    ForeignWait, HistoryManager, Turn, TurnStatus, WorkItemReader, run_turn,
};

use super::{OrchestrationHandler, Runtime};
use crate::clock::wall_clock_ms;
use crate::providers::KvEntry;

impl Runtime {
    /// Runs one turn over a history: its events, activities, messages, cancelled activities, and
    /// the output or error text if it ended. Nothing is stored; `history_mgr` takes the new events.
    #[doc(hidden)]
    #[expect(clippy::too_many_arguments, reason = "inherited signature")]
    pub async fn run_single_execution_atomic(
        self: Arc<Self>,
        instance: &str,
        history_mgr: &mut HistoryManager,
        workitem_reader: &WorkItemReader,
        execution_id: u64,
        _worker_id: &str,
        handler: Arc<dyn OrchestrationHandler>,
        orchestration_version: String,
        kv_snapshot: HashMap<String, KvEntry>,
    ) -> (
        Vec<Event>,
        Vec<WorkItem>,
        Vec<WorkItem>,
        Vec<ScheduledActivityIdentifier>,
        Result<String, String>,
    ) {
        let outcome = run_turn(Turn {
            instance: instance.to_owned(),
            execution_id,
            history: history_mgr.full_history(),
            messages: copy_of(workitem_reader),
            handler,
            version: orchestration_version,
            kv_snapshot,
            now_ms: wall_clock_ms(),
            system_calls: None,
            foreign_wait: ForeignWait::Warn,
            parent_execution_fallback: duroxide_core::model::INITIAL_EXECUTION_ID,
        });
        history_mgr.extend(outcome.events.clone());
        let cancelled = outcome.cancelled.into_iter();
        let cancelled = cancelled
            .map(|activity_id| ScheduledActivityIdentifier {
                instance: instance.to_owned(),
                execution_id,
                activity_id,
            })
            .collect();
        let result = match outcome.status {
            TurnStatus::Running => Ok(String::new()),
            TurnStatus::Completed(output) | TurnStatus::ContinuedAsNew(output) => Ok(output),
            TurnStatus::Failed(details) => Err(details.display_message()),
        };
        (outcome.events, outcome.activities, outcome.messages, cancelled, result)
    }
}

fn copy_of(reader: &WorkItemReader) -> WorkItemReader {
    WorkItemReader {
        start_item: reader.start_item.clone(),
        completion_messages: reader.completion_messages.clone(),
        orchestration_name: reader.orchestration_name.clone(),
        input: reader.input.clone(),
        version: reader.version.clone(),
        parent_instance: reader.parent_instance.clone(),
        parent_id: reader.parent_id,
        parent_execution_id: reader.parent_execution_id,
        is_continue_as_new: reader.is_continue_as_new,
    }
}
