//! Turns that are fetched, given back and held wrongly, and messages that are sent wrongly.

use std::time::Duration;

use duroxide::providers::{
    DispatcherCapabilityFilter, FetchedTurn, KvEntry, OrchestrationItem, Provider, ProviderError,
    TurnCommit, WorkItem,
};
use duroxide::runtime::limits::MAX_FETCH_BYTES;
use semver::{Prerelease, Version};

use super::list::Mutant;
use super::wrapper::{HeldTurn, LONG, MutantProvider};

type Turn = (OrchestrationItem, String, u32);

impl MutantProvider {
    /// Others are wrong in what they do with each turn, which is seen best one at a time.
    pub async fn several_wrong_turns(
        &self,
        (lock, mut poll): (Duration, Duration),
        filter: Option<&DispatcherCapabilityFilter>,
        max: usize,
    ) -> Result<Vec<FetchedTurn>, ProviderError> {
        let mixes = self.is(Mutant::MixesTriedTurns);
        let hides = self.is(Mutant::HidesWhatItLeaves);
        let isolates = self.is(Mutant::IsolatesGivenBackTurns);
        let several = mixes || hides || isolates || self.mutant.is_none();
        let max = if several { max } else { max.min(1) };
        let (mut all, mut room) = (Vec::new(), MAX_FETCH_BYTES);
        while all.len() < max
            && let Some(turn) = self.fetch_turn(lock, poll, filter).await?
        {
            let is_lost = isolates || self.has_lost_turn(&turn.item.instance);
            let is_tried = 1 < turn.attempt_count && is_lost && !mixes;
            let bytes: usize = turn.item.messages.iter().map(WorkItem::payload_bytes).sum();
            let is_too_much = !all.is_empty() && room < bytes;
            room -= if all.is_empty() { 0 } else { bytes.min(room) };
            if (is_tried || is_too_much) && !all.is_empty() {
                let hidden = hides.then_some(LONG);
                self.note_answered(&turn.lock_token);
                self.inner.abandon_orchestration_item(&turn.lock_token, hidden, true).await?;
                break;
            }
            all.push(turn);
            if is_tried {
                break;
            }
            poll = Duration::ZERO;
        }
        Ok(all)
    }

    pub async fn wrong_fetch(
        &self,
        lock: Duration,
        poll: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<Turn>, ProviderError> {
        let lock = match self.mutant {
            Some(Mutant::LocksTurnsForever) => LONG,
            Some(Mutant::LocksTurnsBriefly) => lock / 4,
            _ => lock,
        };
        let poll = if self.is(Mutant::PollsTooLong) { poll * 3 } else { poll };
        if self.is(Mutant::LocksEverything) && self.somebody_holds_a_turn() {
            return Ok(None);
        }
        if self.is(Mutant::KeepsPlaceOfLostTurns) {
            for (token, _) in self.lost(|notes| &mut notes.turns, |turn| turn.until) {
                // What was committed or taken by others meanwhile is not given back.
                let _ = self.inner.abandon_orchestration_item(&token, None, false).await;
            }
        }
        let mut fetched = self.fetch_filtered(lock, poll, filter).await?;
        if self.is(Mutant::FetchesNewestTurn) && fetched.is_some() && !lock.is_zero() {
            let mut older = Vec::new();
            while let Some(newer) = self.fetch_filtered(lock, Duration::ZERO, filter).await? {
                older.extend(fetched.replace(newer));
            }
            for (_, token, _) in older {
                self.inner.abandon_orchestration_item(&token, None, true).await?;
            }
        }
        let Some((mut item, mut token, attempt)) = fetched else {
            return Ok(self.handed_out_before());
        };
        if self.notes().blocked.get(&item.instance).is_some_and(|until| self.now() < *until) {
            self.inner.abandon_orchestration_item(&token, None, true).await?;
            return Ok(None);
        }
        if self.is(Mutant::FailsOnDamage)
            && let Some(damage) = item.history_error
        {
            return Err(ProviderError::permanent("fetch_orchestration_item", damage));
        }
        let attempt = self.wrong_attempt(&item, attempt);
        let held = HeldTurn {
            instance: item.instance.clone(),
            messages: item.messages.clone(),
            until: self.after(lock),
        };
        self.notes().turns.insert(token.clone(), held);
        self.twist(&mut item).await;
        if self.is(Mutant::ReusesTurnTokens) {
            let alias = format!("lock of {}", item.instance);
            self.notes().aliases.insert(alias.clone(), token);
            token = alias;
        }
        self.notes().latest_turn = Some((item.clone(), token.clone(), attempt));
        Ok(Some((item, token, attempt)))
    }

    async fn fetch_filtered(
        &self,
        lock: Duration,
        poll: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<Turn>, ProviderError> {
        let mut filter = filter.cloned();
        match self.mutant {
            Some(Mutant::IgnoresVersionFilter) => filter = None,
            Some(Mutant::TakesEmptyFilterForNone) => {
                filter = filter.filter(|filter| !filter.supported_duroxide_versions.is_empty());
            }
            Some(Mutant::ExcludesUpperVersion) => {
                if let Some(range) =
                    filter.as_mut().and_then(|f| f.supported_duroxide_versions.first_mut())
                {
                    range.max.pre = Prerelease::new("0").unwrap();
                }
            }
            Some(Mutant::HonoursAllRanges) => {
                for range in filter.iter().flat_map(|f| &f.supported_duroxide_versions).skip(1) {
                    let one = DispatcherCapabilityFilter {
                        supported_duroxide_versions: vec![range.clone()],
                    };
                    let fetch =
                        self.inner.fetch_orchestration_item(lock, Duration::ZERO, Some(&one));
                    if let Some(turn) = fetch.await? {
                        return Ok(Some(turn));
                    }
                }
            }
            Some(Mutant::FiltersAfterLocking) => {
                let fetched = self.inner.fetch_orchestration_item(lock, poll, None).await?;
                return Ok(fetched.filter(|(item, _, _)| {
                    let pin = self.pin_of(item);
                    filter.is_none_or(|f| pin.is_none_or(|pin| f.is_compatible(&pin)))
                }));
            }
            _ => {}
        }
        self.inner.fetch_orchestration_item(lock, poll, filter.as_ref()).await
    }

    fn pin_of(&self, item: &OrchestrationItem) -> Option<Version> {
        let snapshot = self.inner.snapshot();
        let instance = snapshot.instances.get(&item.instance)?;
        instance.executions.get(&item.execution_id)?.pinned_duroxide_version.clone()
    }

    fn somebody_holds_a_turn(&self) -> bool {
        let snapshot = self.inner.snapshot();
        snapshot.instance_locks.values().any(|lock| lock.held_until.is_some())
    }

    /// The latest turn once more, while its lock holds.
    fn handed_out_before(&self) -> Option<Turn> {
        let snapshot = self.inner.snapshot();
        let latest = self.notes().latest_turn.clone().filter(|_| self.is(Mutant::HandsOutTwice));
        latest.filter(|(item, token, _)| {
            let lock = snapshot.instance_locks.get(&item.instance);
            lock.is_some_and(|lock| lock.held_until.is_some() && lock.token == *token)
        })
    }

    fn wrong_attempt(&self, item: &OrchestrationItem, attempt: u32) -> u32 {
        match self.mutant {
            Some(Mutant::DoublesTurnAttempts) => attempt * 2,
            Some(Mutant::ForgetsTurnAttempts) => 1,
            Some(Mutant::CountsNewestMessage) => {
                let snapshot = self.inner.snapshot();
                let mut rows = snapshot.orchestrator_queue.iter();
                let newest = rows.rfind(|row| row.tagged && row.instance == item.instance);
                newest.map_or(attempt, |row| row.attempts)
            }
            _ => attempt,
        }
    }

    /// Twists what a turn says.
    async fn twist(&self, item: &mut OrchestrationItem) {
        match self.mutant {
            Some(Mutant::RequeuesMessages) => {
                let snapshot = self.inner.snapshot();
                let rows = snapshot.orchestrator_queue.into_iter();
                let mut rows: Vec<_> =
                    rows.filter(|row| row.tagged && row.instance == item.instance).collect();
                rows.sort_by_key(|row| (row.attempts, row.sequence));
                item.messages = rows.into_iter().map(|row| row.item).collect();
            }
            Some(Mutant::ShowsWholeBacklog) => {
                let rows = self.inner.snapshot().orchestrator_queue.into_iter();
                let ours = rows.filter(|row| row.instance == item.instance);
                item.messages = ours.map(|row| row.item).collect();
            }
            Some(Mutant::LeavesBeginningBehind) if 100 < item.messages.len() => {
                item.messages.pop_if(|last| last.is_start());
            }
            Some(Mutant::ReversesBatch) => item.messages.reverse(),
            Some(Mutant::ShowsFirstMessageOnly) => item.messages.truncate(1),
            Some(Mutant::FetchesFirstHistory) => {
                let first = self.inner.read_with_execution(&item.instance, 1).await;
                item.history = first.unwrap_or_default();
            }
            Some(Mutant::NamesOldExecution) if 1 < item.execution_id => item.execution_id -= 1,
            Some(Mutant::ForgetsVersion) => item.version = "unknown".to_owned(),
            Some(Mutant::HidesDamage) => item.history_error = None,
            Some(Mutant::LosesSnapshot) => item.kv_snapshot.clear(),
            Some(Mutant::LosesSnapshotTimes) => {
                item.kv_snapshot.values_mut().for_each(|entry| entry.last_updated_at_ms = 0);
            }
            Some(Mutant::SnapshotsRunningExecution) => {
                let values = self.inner.get_kv_all_values(&item.instance).await.unwrap();
                for (key, value) in values {
                    let entry = KvEntry { value, last_updated_at_ms: 0 };
                    item.kv_snapshot.entry(key).or_insert(entry);
                }
            }
            _ => {}
        }
    }

    pub async fn wrong_abandon(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let (mut delay, mut ignore_attempt) = (delay, ignore_attempt);
        match self.mutant {
            Some(Mutant::SwallowsAbandon) => return Ok(()),
            Some(Mutant::RefusesLateAbandon) => {
                let locks = self.inner.snapshot().instance_locks;
                if locks.values().any(|l| l.token == token && l.held_until.is_none()) {
                    return Err(ProviderError::permanent("abandon_orchestration_item", "too late"));
                }
            }
            Some(Mutant::LosesAbandonDelay) => delay = None,
            Some(Mutant::HalvesAbandonDelay) => delay = delay.map(|delay| delay / 2),
            Some(Mutant::CountsIgnoredTurnAttempts) => ignore_attempt = false,
            Some(Mutant::NeverCountsGivenBackTurns) => ignore_attempt = true,
            Some(Mutant::MovesGivenBackTurns) if delay.is_none() && !ignore_attempt => {
                // A lock that runs out moves its turn.
                let moved = self.inner.renew_orchestration_item_lock(token, Duration::ZERO).await;
                if moved.is_ok() {
                    return Ok(());
                }
            }
            Some(Mutant::LetsBacklogOvertake) if delay.is_some() => {
                let rows = self.inner.snapshot().orchestrator_queue.into_iter();
                let batch: Vec<_> = rows.filter(|row| row.tagged).map(|row| row.item).collect();
                let empty = TurnCommit { execution_id: 1, ..TurnCommit::default() };
                self.inner.commit_turn(token, empty).await.map_err(|rejected| rejected.error)?;
                for message in batch {
                    self.inner.enqueue_for_orchestrator(message, delay).await?;
                }
                return Ok(());
            }
            Some(Mutant::DelaysUnlockedMessages) if delay.is_some() => {
                let instance = self.held(token).map(|turn| turn.instance).unwrap_or_default();
                self.inner.abandon_orchestration_item(token, None, ignore_attempt).await?;
                let Some(token) = self.retake(&instance).await else { return Ok(()) };
                return self.inner.abandon_orchestration_item(&token, delay, true).await;
            }
            _ => {}
        }
        let result = self.inner.abandon_orchestration_item(token, delay, ignore_attempt).await;
        if self.is(Mutant::AbandonsWithAnyToken) { Ok(()) } else { result }
    }

    pub async fn wrong_renewal(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let mut extend_for = extend_for;
        if self.is(Mutant::RenewsTurnInVain)
            && let Some(turn) = self.held(token)
        {
            extend_for = self.until(turn.until);
        }
        let result = self.inner.renew_orchestration_item_lock(token, extend_for).await;
        let known = self.held(token).is_some();
        if self.is(Mutant::RenewsExpiredTurn) && known { Ok(()) } else { result }
    }

    pub async fn wrong_send(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        let key = item.orchestration_key().unwrap_or_default().to_owned();
        self.notes().addressed.push(key.clone());
        match self.mutant {
            Some(Mutant::SwallowsMisplacedMessages) if item.orchestration_key().is_none() => Ok(()),
            Some(Mutant::HalvesSendDelay) => {
                let half = delay.map(|delay| delay / 2);
                self.inner.enqueue_for_orchestrator(item, half).await
            }
            Some(Mutant::LosesSendDelay) => self.inner.enqueue_for_orchestrator(item, None).await,
            Some(Mutant::SendsTwice) => {
                self.inner.enqueue_for_orchestrator(item.clone(), delay).await?;
                self.inner.enqueue_for_orchestrator(item, delay).await
            }
            Some(Mutant::KeepsOrphanQueueMessages) => {
                let unknown = !self.inner.snapshot().instances.contains_key(&key);
                if unknown && matches!(item, WorkItem::QueueMessage { .. }) {
                    self.notes().orphans.push(item);
                    return Ok(());
                }
                self.inner.enqueue_for_orchestrator(item, delay).await?;
                let orphans = std::mem::take(&mut self.notes().orphans);
                for orphan in orphans {
                    self.inner.enqueue_for_orchestrator(orphan, None).await?;
                }
                Ok(())
            }
            _ => self.inner.enqueue_for_orchestrator(item, delay).await,
        }
    }
}
