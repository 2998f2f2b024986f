//! Turns of instances that are kept, on what is not to be fetched: one commit instead of two.
//!
//! The usual way of an outcome, or of a timer, is a message, which somebody fetches as a turn. If the
//! instance waits here, in memory, its turn runs at once. A turn has no effect until it is stored, so it
//! needs no lock: the store takes it only if the instance is still as the turn has seen it. Where
//! anything speaks against that, the message is what there is.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use duroxide_core::clock::millis_rounded_up as millis;
use duroxide_core::model::{KvEntry, WorkItem};

use super::batch::Running;
use super::commit::cancelled_by;
use super::report::Summary;
use super::succession::grace_of;
use super::{Dispatcher, Subject};
use crate::providers::{DirectTurn, OrchestrationItem, ProviderError, TimerTurn, TurnCommit};
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
    began: Instant,
    /// Id and time of the last event that it has seen.
    last_event: (u64, u64),
    commit: TurnCommit,
    /// The executions it is about.
    summaries: Vec<(u64, Summary, Option<ExecutionFact>)>,
    /// If it waits for more.
    next: Option<Warm>,
}

impl Dispatcher {
    /// Runs the turn that an outcome leads to, and stores both (R1.64). False if nothing of that has
    /// happened.
    pub(crate) async fn answer(&self, answer: Answer<'_>) -> bool {
        let Answer { instance, execution_id, activity_id, .. } = answer;
        let (store, warm) = (&self.node.store, &self.node.warm);
        if !store.commits_direct_turns()
            || self.is_delayed_for_tests(instance)
            || !warm.is_waiting_for(instance, execution_id, activity_id)
        {
            return false;
        }
        let Some(running) = self.permission_to_run(PATIENCE).await else { return false };
        let Some(kept) = warm.take_waiting_for(instance, execution_id, activity_id) else {
            return false;
        };
        let messages = vec![answer.outcome.clone()];
        let mut ran = self.run_kept((instance, answer.worker_id), kept, messages, running).await;
        let turn = DirectTurn {
            work_token: answer.work_token.to_owned(),
            instance: instance.to_owned(),
            last_event_id: ran.last_event.0,
            last_event_at_ms: ran.last_event.1,
            commit: std::mem::take(&mut ran.commit),
        };
        let cancelled = cancelled_by(&turn.commit);
        let stored = store.commit_direct_turn(turn).await;
        self.activity_leases.give_up(if stored.is_ok() { &cancelled } else { &[] });
        self.has_stored(ran, stored)
    }

    /// Runs the turn that timers of an instance lead to, and stores it without them (R1.67). If nothing
    /// of that has happened, they are fetched soon.
    pub(super) async fn fire(
        &self,
        (instance, worker_id): (&str, &str),
        kept: Warm,
        timers: Vec<WorkItem>,
        running: Running,
    ) {
        let incarnation = kept.incarnation;
        let mut ran = self.run_kept((instance, worker_id), kept, timers.clone(), running).await;
        let turn = TimerTurn {
            instance: instance.to_owned(),
            incarnation,
            last_event_id: ran.last_event.0,
            last_event_at_ms: ran.last_event.1,
            timers,
            commit: std::mem::take(&mut ran.commit),
        };
        let cancelled = cancelled_by(&turn.commit);
        let stored = self.node.store.commit_timer_turn(turn).await;
        self.activity_leases.give_up(if stored.is_ok() { &cancelled } else { &[] });
        self.has_stored(ran, stored);
    }

    /// Runs a turn of an instance that was kept.
    async fn run_kept(
        &self,
        (instance, worker_id): (&str, &str),
        kept: Warm,
        messages: Vec<WorkItem>,
        running: Running,
    ) -> Ran {
        let began = Instant::now();
        let Warm { suspended, kv_snapshot, incarnation, timers } = kept;
        let timers = timers.without(&messages);
        let execution_id = suspended.execution_id();
        let item = item_of(instance, execution_id, kv_snapshot);
        let subject = Subject { item, attempt: 1, worker_id: worker_id.to_owned(), incarnation };
        let last_event = (suspended.last_event_id(), suspended.last_event_at_ms());
        let (outcome, aside, next) = self.resume(&subject, suspended, messages).await;
        let successor = self.run_successor(&subject, &outcome, execution_id).await;
        self.has_run(Some(running));

        let mut summaries = vec![(execution_id, Summary::of(&outcome), aside.fact.clone())];
        let (commit, next) = match successor {
            Some(successor) => {
                summaries.push((successor.aside.execution_id, successor.summary(), None));
                let second = (successor.outcome, grace_of(&successor.next));
                let both = self.to_commit_of_both(&subject, outcome, &aside, second);
                (Box::pin(both).await.0, successor.next)
            }
            None => {
                let kv_snapshot = subject.item.kv_snapshot.clone();
                let set = self.own_timers(&subject, &outcome, &next);
                let mut commit = self.to_commit(&subject, outcome, Vec::new(), execution_id).await;
                commit.timer_grace_ms = millis(set.grace());
                let timers = timers.and(set);
                let warm = |suspended| Warm { suspended, kv_snapshot, incarnation, timers };
                (commit, next.map(warm))
            }
        };
        Ran { subject, began, last_event, commit, summaries, next }
    }

    /// Keeps an instance whose turn was stored, and tells of it. Whether it was.
    fn has_stored(&self, ran: Ran, stored: Result<(), ProviderError>) -> bool {
        let subject = &ran.subject;
        if let Err(error) = stored {
            tracing::debug!(target: targets::ORCHESTRATION_DISPATCHER,
                instance = %subject.instance(), %error, "the message goes the usual way");
            return false; // What was kept ends here: the turn will be run again.
        }
        self.pardons.forget(subject.instance());
        self.node.metrics.record_orch_dispatcher_items_fetched(1);
        self.count_duration(ran.began);
        for (execution_id, summary, fact) in ran.summaries {
            self.report_committed(subject, summary, execution_id, fact);
        }
        if let Some(next) = ran.next {
            self.node.warm.keep(subject.instance(), next);
        }
        true
    }

    #[cfg(feature = "test-hooks")]
    pub(super) async fn delay_for_tests(&self, instance: &str) {
        if let Some(delay) = crate::runtime::test_hooks::get_orch_processing_delay(instance) {
            tokio::time::sleep(delay).await;
        }
    }

    #[cfg(not(feature = "test-hooks"))]
    pub(super) async fn delay_for_tests(&self, _instance: &str) {}

    /// A turn that a test makes slow is to be slow under its own lock.
    #[cfg(feature = "test-hooks")]
    pub(super) fn is_delayed_for_tests(&self, instance: &str) -> bool {
        crate::runtime::test_hooks::get_orch_processing_delay(instance).is_some()
    }

    #[cfg(not(feature = "test-hooks"))]
    pub(super) fn is_delayed_for_tests(&self, _instance: &str) -> bool {
        false
    }
}

/// What a turn is told of its instance; it was kept, and knows the rest.
fn item_of(
    instance: &str,
    execution_id: u64,
    kv_snapshot: HashMap<String, KvEntry>,
) -> OrchestrationItem {
    OrchestrationItem {
        instance: instance.to_owned(),
        orchestration_name: String::new(),
        execution_id,
        version: String::new(),
        history: Vec::new(),
        messages: Vec::new(),
        history_error: None,
        kv_snapshot,
    }
}
