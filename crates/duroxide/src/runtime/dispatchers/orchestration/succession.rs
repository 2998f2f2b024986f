//! Continue-as-new in one commit: the last turn of an execution, and the first of the next (R1.39).
//!
//! A message would begin the next execution as soon as the last turn is stored, and whoever fetched
//! it would run what we can run here. Where anything speaks against that, the message is what there is.

use std::collections::HashMap;
use std::time::Duration;

use duroxide_core::clock::millis_rounded_up as millis;
use duroxide_core::model::{EventKind, KvEntry, WorkItem};
use duroxide_core::replay::{
    HistoryManager, Turn, TurnOutcome, TurnStatus, WorkItemReader, run_turn_and_keep,
};

use super::commit::Aside;
use super::report::Summary;
use super::{Batch, Dispatcher, Subject};
use crate::providers::TurnCommit;
use crate::runtime::observability::targets;
use crate::runtime::warm::Warm;

/// The first turn of an execution, run before its predecessor was stored.
pub(super) struct Successor {
    pub(super) outcome: TurnOutcome,
    pub(super) aside: Aside,
    /// If it waits for more, and is to be kept.
    pub(super) next: Option<Warm>,
}

impl Successor {
    pub(super) fn summary(&self) -> Summary {
        Summary::of(&self.outcome)
    }
}

impl Dispatcher {
    /// Runs the first turn of the execution that follows this outcome, if one does and both can be
    /// stored together.
    pub(super) async fn run_successor(
        &self,
        subject: &Subject,
        outcome: &TurnOutcome,
        execution_id: u64,
    ) -> Option<Successor> {
        match outcome.status {
            TurnStatus::ContinuedAsNew(_) => {
                Box::pin(self.run_first_turn_after(subject, outcome, execution_id)).await
            }
            _ => None,
        }
    }

    async fn run_first_turn_after(
        &self,
        subject: &Subject,
        outcome: &TurnOutcome,
        execution_id: u64,
    ) -> Option<Successor> {
        // A turn that is tried again is tried alone: should the successor's code bring the process
        // down, that must not count against the execution before it.
        if subject.attempt > 1 || !self.node.store.commits_successors() {
            return None;
        }
        let start = outcome.messages.iter().find(|message| begins_successor(message))?.clone();
        let no_history = HistoryManager::from_owned(Vec::new());
        let reader = WorkItemReader::from_owned(vec![start], &no_history, subject.instance());
        let code = self.resolve(&subject.item, &reader)?;
        let execution_id = execution_id.checked_add(1)?;
        let aside = Aside::of(&reader, &[], execution_id, &code.0);
        let kv_snapshot = kv_after(&subject.item.kv_snapshot, &outcome.kv_changes);
        let turn = self.turn_of(subject.instance(), execution_id, reader, code).await;
        let turn = Turn { kv_snapshot: kv_snapshot.clone(), ..turn };
        let run = || run_turn_and_keep(turn);
        let name = &aside.orchestration_name;
        let (outcome, next) = self.node.turns.run(subject.instance(), name, run);
        self.report_before_commit(subject, &outcome, &aside);
        let next = next.filter(|_| self.node.warm.is_on());
        let incarnation = subject.incarnation;
        let timers = self.own_timers(subject, &outcome, &next);
        let next = next.map(|suspended| Warm { suspended, kv_snapshot, incarnation, timers });
        Some(Successor { outcome, aside, next })
    }

    /// One commit for both turns. The message that would begin the second is not sent; it comes back
    /// with its place.
    pub(super) async fn to_commit_of_both(
        &self,
        subject: &Subject,
        outcome: TurnOutcome,
        aside: &Aside,
        (successor, timer_grace): (TurnOutcome, Duration),
    ) -> (TurnCommit, Option<(usize, WorkItem)>) {
        let first_id = aside.execution_id;
        let mut commit = self.to_commit(subject, outcome, aside.notices.clone(), first_id).await;
        let start = commit.orchestrator_items.iter().position(begins_successor);
        let start = start.map(|at| (at, commit.orchestrator_items.remove(at)));
        let second_id = first_id.saturating_add(1);
        let mut second = self.to_commit(subject, successor, Vec::new(), second_id).await;
        second.timer_grace_ms = millis(timer_grace);
        commit.successor = Some(Box::new(second));
        (commit, start)
    }

    /// Commits both turns, or the first alone if the store will not have them together. The successor
    /// as it is then, if it waits for more.
    pub(super) async fn commit_both(
        &self,
        batch: &Batch,
        outcome: TurnOutcome,
        aside: Aside,
        successor: Successor,
    ) -> Option<Warm> {
        let summaries = (Summary::of(&outcome), successor.summary());
        let (first_id, second_id) = (aside.execution_id, successor.aside.execution_id);
        let second = (successor.outcome, grace_of(&successor.next));
        let (commit, start) = self.to_commit_of_both(batch, outcome, &aside, second).await;
        let Err(rejected) = self.commit_while_leased(batch, commit).await else {
            self.report_committed(batch, summaries.0, first_id, aside.fact);
            self.report_committed(batch, summaries.1, second_id, None);
            return successor.next;
        };
        // It will begin again, perhaps elsewhere, as soon as the lock is gone.
        drop(successor.next);
        if self.is_passing(batch, &rejected.error) {
            self.give_back(batch, rejected.error).await;
            return None;
        }
        tracing::warn!(target: targets::ORCHESTRATION_DISPATCHER,
            instance = %batch.instance(), error = %rejected.error,
            "the store refuses the turn together with its successor; storing it alone");
        let mut commit = *rejected.commit;
        commit.successor = None;
        if let Some((at, start)) = start {
            commit.orchestrator_items.insert(at, start);
        }
        self.commit_prepared(batch, commit, summaries.0, aside).await;
        None
    }
}

/// How much later than at their time the store is to show the timers of a first turn.
pub(super) fn grace_of(next: &Option<Warm>) -> Duration {
    next.as_ref().map(|next| next.timers.grace()).unwrap_or_default()
}

fn begins_successor(message: &WorkItem) -> bool {
    matches!(message, WorkItem::ContinueAsNew { .. })
}

/// The values an execution begins with, after those of the one before it and what that changed.
fn kv_after(before: &HashMap<String, KvEntry>, changes: &[EventKind]) -> HashMap<String, KvEntry> {
    let mut entries = before.clone();
    for change in changes {
        match change {
            EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
                let (value, last_updated_at_ms) = (value.clone(), *last_updated_at_ms);
                entries.insert(key.clone(), KvEntry { value, last_updated_at_ms });
            }
            EventKind::KeyValueCleared { key } => drop(entries.remove(key)),
            EventKind::KeyValuesCleared => entries.clear(),
            _ => {}
        }
    }
    entries
}
