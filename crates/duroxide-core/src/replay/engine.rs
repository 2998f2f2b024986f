//! The engine of one turn: take the messages, run the code once, say what came of it.

use std::collections::HashMap;
use std::sync::Arc;

use super::divergence::{Divergence, DivergenceReport, agreed_rows};
use super::emit::SystemCalls;
use super::execution::Execution;
use super::index::HistoryIndex;
use super::record::Recorder;
use crate::clock;
use crate::context::{Beginning, Identity, Operation, OrchestrationContext, OrchestrationHandler};
use crate::model::version::ReplayRules;
use crate::model::{Action, AppErrorKind, ErrorDetails, Event, EventKind, KvEntry};

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
    /// Somebody cancelled the instance.
    Cancelled(String),
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
    /// Children whose futures the code has dropped, recorded or not.
    pub(super) dropped_children: Vec<u64>,
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
            dropped_children: Vec::new(),
            system_calls: None,
            answered: 0,
            abort: None,
            report: None,
            waits_for_foreign: false,
            fail_on_foreign_wait: false,
            code_failed: false,
            live_keys: 0,
            custom_status: None,
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
        if let Some(error) = self.abort.take() {
            return TurnResult::Failed(error);
        }
        if self.index.is_terminal {
            return TurnResult::Continue;
        }
        let (rules, custom_status) = match self.check_beginning() {
            Ok(beginning) => beginning,
            Err(message) => return TurnResult::Failed(ErrorDetails::nondeterminism(message)),
        };
        let identity = Identity {
            instance_id: self.recorder.instance.clone(),
            execution_id: self.recorder.execution_id,
            orchestration_name,
            orchestration_version,
        };
        let kv_snapshot = std::mem::take(&mut self.kv_snapshot);
        let now_ms = Some(self.recorder.now_ms);
        let beginning = Beginning { rules, now_ms, kv_snapshot, custom_status };
        let ctx = OrchestrationContext::begin(identity, beginning);
        let mut execution = Execution::begin(ctx, rules, handler, input);
        let result = self.run(&mut execution);
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

    fn run(&mut self, execution: &mut Execution) -> TurnResult {
        let ran = match self.replay(execution) {
            Ok(()) => self.advance(execution),
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Diverged(divergence)) => Err(self.diverged(execution, divergence)),
        };
        self.waits_for_foreign = execution.waits_for_foreign;
        if let Err(error) = ran {
            return TurnResult::Failed(error);
        }
        let is_cancelled = self.index.cancel_reason.is_some();
        if self.fail_on_foreign_wait && self.waits_for_foreign && !is_cancelled {
            return TurnResult::Failed(ErrorDetails::nondeterminism(FOREIGN_WAIT));
        }
        self.decide(execution)
    }

    /// The loop of R3.40 – R3.43 over everything known before this turn's own actions.
    fn replay(&mut self, execution: &mut Execution) -> Result<(), Stop> {
        if execution.rules.strict {
            remember_stamps(&self.baseline, execution);
        }
        execution.ctx.set_is_replaying(self.persisted_len > 0);
        for (position, event) in self.baseline.iter().chain(self.recorder.events()).enumerate() {
            // What stored events still owe the code was done in an earlier turn: still replaying.
            execution.poll_if_due().map_err(Stop::Failed)?;
            if position >= self.persisted_len {
                execution.ctx.set_is_replaying(false);
            }
            if execution.output.is_some() {
                self.check_early_return(execution, position)?;
                self.deliver_unread(execution, position);
                return Ok(());
            }
            execution.apply(event).map_err(Stop::Diverged)?;
        }
        execution.ctx.set_is_replaying(false);
        execution.poll_if_due().map_err(Stop::Failed)?;
        execution.ctx.state().cancel_dropped_dequeues();
        Ok(())
    }

    /// The code returned with `position` next to be applied. A stored history that goes on was made
    /// by code that did not return there; work it scheduled afterwards would be forgotten (L22).
    fn check_early_return(&self, execution: &Execution, position: usize) -> Result<(), Stop> {
        execution.ctx.set_is_replaying(false);
        let stored = self.baseline.iter().take(self.persisted_len).skip(position);
        let forgotten = stored.filter(|_| execution.rules.strict).find(|event| {
            super::index::Class::of(&event.kind).is_some()
                || matches!(event.kind, EventKind::OrchestrationChained { .. })
        });
        match forgotten {
            None => Ok(()),
            Some(event) => Err(Stop::Diverged(
                Divergence::new(format!(
                    "code returned before history was consumed: next event={:?}",
                    event.kind
                ))
                .at(event),
            )),
        }
    }

    /// Messages from `position` on reach no code any more, but its successor, if there is one.
    fn deliver_unread(&self, execution: &Execution, position: usize) {
        let mut state = execution.ctx.state();
        for event in self.history().skip(position) {
            if let EventKind::QueueEventDelivered { name, data } = &event.kind {
                state.queues.deliver(name, data);
            }
        }
    }

    /// R3.70 – R3.73, in that order.
    fn decide(&mut self, execution: &mut Execution) -> TurnResult {
        if let Some(reason) = &self.index.cancel_reason {
            return TurnResult::Cancelled(reason.clone());
        }
        let continued = self.pending_actions.iter().find_map(|action| match action {
            Action::ContinueAsNew { input, version } => Some((input.clone(), version.clone())),
            _ => None,
        });
        if let Some((input, version)) = continued {
            let by_reading = execution.rules.drops_count_at_once;
            let unconsumed_queue_arrivals =
                by_reading.then(|| execution.ctx.state().queues.unread());
            return TurnResult::ContinueAsNew { input, version, unconsumed_queue_arrivals };
        }
        if let Err(divergence) = self.collect_drops(execution) {
            return TurnResult::Failed(self.diverged(execution, divergence));
        }
        match execution.output.take() {
            None => TurnResult::Continue,
            Some(Ok(output)) => TurnResult::Completed(output),
            Some(Err(text)) => {
                self.code_failed = true;
                let kind = AppErrorKind::OrchestrationFailed;
                TurnResult::Failed(ErrorDetails::application(kind, text))
            }
        }
    }

    pub(super) fn diverged(
        &mut self,
        execution: &Execution,
        divergence: Box<Divergence>,
    ) -> ErrorDetails {
        let mut rows = agreed_rows(&execution.matched, self.history());
        rows.push(divergence.row());
        let identity = execution.ctx.identity();
        self.report = Some(Box::new(DivergenceReport {
            instance: identity.instance_id.clone(),
            execution_id: identity.execution_id,
            orchestration: identity.orchestration_name.clone(),
            version: identity.orchestration_version.clone(),
            message: divergence.message.clone(),
            rows,
        }));
        ErrorDetails::nondeterminism(divergence.message)
    }

    /// Lets the function go; what it still held was alive until the end of the turn (R3.103).
    fn close(&mut self, mut execution: Execution) {
        let mut state = execution.ctx.state();
        state.freeze();
        self.live_keys = state.kv.len();
        self.dropped_children = state.tokens.dropped(Operation::Child);
        self.custom_status.clone_from(&state.custom_status);
        drop(state);
        self.cancelled_child_suffixes =
            self.cancelled_children.iter().map(|(_, suffix)| suffix.clone()).collect();
        execution.discard();
    }
}

/// What `ForeignWait::Fail` says.
const FOREIGN_WAIT: &str = "orchestration waits for something that is not durable; only await what the context returns (schedule_timer instead of sleep, activities instead of I/O, schedule_wait or dequeue_event instead of channels)";

enum Stop {
    Failed(ErrorDetails),
    Diverged(Box<Divergence>),
}

/// Replay takes the recorded age of every value again (L9).
fn remember_stamps(baseline: &[Event], execution: &Execution) {
    let mut state = execution.ctx.state();
    for event in baseline {
        if let EventKind::KeyValueSet { key, last_updated_at_ms, .. } = &event.kind {
            state.kv.remember_stamp(key, *last_updated_at_ms);
        }
    }
}
