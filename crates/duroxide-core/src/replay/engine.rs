//! The engine of one turn: take the messages, run the code once, say what came of it.

use std::collections::HashMap;
use std::sync::Arc;

use super::divergence::DivergenceReport;
use super::emit::SystemCalls;
use super::execution::Execution;
use super::index::HistoryIndex;
use super::record::Recorder;
use crate::clock;
use crate::context::{Beginning, Identity, Operation, OrchestrationContext, OrchestrationHandler};
use crate::model::version::ReplayRules;
use crate::model::{Action, ErrorDetails, Event, EventKind, KvEntry};

/// What a turn came to.
#[derive(Debug)]
pub enum TurnResult {
    /// The code waits.
    Continue,
    /// The code returned `Ok`.
    Completed(String),
    /// The code returned `Err`, panicked, or could not be run.
    Failed(ErrorDetails),
    /// The code asked for a next execution.
    ContinueAsNew {
        /// Its input.
        input: String,
        /// Its version, or the registry's policy.
        version: Option<String>,
        /// Unread queue messages in order of arrival; `None` for executions under the old race
        /// policy, where they are told from history.
        unconsumed_queue_arrivals: Option<Vec<(String, String)>>,
    },
    /// The instance was cancelled.
    Cancelled(String),
}

/// What is run.
pub(super) struct Code {
    pub(super) handler: Arc<dyn OrchestrationHandler>,
    pub(super) input: String,
    pub(super) orchestration_name: String,
    pub(super) orchestration_version: String,
}

/// One turn of one execution. See the [module](super) for an example.
pub struct ReplayEngine {
    pub(super) baseline: Vec<Event>,
    /// How many events of the baseline were stored before this turn.
    pub(super) persisted_len: usize,
    pub(super) recorder: Recorder,
    pub(super) index: HistoryIndex,
    pub(super) pending_actions: Vec<Action>,
    pub(super) cancelled_activity_ids: Vec<u64>,
    /// Dropped children: schedule event and id as recorded.
    pub(super) cancelled_children: Vec<(u64, String)>,
    pub(super) system_calls: Option<Box<dyn SystemCalls>>,
    pub(super) answered: usize,
    /// Set while taking messages; the code is not run then.
    pub(super) abort: Option<ErrorDetails>,
    pub(super) report: Option<Box<DivergenceReport>>,
    pub(super) waits_for_foreign: bool,
    pub(super) fail_on_foreign_wait: bool,
    /// Set by a run of the code.
    pub(super) code_failed: bool,
    pub(super) live_keys: usize,
    pub(super) custom_status: Option<String>,
    pub(super) cancelled_child_suffixes: Vec<String>,
    /// Schedules whose futures the code has dropped in this turn, replay included, ascending.
    pub(super) dropped: Vec<(Operation, u64)>,
    /// Timers among them, without those that replay has dropped.
    pub(super) dropped_timers: Vec<u64>,
    /// How much of the history the code has seen.
    pub(super) applied_len: usize,
    /// The code was kept since its last turn: what history says of it is its own doing.
    pub(super) is_resumed: bool,
    kv_snapshot: HashMap<String, KvEntry>,
}

impl ReplayEngine {
    /// An engine over the history of one execution, its start event included.
    pub fn new(instance: String, execution_id: u64, baseline_history: Vec<Event>) -> Self {
        let now_ms = clock::wall_clock_ms();
        Self {
            recorder: Recorder::after(instance, execution_id, &baseline_history, now_ms),
            index: HistoryIndex::of(&baseline_history),
            persisted_len: baseline_history.len(),
            baseline: baseline_history,
            pending_actions: Vec::new(),
            cancelled_activity_ids: Vec::new(),
            cancelled_children: Vec::new(),
            cancelled_child_suffixes: Vec::new(),
            dropped: Vec::new(),
            dropped_timers: Vec::new(),
            system_calls: None,
            answered: 0,
            abort: None,
            report: None,
            waits_for_foreign: false,
            fail_on_foreign_wait: false,
            code_failed: false,
            live_keys: 0,
            custom_status: None,
            applied_len: 0,
            is_resumed: false,
            kv_snapshot: HashMap::new(),
        }
    }

    /// How many events of the baseline were stored before this turn; all, if not said.
    pub fn with_persisted_history_len(mut self, len: usize) -> Self {
        self.persisted_len = len;
        self
    }

    /// Key-value entries of completed executions.
    pub fn with_kv_snapshot(mut self, snapshot: HashMap<String, KvEntry>) -> Self {
        self.kv_snapshot = snapshot;
        self
    }

    /// The time of this turn, milliseconds since the epoch; the wall clock's, if not said.
    pub fn with_now_ms(mut self, now_ms: u64) -> Self {
        self.recorder.now_ms = now_ms;
        self
    }

    /// Answers system calls within the turn; without, they are pending actions like any activity.
    pub fn with_system_calls(mut self, system_calls: Box<dyn SystemCalls>) -> Self {
        self.system_calls = Some(system_calls);
        self
    }

    /// Makes a wait for something that is not durable a failure.
    pub fn failing_on_foreign_wait(mut self, fail: bool) -> Self {
        self.fail_on_foreign_wait = fail;
        self
    }

    /// Runs the code once over everything that happened.
    #[expect(clippy::too_many_arguments, reason = "inherited signature")]
    pub fn execute_orchestration(
        &mut self,
        handler: Arc<dyn OrchestrationHandler>,
        input: String,
        orchestration_name: String,
        orchestration_version: String,
        _worker_id: &str,
    ) -> TurnResult {
        let code = Code { handler, input, orchestration_name, orchestration_version };
        self.begin(code).0
    }

    /// Runs code from its beginning over everything that happened. The code as it is then, unless
    /// it was not run.
    pub(super) fn begin(&mut self, code: Code) -> (TurnResult, Option<Execution>) {
        if let Some(error) = self.abort.take() {
            return (TurnResult::Failed(error), None);
        }
        if self.index.is_terminal {
            return (TurnResult::Continue, None);
        }
        let (rules, custom_status) = match self.check_beginning() {
            Ok(beginning) => beginning,
            Err(message) => {
                return (TurnResult::Failed(ErrorDetails::nondeterminism(message)), None);
            }
        };
        let identity = Identity {
            instance_id: self.recorder.instance.clone(),
            execution_id: self.recorder.execution_id,
            orchestration_name: code.orchestration_name,
            orchestration_version: code.orchestration_version,
        };
        let kv_snapshot = std::mem::take(&mut self.kv_snapshot);
        let now_ms = Some(self.recorder.now_ms);
        let beginning = Beginning { rules, now_ms, kv_snapshot, custom_status };
        let ctx = OrchestrationContext::begin(identity, beginning);
        let mut execution = Execution::begin(ctx, rules, code.handler, code.input);
        let result = self.run(&mut execution);
        self.close(&execution);
        (result, Some(execution))
    }

    /// Goes on with code that was kept since its last turn.
    pub(super) fn resume(&mut self, execution: &mut Execution) -> TurnResult {
        if let Some(error) = self.abort.take() {
            return TurnResult::Failed(error);
        }
        execution.ctx.state().thaw(self.recorder.now_ms);
        let result = self.run(execution);
        self.close(execution);
        result
    }

    /// Events this turn adds.
    pub fn history_delta(&self) -> &[Event] {
        self.recorder.events()
    }

    /// Actions this turn adds, in order.
    pub fn pending_actions(&self) -> &[Action] {
        &self.pending_actions
    }

    /// Activities whose futures were dropped in this turn.
    pub fn cancelled_activity_ids(&self) -> &[u64] {
        &self.cancelled_activity_ids
    }

    /// Children whose futures were dropped in this turn, by id as recorded.
    pub fn cancelled_sub_orchestration_ids(&self) -> &[String] {
        &self.cancelled_child_suffixes
    }

    /// Whether this turn adds any event.
    pub fn made_progress(&self) -> bool {
        !self.recorder.events().is_empty()
    }

    /// The history as it is after this turn.
    pub fn final_history(&self) -> Vec<Event> {
        self.history().cloned().collect()
    }

    /// Where code and history parted, if the turn failed for that.
    pub fn divergence_report(&self) -> Option<&DivergenceReport> {
        self.report.as_deref()
    }

    /// Whether the code waited for something that is not durable.
    pub fn waits_for_foreign(&self) -> bool {
        self.waits_for_foreign
    }

    /// Baseline and delta.
    pub(super) fn history(&self) -> impl Iterator<Item = &Event> + Clone {
        self.baseline.iter().chain(self.recorder.events())
    }

    pub(super) fn event_at(&self, position: usize) -> Option<&Event> {
        match position.checked_sub(self.baseline.len()) {
            None => self.baseline.get(position),
            Some(position) => self.recorder.events().get(position),
        }
    }

    /// The start event, if it was made in this turn, and what the turn recorded.
    pub(super) fn take_new_events(&mut self) -> Vec<Event> {
        let mut events = self.baseline.split_off(self.persisted_len.min(self.baseline.len()));
        events.extend(self.recorder.take_events());
        events
    }

    /// Makes ready for another turn of the same code, after these events of the last one.
    pub(super) fn begin_next_turn(&mut self, stored: &[Event]) {
        self.baseline.extend_from_slice(stored);
        self.persisted_len = self.baseline.len();
        self.is_resumed = true;
        self.pending_actions.clear();
        self.cancelled_activity_ids.clear();
        self.cancelled_children.clear();
        self.cancelled_child_suffixes.clear();
        self.dropped.clear();
        self.dropped_timers.clear();
        self.system_calls = None;
        self.answered = 0;
    }

    pub(super) fn record(&mut self, source: Option<u64>, kind: EventKind) -> &Event {
        let event = self.recorder.record(source, kind);
        self.index.note(event);
        event
    }

    /// R3.33 – R3.36: the rules the execution is pinned to and the status it begins with.
    fn check_beginning(&self) -> Result<(ReplayRules, Option<String>), &'static str> {
        let first = self.history().next().ok_or("corrupted history: empty")?;
        let EventKind::OrchestrationStarted { initial_custom_status, .. } = &first.kind else {
            return Err("corrupted history: first event must be OrchestrationStarted");
        };
        let rules = ReplayRules::for_stamp(&first.duroxide_version).unwrap_or_else(|error| {
            tracing::warn!(
                target: "duroxide::runtime",
                instance = %self.recorder.instance,
                pinned_version = %first.duroxide_version,
                %error,
                "Invalid pinned version: using the oldest replay rules"
            );
            ReplayRules::OLD
        });
        Ok((rules, initial_custom_status.clone()))
    }
}
