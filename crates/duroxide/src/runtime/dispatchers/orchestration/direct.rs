//! An activity's outcome straight into the turn that waits for it: one commit instead of two (R1.64).
//!
//! The usual way of an outcome is a message, which somebody fetches as a turn. If the instance waits
//! here, in memory, and for nothing else that is likely to come now, its turn runs at once. A turn has
//! no effect until it is stored, so it needs no lock: the store takes it only if the instance is still
//! as the turn has seen it. Where anything speaks against that, the message is what there is.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use duroxide_core::model::{KvEntry, WorkItem};

use super::commit::cancelled_by;
use super::report::Summary;
use super::{Dispatcher, Subject};
use crate::providers::{DirectTurn, OrchestrationItem};
use crate::runtime::facts::ExecutionFact;
use crate::runtime::observability::targets;
use crate::runtime::warm::Warm;

/// How long an outcome waits for the right to run: it is stored nowhere yet.
const PATIENCE: Duration = Duration::from_millis(5);

/// The outcome of an activity that was run for the first time and belongs to no session.
pub(crate) struct Answer<'a> {
    pub(crate) instance: &'a str,
    pub(crate) execution_id: u64,
    pub(crate) activity_id: u64,
    pub(crate) outcome: &'a WorkItem,
    /// Proof of the lock on the activity.
    pub(crate) work_token: &'a str,
    /// Who ran the activity runs the turn.
    pub(crate) worker_id: &'a str,
}

/// A direct turn that has run, and what is to be done once it is stored.
struct Ran {
    subject: Subject,
    turn: DirectTurn,
    /// The executions it is about.
    summaries: Vec<(u64, Summary, Option<ExecutionFact>)>,
    /// If it waits for more.
    next: Option<Warm>,
}

impl Dispatcher {
    /// Runs the turn that an outcome leads to, and stores both. False if nothing of that has happened.
    pub(crate) async fn answer(&self, answer: Answer<'_>) -> bool {
        let began = Instant::now();
        let Some(Ran { subject, turn, summaries, next }) = self.run_direct(&answer).await else {
            return false;
        };
        let cancelled = cancelled_by(&turn.commit);
        if let Err(error) = self.node.store.commit_direct_turn(turn).await {
            tracing::debug!(target: targets::ORCHESTRATION_DISPATCHER,
                instance = %subject.instance(), %error, "the outcome goes the usual way");
            return false; // What was kept ends here: the turn will be run again.
        }
        self.activity_leases.give_up(&cancelled);
        self.pardons.forget(subject.instance());
        self.node.metrics.record_orch_dispatcher_items_fetched(1);
        self.count_duration(began);
        for (execution_id, summary, fact) in summaries {
            self.report_committed(&subject, summary, execution_id, fact);
        }
        if let Some(next) = next {
            self.node.warm.keep(subject.instance(), next);
        }
        true
    }

    /// Runs the turn, if it can run here and now.
    async fn run_direct(&self, answer: &Answer<'_>) -> Option<Ran> {
        let Answer { instance, execution_id, activity_id, .. } = *answer;
        let warm = &self.node.warm;
        if !self.node.store.commits_direct_turns()
            || self.is_delayed_for_tests(instance)
            || !warm.is_waiting_for(instance, execution_id, activity_id)
        {
            return None;
        }
        let running = self.permission_to_run(PATIENCE).await?;
        let Warm { suspended, kv_snapshot, incarnation } =
            warm.take_waiting_for(instance, execution_id, activity_id)?;
        let subject = Subject { incarnation, ..subject_of(answer, kv_snapshot) };
        let (last_event_id, last_event_at_ms) =
            (suspended.last_event_id(), suspended.last_event_at_ms());
        let messages = vec![answer.outcome.clone()];
        let (outcome, aside, next) = self.resume(&subject, suspended, messages).await;
        let successor = self.run_successor(&subject, &outcome, execution_id).await;
        self.has_run(Some(running));

        let mut summaries = vec![(execution_id, Summary::of(&outcome), aside.fact.clone())];
        let (commit, next) = match successor {
            Some(successor) => {
                summaries.push((successor.aside.execution_id, successor.summary(), None));
                let both = self.to_commit_of_both(&subject, outcome, &aside, successor.outcome);
                (Box::pin(both).await.0, successor.next)
            }
            None => {
                let kv_snapshot = subject.item.kv_snapshot.clone();
                let next = next.map(|suspended| Warm { suspended, kv_snapshot, incarnation });
                (self.to_commit(&subject, outcome, Vec::new(), execution_id).await, next)
            }
        };
        let (work_token, instance) = (answer.work_token.to_owned(), instance.to_owned());
        let turn = DirectTurn { work_token, instance, last_event_id, last_event_at_ms, commit };
        Some(Ran { subject, turn, summaries, next })
    }

    /// A turn that a test makes slow is to be slow under its own lock.
    #[cfg(feature = "test-hooks")]
    fn is_delayed_for_tests(&self, instance: &str) -> bool {
        crate::runtime::test_hooks::get_orch_processing_delay(instance).is_some()
    }

    #[cfg(not(feature = "test-hooks"))]
    fn is_delayed_for_tests(&self, _instance: &str) -> bool {
        false
    }
}

/// What a turn is told of its instance; it was kept, and knows the rest.
fn subject_of(answer: &Answer<'_>, kv_snapshot: HashMap<String, KvEntry>) -> Subject {
    let item = OrchestrationItem {
        instance: answer.instance.to_owned(),
        orchestration_name: String::new(),
        execution_id: answer.execution_id,
        version: String::new(),
        history: Vec::new(),
        messages: Vec::new(),
        history_error: None,
        kv_snapshot,
    };
    Subject { item, attempt: 1, worker_id: answer.worker_id.to_owned(), incarnation: 0 }
}
