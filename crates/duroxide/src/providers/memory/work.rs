//! Activities: queued, fetched, answered, given back, held for longer; and the sessions they bind.

use std::time::Duration;

use duroxide_core::model::{WorkItem, kind_of};

use super::millis;
use super::sessions::Claim;
use super::shelf::Place;
use super::state::State;
use super::worker_queue::{Phase, WorkRow, WorkerQueue, check_work};
use crate::providers::Refusal;
use crate::providers::{SessionFetchConfig, TagFilter};

/// What a fetch asks for.
#[derive(Debug, Clone)]
pub(super) struct WorkWants {
    pub(super) lock_ms: u64,
    pub(super) tags: TagFilter,
    pub(super) session: Option<SessionFetchConfig>,
    /// If it is to be handed out together with others: how many bytes there is room for (R8.147);
    /// and then nothing that comes alone (R8.146).
    pub(super) room: Option<usize>,
}

impl WorkWants {
    pub(super) fn of(
        lock_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Self {
        let (tags, session) = (tag_filter.clone(), session.cloned());
        Self { lock_ms: millis(lock_timeout), tags, session, room: None }
    }
}

/// A locked activity.
#[derive(Debug)]
pub(super) struct TakenWork {
    pub(super) item: WorkItem,
    pub(super) token: String,
    pub(super) attempts: u32,
    /// Whether it comes alone (R8.146).
    pub(super) is_tried: bool,
}

impl TakenWork {
    /// What the contract asks for.
    pub(super) fn into_parts(self) -> (WorkItem, String, u32) {
        (self.item, self.token, self.attempts)
    }
}

impl WorkWants {
    /// Whether this row can be fetched now: it is ready, its tag accepted, and its session free or
    /// ours (R8.71, R8.80, R8.81).
    pub(super) fn admits(&self, queue: &WorkerQueue, row: &WorkRow) -> bool {
        row.phase == Phase::Ready
            && self.tags.matches(row.tag.as_deref())
            && match (&row.session, &self.session) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(id), Some(config)) => queue.sessions.admits(id, &config.owner_id),
            }
    }
}

impl State {
    /// Queues an activity.
    pub(super) fn enqueue_work(&mut self, item: WorkItem) -> Result<(), Refusal> {
        let id = self.shared_id(check_work(&item)?);
        self.work.push(&id, item);
        Ok(())
    }

    /// Locks the oldest fetchable activity (R8.70 – R8.73), and its session (R8.82).
    pub(super) fn take_work(
        &mut self,
        wants: &WorkWants,
        new_token: impl FnOnce() -> String,
        now: u64,
    ) -> Option<(u64, TakenWork)> {
        self.work.move_behind();
        let (_, sequence) = self.work.oldest(wants)?;
        let found = self.work.rows.get(&sequence)?;
        let is_tried = found.is_tried(sequence);
        let unfit = |room| is_tried || room < found.item.payload_bytes();
        if wants.room.is_some_and(unfit) {
            return None;
        }
        let token = new_token();
        self.work.lock(sequence, &token, now.saturating_add(wants.lock_ms));
        let row = self.work.rows.get(&sequence)?;
        let taken = TakenWork { item: row.item.clone(), token, attempts: row.attempts, is_tried };
        if let (Some(session), Some(config)) = (row.session.clone(), &wants.session) {
            self.work.claim_session(&session, config, now);
        }
        Some((sequence, taken))
    }

    /// Removes a locked activity and queues its outcome, both or neither (R8.74, R1.14).
    pub(super) fn ack_work(
        &mut self,
        token: &str,
        outcome: Option<WorkItem>,
        now: u64,
    ) -> Result<(), Refusal> {
        let sequence = self.work.holder(token)?;
        if let Some(outcome) = outcome {
            if !is_outcome(&outcome) {
                return Err(Refusal::NotAnOutcome(kind_of(&outcome)));
            }
            self.enqueue_message(outcome, now, now)?;
        }
        self.work.touch_session_of(sequence, now);
        self.work.remove(sequence);
        Ok(())
    }

    /// Holds an activity's lock for longer (R8.75).
    pub(super) fn renew_work(
        &mut self,
        token: &str,
        extend_ms: u64,
        now: u64,
    ) -> Result<(), Refusal> {
        let sequence = self.work.holder(token)?;
        self.work.set_phase(sequence, Phase::Locked(now.saturating_add(extend_ms)));
        self.work.touch_session_of(sequence, now);
        Ok(())
    }

    /// Gives an activity back (R8.76). It stays bound to its session (R8.88).
    pub(super) fn abandon_work(
        &mut self,
        token: &str,
        delay_ms: u64,
        uncount: bool,
        now: u64,
    ) -> Result<(), Refusal> {
        let sequence = self.work.owner(token)?;
        let phase = match delay_ms {
            0 => Phase::Ready,
            delay => Phase::Hidden(now.saturating_add(delay)),
        };
        self.work.release(sequence, uncount, phase);
        Ok(())
    }
}

impl WorkerQueue {
    /// Extends the valid, recently used leases of these owners; how many there were (R8.86).
    pub(super) fn renew_sessions(
        &mut self,
        owners: &[&str],
        extend: Duration,
        idle: Duration,
        now: u64,
    ) -> usize {
        let idle_since = now.saturating_sub(millis(idle));
        let until = now.saturating_add(millis(extend));
        let renewable = self.sessions.all().filter_map(|(id, session)| {
            let lease = session.lease.as_ref().filter(|lease| !lease.lapsed)?;
            let ours = owners.contains(&lease.owner.as_str()) && idle_since < lease.last_activity;
            ours.then(|| (id.clone(), lease.until))
        });
        let renewable: Vec<(String, u64)> = renewable.collect();
        for (session, before) in &renewable {
            self.sessions.extend(session, until);
            self.move_lease_timer(session, Some(*before), Some(until));
        }
        renewable.len()
    }

    /// Forgets sessions whose lease ran out and that no row needs (R8.87).
    pub(super) fn forget_orphaned_sessions(&mut self) -> usize {
        let orphaned = self.sessions.orphaned();
        orphaned.iter().for_each(|session| self.sessions.forget(session));
        orphaned.len()
    }

    /// The oldest row that can be fetched (R8.70).
    fn oldest(&self, wants: &WorkWants) -> Option<Place> {
        let sessionless = self.sessionless.oldest(&wants.tags);
        let in_sessions = wants
            .session
            .as_ref()
            .and_then(|config| self.sessions.oldest(&wants.tags, &config.owner_id));
        sessionless.into_iter().chain(in_sessions).min()
    }

    fn claim_session(&mut self, session: &str, config: &SessionFetchConfig, now: u64) {
        let lease = self.sessions.get(session).and_then(|session| session.lease.as_ref());
        let before = lease.filter(|lease| !lease.lapsed).map(|lease| lease.until);
        let until = now.saturating_add(millis(config.lock_timeout));
        self.sessions.claim(session, config, Claim { now, until });
        self.move_lease_timer(session, before, Some(until));
        // The same owner may be waiting elsewhere for the rows behind this one.
        self.announce_heads(session);
    }

    pub(super) fn touch_session_of(&mut self, sequence: u64, now: u64) {
        if let Some(session) = self.rows.get(&sequence).and_then(|row| row.session.as_deref()) {
            self.sessions.touch(session, now);
        }
    }
}

fn is_outcome(item: &WorkItem) -> bool {
    matches!(item, WorkItem::ActivityCompleted { .. } | WorkItem::ActivityFailed { .. })
}
