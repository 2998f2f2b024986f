//! The worker queue: activities, locked one by one.

use std::time::Duration;

use duroxide::providers::{
    ProviderError, ScheduledActivityIdentifier, SessionFetchConfig, TagFilter, WorkItem,
};

use super::store::{Lock, Tables, decode, encode, later};
use super::turns::Message;

/// A row of the worker queue.
pub(crate) struct Job {
    pub(crate) instance: String,
    execution_id: u64,
    activity_id: u64,
    pub(crate) session_id: Option<String>,
    tag: Option<String>,
    /// The activity itself, as text; the columns beside it are what the queue has to know of it.
    pub(crate) text: String,
    visible_at_ms: u64,
    lock: Option<Lock>,
    attempts: u32,
}

impl Job {
    /// A row for this activity, visible at once; fails for everything else.
    pub(crate) fn new(operation: &str, item: &WorkItem, now: u64) -> Result<Self, ProviderError> {
        let WorkItem::ActivityExecute { instance, execution_id, id, session_id, tag, .. } = item
        else {
            return Err(ProviderError::permanent(operation, "only activities are work"));
        };
        Ok(Self {
            instance: instance.clone(),
            execution_id: *execution_id,
            activity_id: *id,
            session_id: session_id.clone(),
            tag: tag.clone(),
            text: encode(operation, item)?,
            visible_at_ms: now,
            lock: None,
            attempts: 0,
        })
    }

    /// Whether this is the activity a commit cancels.
    pub(crate) fn is(&self, which: &ScheduledActivityIdentifier) -> bool {
        self.instance == which.instance
            && self.execution_id == which.execution_id
            && self.activity_id == which.activity_id
    }

    pub(crate) fn is_locked(&self, now: u64) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.is_valid(now))
    }

    fn is_held_with(&self, token: &str) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.token == token)
    }
}

impl Tables {
    /// Locks the oldest activity that this worker may take (R8.71, R8.72).
    pub(crate) fn fetch_job(
        &mut self,
        now: u64,
        lock_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tags: &TagFilter,
    ) -> Option<(WorkItem, String, u32)> {
        self.move_lost_jobs_behind(now);
        loop {
            let at = self.jobs.iter().position(|job| {
                job.visible_at_ms <= now
                    && !job.is_locked(now)
                    && tags.matches(job.tag.as_deref())
                    && self.session_admits(job.session_id.as_deref(), session, now)
            })?;
            let Ok(item) = decode("fetch_work_item", &self.jobs[at].text) else {
                let job = self.jobs.remove(at);
                self.bury(job.instance, job.text, "unreadable activity", now); // R8.78
                continue;
            };
            let lock = self.fresh_lock(now, lock_timeout);
            let token = lock.token.clone();
            let job = &mut self.jobs[at];
            job.lock = Some(lock);
            job.attempts = job.attempts.saturating_add(1);
            let (attempts, session_id) = (job.attempts, job.session_id.clone());
            self.claim_session(session_id, session, now);
            return Some((item, token, attempts));
        }
    }

    /// Ends an activity: the row goes and its outcome comes, both or neither (R8.74).
    pub(crate) fn ack_job(
        &mut self,
        token: &str,
        completion: Option<&WorkItem>,
        now: u64,
    ) -> Result<(), ProviderError> {
        const ACK: &str = "ack_work_item";
        let at = self.held_job(ACK, token, now)?;
        let outcome = match completion {
            None => None,
            Some(item @ (WorkItem::ActivityCompleted { .. } | WorkItem::ActivityFailed { .. })) => {
                Some(Message::new(ACK, item, now, now)?)
            }
            Some(_) => return Err(ProviderError::permanent(ACK, "not the outcome of an activity")),
        };
        let job = self.jobs.remove(at);
        self.touch_session(job.session_id.as_deref(), now);
        if let Some(outcome) = outcome {
            self.post(outcome);
        }
        Ok(())
    }

    /// Holds an activity for longer, counted from now (R8.75).
    pub(crate) fn renew_job(
        &mut self,
        token: &str,
        now: u64,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let at = self.held_job("renew_work_item_lock", token, now)?;
        let job = &mut self.jobs[at];
        if let Some(lock) = &mut job.lock {
            lock.until_ms = later(now, extend_for);
        }
        let session_id = job.session_id.clone();
        self.touch_session(session_id.as_deref(), now);
        Ok(())
    }

    /// Gives an activity back; the lock may have expired, as long as it is the current (R8.76).
    pub(crate) fn abandon_job(
        &mut self,
        token: &str,
        now: u64,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let Some(job) = self.jobs.iter_mut().find(|job| job.is_held_with(token)) else {
            return Err(invalid_token("abandon_work_item"));
        };
        job.lock = None;
        job.visible_at_ms = later(now, delay.unwrap_or_default());
        if ignore_attempt {
            job.attempts = job.attempts.saturating_sub(1);
        }
        Ok(())
    }

    /// Activities whose lock ran out go behind all others, in the order in which the locks ended
    /// (R8.146).
    fn move_lost_jobs_behind(&mut self, now: u64) {
        let just_ran_out =
            |job: &mut Job| job.lock.as_ref().is_some_and(|lock| lock.just_ran_out(now));
        let mut lost: Vec<Job> = self.jobs.extract_if(.., just_ran_out).collect();
        lost.sort_by_key(|job| job.lock.as_ref().map(|lock| lock.until_ms));
        for lock in lost.iter_mut().filter_map(|job| job.lock.as_mut()) {
            lock.is_over = true;
        }
        self.jobs.extend(lost);
    }

    /// Where the activity is that this token is a valid lock on.
    fn held_job(&self, operation: &str, token: &str, now: u64) -> Result<usize, ProviderError> {
        let held = self.jobs.iter().position(|job| job.is_held_with(token) && job.is_locked(now));
        held.ok_or_else(|| invalid_token(operation))
    }
}

fn invalid_token(operation: &str) -> ProviderError {
    ProviderError::permanent(operation, "Invalid lock token: unknown, or its lock has expired")
}
