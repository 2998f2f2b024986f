//! The worker queue: activities, their locks, and indexes that find the next one for a worker
//! without looking at work for others.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use duroxide_core::model::{WorkItem, kind_of};

use super::instances::Id;
use super::sessions::Sessions;
use super::shelf::Shelf;
use crate::providers::Refusal;

/// A queued activity.
#[derive(Debug)]
pub(super) struct WorkRow {
    pub(super) item: WorkItem,
    pub(super) activity: Activity,
    pub(super) tag: Option<String>,
    pub(super) session: Option<String>,
    pub(super) attempts: u32,
    /// Token of the last fetch, while its lock holds and after (R8.76).
    pub(super) token: Option<String>,
    pub(super) phase: Phase,
    /// Where it stands among the others.
    position: u64,
}

impl WorkRow {
    /// Whether it comes alone: it was fetched before, and a lock ended without its holder (R8.146).
    pub(super) fn is_tried(&self, sequence: u64) -> bool {
        0 < self.attempts && self.position != sequence
    }
}

/// Whether a row can be fetched, as far as it alone is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It can.
    Ready,
    /// Not before this time.
    Hidden(u64),
    /// Not before its lock ends, at this time.
    Locked(u64),
}

/// Owner instance, owner execution, schedule event.
pub(super) type Activity = (Id, u64, u64);

/// What time alone will change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A row becomes visible, or its lock ends.
    Row(u64),
    /// A session's lease ends.
    Lease(String),
}

/// All queued activities. `set_phase` and `Sessions::change` alone touch the shelves.
#[derive(Debug, Default)]
pub(super) struct WorkerQueue {
    pub(super) rows: BTreeMap<u64, WorkRow>,
    pub(super) sessions: Sessions,
    /// Ready rows that belong to no session.
    pub(super) sessionless: Shelf,
    tokens: HashMap<String, u64>,
    by_activity: BTreeSet<(Activity, u64)>,
    timers: BTreeSet<(u64, Due)>,
    /// Rows whose lock ran out, with the time, which no fetch has seen yet.
    ran_out: Vec<(u64, u64)>,
    /// Rows that became fetchable for somebody since this was last asked.
    awakened: Vec<u64>,
    last_sequence: u64,
}

impl WorkerQueue {
    /// Appends an activity, visible at once (R8.70, R8.71).
    pub(super) fn push(&mut self, id: &Id, item: WorkItem) {
        let WorkItem::ActivityExecute { execution_id, id: activity_id, session_id, tag, .. } =
            &item
        else {
            return; // Checked by `check_work` before.
        };
        self.last_sequence += 1;
        let sequence = self.last_sequence;
        let row = WorkRow {
            activity: (Id::clone(id), *execution_id, *activity_id),
            tag: tag.clone(),
            session: session_id.clone(),
            attempts: 0,
            token: None,
            phase: Phase::Hidden(0),
            position: sequence,
            item,
        };
        if let Some(session) = &row.session {
            self.sessions.add_row(session);
        }
        self.by_activity.insert((row.activity.clone(), sequence));
        self.rows.insert(sequence, row);
        self.set_phase(sequence, Phase::Ready);
    }

    /// Moves a row to another phase, in all indexes.
    pub(super) fn set_phase(&mut self, sequence: u64, phase: Phase) {
        let Some(row) = self.rows.get_mut(&sequence) else { return };
        let before = std::mem::replace(&mut row.phase, phase);
        let (tag, place) = (row.tag.as_deref(), (row.position, sequence));
        match (before, &row.session) {
            (Phase::Hidden(at) | Phase::Locked(at), _) => {
                self.timers.remove(&(at, Due::Row(sequence)));
            }
            (Phase::Ready, None) => self.sessionless.remove(tag, place),
            (Phase::Ready, Some(session)) => self.sessions.remove_ready(session, tag, place),
        }
        match (phase, &row.session) {
            (Phase::Hidden(at) | Phase::Locked(at), _) => {
                self.timers.insert((at, Due::Row(sequence)));
            }
            (Phase::Ready, None) => self.sessionless.insert(tag, place),
            (Phase::Ready, Some(session)) => self.sessions.insert_ready(session, tag, place),
        }
        if phase == Phase::Ready {
            self.awakened.push(sequence);
        }
    }

    /// Locks a row under a fresh token and counts the attempt (R8.72).
    pub(super) fn lock(&mut self, sequence: u64, token: &str, until: u64) {
        let Some(row) = self.rows.get_mut(&sequence) else { return };
        if let Some(outlived) = row.token.replace(token.to_owned()) {
            self.tokens.remove(&outlived);
        }
        row.attempts = row.attempts.saturating_add(1);
        self.tokens.insert(token.to_owned(), sequence);
        self.set_phase(sequence, Phase::Locked(until));
    }

    /// The row last locked with this token, whether or not the lock ran out.
    pub(super) fn owner(&self, token: &str) -> Result<u64, Refusal> {
        self.tokens.get(token).copied().ok_or(Refusal::UnknownToken)
    }

    /// The row that is locked with this token now (R8.74, R8.75).
    pub(super) fn holder(&self, token: &str) -> Result<u64, Refusal> {
        let sequence = self.owner(token)?;
        match self.rows.get(&sequence).map(|row| row.phase) {
            Some(Phase::Locked(_)) => Ok(sequence),
            _ => Err(Refusal::LockExpired),
        }
    }

    /// Gives a row back (R8.76).
    pub(super) fn release(&mut self, sequence: u64, uncount: bool, phase: Phase) {
        let Some(row) = self.rows.get_mut(&sequence) else { return };
        row.attempts = row.attempts.saturating_sub(u32::from(uncount));
        if let Some(token) = row.token.take() {
            self.tokens.remove(&token);
        }
        self.set_phase(sequence, phase);
    }

    /// Removes a row, locked or not.
    pub(super) fn remove(&mut self, sequence: u64) {
        // A hidden row is on no shelf, so that only its timer is left to remove.
        self.set_phase(sequence, Phase::Hidden(0));
        self.timers.remove(&(0, Due::Row(sequence)));
        let Some(row) = self.rows.remove(&sequence) else { return };
        if let Some(token) = &row.token {
            self.tokens.remove(token);
        }
        if let Some(session) = &row.session {
            self.sessions.remove_row(session);
        }
        self.by_activity.remove(&(row.activity, sequence));
    }

    /// The rows of one activity: usually one, more if it was queued twice.
    pub(super) fn rows_of(&self, instance: &Id, execution_id: u64, activity_id: u64) -> Vec<u64> {
        let activity = (Id::clone(instance), execution_id, activity_id);
        let rows = self.by_activity.range((activity.clone(), 0)..=(activity, u64::MAX));
        rows.map(|(_, sequence)| *sequence).collect()
    }

    /// The rows of all activities of an instance.
    pub(super) fn rows_of_instance(&self, instance: &Id) -> Vec<u64> {
        let first = ((Id::clone(instance), 0, 0), 0);
        let last = ((Id::clone(instance), u64::MAX, u64::MAX), u64::MAX);
        self.by_activity.range(first..=last).map(|(_, sequence)| *sequence).collect()
    }

    /// Lets time pass: rows become visible, locks and leases end.
    pub(super) fn advance(&mut self, now: u64) {
        while let Some((at, due)) = self.timers.first().cloned()
            && at <= now
        {
            match due {
                Due::Row(sequence) => self.end_phase(sequence, at),
                Due::Lease(ref session) => {
                    self.sessions.lapse(session);
                    self.announce_heads(session);
                    self.timers.remove(&(at, due));
                }
            }
        }
    }

    /// Moves rows whose locks ran out behind all others: in the order in which the locks ended, then
    /// in that in which the rows stood (R8.146).
    pub(super) fn move_behind(&mut self) {
        let ran_out = std::mem::take(&mut self.ran_out).into_iter();
        let mut ran_out: Vec<(u64, u64, u64)> = ran_out
            .filter_map(|(ended_at, sequence)| {
                let row = self.rows.get(&sequence)?;
                // Not what was given back meanwhile.
                row.token.as_ref().map(|_| (ended_at, row.position, sequence))
            })
            .collect();
        ran_out.sort_unstable();
        for (_, _, sequence) in ran_out {
            self.last_sequence += 1;
            let position = self.last_sequence;
            self.set_phase(sequence, Phase::Hidden(0));
            if let Some(row) = self.rows.get_mut(&sequence) {
                row.position = position;
            }
            self.set_phase(sequence, Phase::Ready);
        }
    }

    /// A row becomes visible, or its lock ends.
    fn end_phase(&mut self, sequence: u64, at: u64) {
        if self.rows.get(&sequence).is_some_and(|row| matches!(row.phase, Phase::Locked(_))) {
            self.ran_out.push((at, sequence));
        }
        self.set_phase(sequence, Phase::Ready);
    }

    /// Ends all locks and leases before their time.
    pub(super) fn expire_locks(&mut self, now: u64) {
        let rows = self.rows.iter().filter(|(_, row)| matches!(row.phase, Phase::Locked(_)));
        let locked: Vec<u64> = rows.map(|(sequence, _)| *sequence).collect();
        locked.into_iter().for_each(|sequence| self.end_phase(sequence, now));
        for (session, until) in self.sessions.leases() {
            self.sessions.lapse(&session);
            self.move_lease_timer(&session, Some(until), None);
            self.announce_heads(&session);
        }
    }

    /// Says that the next rows of a session may be fetchable for somebody who waits.
    pub(super) fn announce_heads(&mut self, session_id: &str) {
        self.awakened.extend(self.sessions.heads(session_id));
    }

    /// Notes that a session's lease ends at another time than before.
    pub(super) fn move_lease_timer(&mut self, session: &str, from: Option<u64>, to: Option<u64>) {
        if let Some(at) = from {
            self.timers.remove(&(at, Due::Lease(session.to_owned())));
        }
        if let Some(at) = to {
            self.timers.insert((at, Due::Lease(session.to_owned())));
        }
    }

    /// When time alone changes something next.
    pub(super) fn next_change(&self) -> Option<u64> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Rows that became fetchable for somebody since the last call.
    pub(super) fn take_awakened(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.awakened)
    }
}

/// The instance an activity belongs to; refuses everything that is no activity.
pub(super) fn check_work(item: &WorkItem) -> Result<&str, Refusal> {
    match item {
        WorkItem::ActivityExecute { instance, .. } => Ok(instance),
        other => Err(Refusal::NotWork(kind_of(other))),
    }
}

/// The instance a message belongs to; refuses activities (R8.10).
pub(super) fn check_message(item: &WorkItem) -> Result<&str, Refusal> {
    item.orchestration_key().ok_or_else(|| Refusal::NotAMessage(kind_of(item)))
}
