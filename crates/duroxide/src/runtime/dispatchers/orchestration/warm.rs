//! Turns of instances that stayed in memory: no history is read, nothing is replayed.
//!
//! Such a turn comes to what a replay would come to. Where there is any doubt (a repeated attempt, a
//! start among the messages, an event we have not seen) there is no such turn.

use std::sync::{Arc, Mutex, PoisonError};

use duroxide_core::model::{Event, WorkItem};
use duroxide_core::replay::{
    HistoryManager, Resumption, Suspended, SystemCalls, Turn, TurnOutcome, WorkItemReader, run_turn,
};

use super::commit::Aside;
use super::{Batch, Dispatcher, Subject};
use crate::runtime::builtin::TurnSystemCalls;
use crate::runtime::facts::ExecutionFact;
use crate::runtime::warm::Warm;

/// Answers given to system calls, in order.
type Answers = Arc<Mutex<Vec<Option<Result<String, String>>>>>;

impl Dispatcher {
    /// The instance as it was left after its last turn, if it still is.
    pub(super) fn take_warm(&self, batch: &Batch) -> Option<Warm> {
        if !self.node.warm.is_on() || batch.last_event.0 == 0 {
            return None;
        }
        let is_plain = |message: &WorkItem| {
            !message.is_start() && !matches!(message, WorkItem::ActivityExecute { .. })
        };
        let item = &batch.item;
        if batch.attempt > 1 || item.history_error.is_some() || !item.messages.iter().all(is_plain)
        {
            self.node.warm.forget(&item.instance);
            return None;
        }
        let life = (batch.incarnation, item.execution_id);
        self.node.warm.take(&item.instance, life, batch.last_event)
    }

    /// Goes on where the last turn left off.
    pub(super) async fn run_warm(self: &Arc<Self>, mut batch: Batch, warm: Warm) {
        let messages = std::mem::take(&mut batch.item.messages);
        batch.timers = warm.timers.without(&messages);
        let (outcome, aside, next) = self.resume(&batch, warm.suspended, messages).await;
        self.commit_and_keep(&mut batch, outcome, aside, next).await;
    }

    /// The turn of an instance that was kept. Nothing has come of it yet.
    pub(super) async fn resume(
        &self,
        subject: &Subject,
        suspended: Suspended,
        messages: Vec<WorkItem>,
    ) -> (TurnOutcome, Aside, Option<Suspended>) {
        let now_ms = self.node.turn_time_ms(&messages);
        let aside = self.aside_of_warm(subject, &suspended);
        let replica = self.node.warm.compares().then(|| Replica::of(&suspended, &messages));
        let answers = Answers::default();
        let inner = TurnSystemCalls { node: Arc::clone(&self.node), now_ms };
        let system_calls = Box::new(Listening { inner, answers: Arc::clone(&answers) });
        let system_calls: Option<Box<dyn SystemCalls>> = Some(system_calls);
        let run = || suspended.resume(Resumption { messages, now_ms, system_calls });
        let name = &aside.orchestration_name;
        let (outcome, next) = self.node.turns.run(subject.instance(), name, run);
        // A wait for something foreign is seen where the code was kept for long enough, and not else.
        if let Some(replica) = replica.filter(|_| !outcome.waits_for_foreign) {
            let answers = std::mem::take(&mut *locked(&answers));
            Box::pin(self.compare(subject, replica, (&outcome, answers), now_ms)).await;
        }
        self.report_before_commit(subject, &outcome, &aside);
        (outcome, aside, next)
    }

    /// Reads the history of a turn that came without. False if that has to be tried again later.
    pub(super) async fn read_history(&self, batch: &mut Batch) -> bool {
        if batch.history_included || batch.item.history_error.is_some() {
            return true;
        }
        let (instance, execution_id) = (&batch.item.instance, batch.item.execution_id);
        match self.node.store.read_history_from(instance, execution_id, 1, None).await {
            Ok(history) => batch.item.history = history,
            Err(error) if error.is_retryable() => {
                Box::pin(self.give_back(batch, error)).await;
                return false;
            }
            Err(error) => {
                // As a fetch with history reports it (R8.31).
                batch.item.history_error = Some(error.message);
                batch.item.kv_snapshot.clear();
            }
        }
        batch.history_included = true;
        true
    }

    fn aside_of_warm(&self, subject: &Subject, suspended: &Suspended) -> Aside {
        let execution_id = suspended.execution_id();
        let told = || suspended.history().first().and_then(ExecutionFact::from_start);
        let fact = self.node.facts.get(subject.instance(), execution_id).or_else(told);
        Aside::of_warm(execution_id, fact)
    }

    /// The same turn by replay; ends the process if it comes to something else.
    async fn compare(
        &self,
        subject: &Subject,
        replica: Replica,
        (warm, answers): (&TurnOutcome, Vec<Option<Result<String, String>>>),
        now_ms: u64,
    ) {
        let history = HistoryManager::from_owned(replica.history);
        let reader = WorkItemReader::from_owned(replica.messages, &history, subject.instance());
        let Some(code) = self.resolve(&subject.item, &reader) else { return };
        let execution_id = subject.item.execution_id;
        let turn = Turn {
            history: history.into_history(),
            kv_snapshot: subject.item.kv_snapshot.clone(),
            now_ms,
            system_calls: Some(Box::new(Repeating(answers.into_iter().collect()))),
            ..self.turn_of(subject.instance(), execution_id, reader, code).await
        };
        // What it would log has been logged.
        let silence = tracing::subscriber::NoSubscriber::default();
        let cold = tracing::subscriber::with_default(silence, || run_turn(turn));
        let (warm, cold) = (format!("{warm:#?}"), format!("{cold:#?}"));
        if warm != cold {
            eprintln!(
                "a turn of {} differs from its replay\nwarm: {warm}\ncold: {cold}",
                subject.instance()
            );
            std::process::abort();
        }
    }
}

/// What a replay of a turn needs, put aside before the turn takes it.
struct Replica {
    history: Vec<Event>,
    messages: Vec<WorkItem>,
}

impl Replica {
    fn of(suspended: &Suspended, messages: &[WorkItem]) -> Self {
        Self { history: suspended.history().to_vec(), messages: messages.to_vec() }
    }
}

/// Answers system calls and writes the answers down.
struct Listening {
    inner: TurnSystemCalls,
    answers: Answers,
}

impl SystemCalls for Listening {
    fn answer(&mut self, name: &str, input: &str) -> Option<Result<String, String>> {
        let answer = self.inner.answer(name, input);
        locked(&self.answers).push(answer.clone());
        answer
    }
}

/// Gives the answers that were given before.
struct Repeating(std::collections::VecDeque<Option<Result<String, String>>>);

impl SystemCalls for Repeating {
    fn answer(&mut self, _name: &str, _input: &str) -> Option<Result<String, String>> {
        self.0.pop_front().flatten()
    }
}

fn locked(answers: &Answers) -> std::sync::MutexGuard<'_, Vec<Option<Result<String, String>>>> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}
