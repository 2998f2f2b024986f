//! Activities and sessions that are handled wrongly.

use std::collections::HashSet;
use std::time::Duration;

use duroxide::providers::{Provider, ProviderError, SessionFetchConfig, TagFilter, WorkItem};

use duroxide::runtime::limits::MAX_FETCH_BYTES;

use super::list::Mutant;
use super::wrapper::{LONG, MutantProvider};

type Job = (WorkItem, String, u32);

impl MutantProvider {
    pub async fn wrong_lost_work_items(
        &self,
        tokens: &[&str],
    ) -> Result<Vec<String>, ProviderError> {
        match self.mutant {
            Some(Mutant::LosesHeldWork) => Ok(tokens.iter().map(|t| (*t).to_owned()).collect()),
            Some(Mutant::HidesLostWork) => {
                let no_tokens = tokens.iter().filter(|token| !token.starts_with("lock_"));
                Ok(no_tokens.map(|token| (*token).to_owned()).collect())
            }
            _ => self.inner.lost_work_items(tokens).await,
        }
    }

    pub async fn several_wrong_fetches(
        &self,
        (lock, mut poll): (Duration, Duration),
        session: Option<&SessionFetchConfig>,
        tags: &TagFilter,
        max: usize,
    ) -> Result<Vec<Job>, ProviderError> {
        let max = max + usize::from(self.is(Mutant::FetchesOneTooMany));
        let (mut all, mut tags, mut room) = (Vec::new(), tags.clone(), MAX_FETCH_BYTES);
        while all.len() < max
            && let Some(job) = self.wrong_work_fetch(lock, poll, session, &tags).await?
        {
            let in_session =
                matches!(&job.0, WorkItem::ActivityExecute { session_id: Some(_), .. });
            let is_lost = self.is(Mutant::IsolatesGivenBackWork) || self.has_lost_work(&job.0);
            let is_tried = 1 < job.2 && is_lost && !self.is(Mutant::MixesTriedWork);
            let bytes = if all.is_empty() { 0 } else { job.0.payload_bytes() };
            let is_too_much = room < bytes && !self.is(Mutant::ForgetsFetchBytes);
            room = room.saturating_sub(bytes);
            if (is_tried || is_too_much) && !all.is_empty() {
                self.note_answered(&job.1);
                self.inner.abandon_work_item(&job.1, None, true).await?;
                break;
            }
            all.push(job);
            if is_tried {
                break;
            }
            if in_session && !self.is(Mutant::BindsSeveralSessions) {
                break;
            }
            if !self.is(Mutant::WaitsForSeveral) {
                poll = Duration::ZERO;
            }
            if self.is(Mutant::LooksAtFirstTagOnly) {
                tags = TagFilter::Any;
            }
        }
        if self.is(Mutant::ReversesSeveral) {
            all.reverse();
        }
        Ok(all)
    }

    pub async fn wrong_work_fetch(
        &self,
        lock: Duration,
        poll: Duration,
        session: Option<&SessionFetchConfig>,
        tags: &TagFilter,
    ) -> Result<Option<Job>, ProviderError> {
        let lock = match self.mutant {
            Some(Mutant::LocksWorkForever) => LONG,
            Some(Mutant::LocksWorkBriefly) => lock / 4,
            _ => lock,
        };
        let poll = match self.mutant {
            Some(Mutant::PollsTooLong) => poll * 3,
            Some(Mutant::WaitsForTurnsOnly) => Duration::ZERO,
            _ => poll,
        };
        let tags = self.wrong_tags(tags, session.is_some());
        let session = self.wrong_session(session, lock);
        if self.is(Mutant::KeepsPlaceOfLostWork) {
            for (token, _) in self.lost(|notes| &mut notes.jobs, |until| *until) {
                // What was answered or taken by others meanwhile is not given back.
                let _ = self.inner.abandon_work_item(&token, None, false).await;
            }
        }
        let mut fetched = self.inner.fetch_work_item(lock, poll, session.as_ref(), &tags).await?;
        if self.is(Mutant::FetchesNewestWork) && fetched.is_some() && !lock.is_zero() {
            let mut older = Vec::new();
            while let Some(newer) =
                self.inner.fetch_work_item(lock, Duration::ZERO, session.as_ref(), &tags).await?
            {
                older.extend(fetched.replace(newer));
            }
            for (_, token, _) in older {
                self.inner.abandon_work_item(&token, None, true).await?;
            }
        }
        let Some((item, token, attempt)) = fetched else { return Ok(None) };
        let in_session = matches!(&item, WorkItem::ActivityExecute { session_id: Some(_), .. });
        if self.is(Mutant::WithholdsPlainWork) && session.is_some() && !in_session {
            self.inner.abandon_work_item(&token, None, true).await?;
            return Ok(None);
        }
        if let Some(session) = session.filter(|_| in_session) {
            self.notes().fetched_at.insert(session.owner_id, self.now());
        }
        self.notes().jobs.insert(token.clone(), self.after(lock));
        self.notes().items.insert(token.clone(), item.clone());
        let attempt = match self.mutant {
            Some(Mutant::DoublesWorkAttempts) => attempt * 2,
            Some(Mutant::ForgetsWorkAttempts) => 1,
            _ => attempt,
        };
        Ok(Some((item, token, attempt)))
    }

    fn wrong_session(
        &self,
        session: Option<&SessionFetchConfig>,
        lock: Duration,
    ) -> Option<SessionFetchConfig> {
        let Some(mut session) = session.cloned() else {
            let anybody = SessionFetchConfig { owner_id: "anybody".into(), lock_timeout: lock };
            return self.is(Mutant::LeaksSessions).then_some(anybody);
        };
        match self.mutant {
            Some(Mutant::SharesSessions) => session.owner_id = "everybody".into(),
            Some(Mutant::LeasesForever) => session.lock_timeout = LONG,
            Some(Mutant::LeasesAsLongAsLocks) => session.lock_timeout = lock,
            _ if self.notes().sessions_forgotten => {
                let snapshot = self.inner.snapshot();
                if let Some(owner) = snapshot.sessions.values().find_map(|s| s.owner.clone()) {
                    session.owner_id = owner;
                }
            }
            _ => {}
        }
        Some(session)
    }

    fn wrong_tags(&self, tags: &TagFilter, in_session: bool) -> TagFilter {
        match (self.mutant, tags) {
            (Some(Mutant::IgnoresTagsInSessions), _) if in_session => TagFilter::Any,
            (Some(Mutant::IgnoresTags), tags) if *tags != TagFilter::None => TagFilter::Any,
            (Some(Mutant::MixesInUntagged), TagFilter::Tags(tags)) => {
                TagFilter::DefaultAnd(tags.clone())
            }
            (Some(Mutant::LooksAtOneTag), TagFilter::Tags(tags)) => TagFilter::Tags(one(tags)),
            (Some(Mutant::LooksAtOneTag), TagFilter::DefaultAnd(tags)) => {
                TagFilter::DefaultAnd(one(tags))
            }
            (Some(Mutant::TakesNoneForDefault), TagFilter::None) => TagFilter::DefaultOnly,
            (_, tags) => tags.clone(),
        }
    }

    pub async fn wrong_answer(
        &self,
        token: &str,
        outcome: Option<WorkItem>,
    ) -> Result<(), ProviderError> {
        match self.mutant {
            Some(Mutant::LosesOutcome) => self.inner.ack_work_item(token, None).await,
            Some(Mutant::QueuesOutcomeFirst) => {
                self.send_outcome(outcome).await?;
                self.inner.ack_work_item(token, None).await
            }
            Some(Mutant::KeepsAnsweredWork) => {
                self.inner.abandon_work_item(token, None, false).await?;
                self.send_outcome(outcome).await
            }
            Some(Mutant::AnswersWithExpiredLock) if self.notes().jobs.contains_key(token) => {
                match self.inner.ack_work_item(token, outcome.clone()).await {
                    Err(_) => self.send_outcome(outcome).await,
                    done => done,
                }
            }
            Some(Mutant::AnswersWithReplacedLock) => {
                match self.inner.ack_work_item(token, outcome.clone()).await {
                    Err(error) => {
                        let token = self.latest_token_of_same(token).ok_or(error)?;
                        self.inner.ack_work_item(&token, outcome).await
                    }
                    done => done,
                }
            }
            Some(Mutant::AnswerFreesSession) => {
                self.inner.ack_work_item(token, outcome).await?;
                self.notes().sessions_forgotten = true;
                Ok(())
            }
            _ => self.inner.ack_work_item(token, outcome).await,
        }
    }

    /// Whether the lock of an activity ran out before anybody else took it.
    fn ran_out(&self, token: &str) -> bool {
        let rows = self.inner.snapshot().worker_queue;
        let mut locks = rows.iter().filter_map(|row| row.lock.as_ref());
        locks.any(|lock| lock.token == token && lock.held_until.is_none())
    }

    /// The token with which the same activity is locked now.
    fn latest_token_of_same(&self, token: &str) -> Option<String> {
        let item = self.notes().items.get(token).cloned()?;
        let rows = self.inner.snapshot().worker_queue;
        rows.into_iter().find(|row| row.item == item)?.lock.map(|lock| lock.token)
    }

    async fn send_outcome(&self, outcome: Option<WorkItem>) -> Result<(), ProviderError> {
        match outcome {
            Some(outcome) => self.inner.enqueue_for_orchestrator(outcome, None).await,
            None => Ok(()),
        }
    }

    pub async fn wrong_work_renewal(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let mut extend_for = extend_for;
        let held_until = self.notes().jobs.get(token).copied();
        if self.is(Mutant::RenewsWorkInVain)
            && let Some(until) = held_until
        {
            extend_for = self.until(until);
        }
        let result = self.inner.renew_work_item_lock(token, extend_for).await;
        if self.is(Mutant::RenewsExpiredWork) && held_until.is_some() { Ok(()) } else { result }
    }

    pub async fn wrong_work_abandon(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        match self.mutant {
            Some(Mutant::SwallowsWorkAbandon) => Ok(()),
            Some(Mutant::RefusesLateWorkAbandon) if self.ran_out(token) => {
                Err(ProviderError::permanent("abandon_work_item", "too late"))
            }
            Some(Mutant::RequeuesWork | Mutant::LosesTagOnAbandon) => {
                self.inner.ack_work_item(token, None).await?;
                let mut item = self.notes().items[token].clone();
                if let WorkItem::ActivityExecute { tag, .. } = &mut item
                    && self.is(Mutant::LosesTagOnAbandon)
                {
                    *tag = None;
                }
                self.inner.enqueue_for_worker(item).await
            }
            Some(Mutant::AbandonFreesSession) => {
                self.notes().sessions_forgotten = true;
                self.inner.abandon_work_item(token, delay, ignore_attempt).await
            }
            Some(Mutant::HalvesWorkDelay) => {
                let half = delay.map(|delay| delay / 2);
                self.inner.abandon_work_item(token, half, ignore_attempt).await
            }
            Some(Mutant::LosesWorkDelay) => {
                self.inner.abandon_work_item(token, None, ignore_attempt).await
            }
            Some(Mutant::CountsIgnoredWorkAttempts) => {
                self.inner.abandon_work_item(token, delay, false).await
            }
            _ => self.inner.abandon_work_item(token, delay, ignore_attempt).await,
        }
    }

    pub async fn wrong_session_renewal(
        &self,
        owners: &[&str],
        extend_for: Duration,
        idle: Duration,
    ) -> Result<usize, ProviderError> {
        let snapshot = self.inner.snapshot();
        let everybody: Vec<String> =
            snapshot.sessions.values().filter_map(|session| session.owner.clone()).collect();
        let (mut owners, mut extend_for, mut idle) = (owners.to_vec(), extend_for, idle);
        match self.mutant {
            Some(Mutant::SharesSessions) => owners.push("everybody"),
            Some(Mutant::RenewsIdleSessions) => idle = LONG,
            Some(Mutant::RenewsForeignSessions) => {
                owners = everybody.iter().map(String::as_str).collect();
            }
            Some(Mutant::CountsLapsedSessions) => {
                self.inner.renew_session_lock(&owners, extend_for, idle).await?;
                return Ok(everybody
                    .iter()
                    .filter(|owner| owners.contains(&owner.as_str()))
                    .count());
            }
            Some(Mutant::CountsOwners) => {
                self.inner.renew_session_lock(&owners, extend_for, idle).await?;
                return Ok(owners.len());
            }
            Some(Mutant::RenewsSessionsInVain) => {
                let ends = snapshot.sessions.values().filter_map(|session| session.leased_until);
                let left = ends.map(|end| end.saturating_sub(snapshot.taken_at_ms)).max();
                extend_for = Duration::from_millis(left.unwrap_or(0));
            }
            Some(Mutant::CountsFetchesAsUseOnly) => owners.retain(|owner| {
                let fetched_at = self.notes().fetched_at.get(*owner).copied();
                fetched_at.is_some_and(|at| self.now() - at < idle.as_millis() as u64)
            }),
            _ => {}
        }
        self.inner.renew_session_lock(&owners, extend_for, idle).await
    }

    pub async fn wrong_cleanup(&self, idle: Duration) -> Result<usize, ProviderError> {
        if self.is(Mutant::ForgetsNoSessions) {
            return Ok(0);
        }
        let forgotten = self.inner.cleanup_orphaned_sessions(idle).await?;
        let snapshot = self.inner.snapshot();
        let (mut busy, mut leased) = (0, 0);
        for session in snapshot.sessions.values() {
            let is_leased = session.leased_until.is_some_and(|until| snapshot.taken_at_ms < until);
            leased += usize::from(is_leased && session.rows == 0);
            busy += usize::from(!is_leased && 0 < session.rows);
        }
        match self.mutant {
            Some(Mutant::ForgetsLeasedSessions) => {
                self.notes().sessions_forgotten = true;
                Ok(forgotten + leased)
            }
            Some(Mutant::ForgetsBusySessions) => Ok(forgotten + busy),
            _ => Ok(forgotten),
        }
    }
}

fn one(tags: &HashSet<String>) -> HashSet<String> {
    tags.iter().min().cloned().into_iter().collect()
}
