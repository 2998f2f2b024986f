//! The orchestrator queue: who runs next, with which messages, under which lock.

use std::collections::BTreeSet;
use std::time::Duration;

use duroxide::providers::{DispatcherCapabilityFilter, OrchestrationItem, ProviderError, WorkItem};
use duroxide::runtime::limits::{MAX_TURN_BYTES, MAX_TURN_MESSAGES};
use duroxide::{Event, EventKind};

use super::store::{Tables, decode, encode, later};

/// A row of the orchestrator queue.
pub(crate) struct Message {
    /// Place in the queue, given when it gets there.
    number: u64,
    pub(crate) instance: String,
    /// The message itself, as text; the columns beside it are what the queue has to know of it.
    pub(crate) text: String,
    pub(crate) is_start: bool,
    /// The instance whose child it starts.
    pub(crate) parent: Option<String>,
    is_queue_message: bool,
    queued_at_ms: u64,
    visible_at_ms: u64,
    /// Token of the fetch that has it in its batch.
    pub(crate) batch: Option<String>,
    pub(crate) attempts: u32,
}

impl Message {
    /// A row for this message; fails for activities, which belong into the other queue (R8.10).
    pub(crate) fn new(
        operation: &str,
        item: &WorkItem,
        now: u64,
        visible_at_ms: u64,
    ) -> Result<Self, ProviderError> {
        let Some(instance) = item.orchestration_key() else {
            return Err(ProviderError::permanent(operation, "an activity is no message"));
        };
        Ok(Self {
            number: 0,
            instance: instance.to_owned(),
            text: encode(operation, item)?,
            is_start: item.is_start(),
            parent: item.parent_of_start().map(str::to_owned),
            is_queue_message: matches!(item, WorkItem::QueueMessage { .. }),
            queued_at_ms: now,
            visible_at_ms,
            batch: None,
            attempts: 0,
        })
    }

    pub(crate) fn is_visible(&self, now: u64) -> bool {
        self.visible_at_ms <= now
    }
}

/// An item, the token of its lock, and how often its messages have been fetched.
pub(crate) type Turn = (OrchestrationItem, String, u32);

impl Tables {
    /// Puts a message at the end of the queue.
    pub(crate) fn post(&mut self, mut message: Message) {
        message.number = self.fresh_number();
        self.messages.push(message);
    }

    /// Locks the next instance that has something to do (R8.20 – R8.31).
    pub(crate) fn fetch_turn(
        &mut self,
        now: u64,
        lock_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Option<Turn> {
        self.give_up_orphans(now);
        self.waits_until.retain(|_, until| now < *until);
        self.move_lost_turns_behind(now);
        loop {
            let instance = self.next_runnable(now, filter)?;
            // Without its unreadable messages another instance may be next, so look again (R8.30).
            if !self.bury_unreadable_messages(&instance, now) {
                return Some(self.lock_turn(&instance, now, lock_timeout));
            }
        }
    }

    /// Gives a turn back (R8.65 – R8.67). The lock may have expired, as long as it is the current.
    pub(crate) fn abandon_turn(
        &mut self,
        token: &str,
        now: u64,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let holder = self.turn_locks.iter().find(|(_, lock)| lock.token == token);
        let Some(instance) = holder.map(|(instance, _)| instance.clone()) else {
            return Err(invalid_token("abandon_orchestration_item"));
        };
        let lock = self.turn_locks.remove(&instance);
        let mut visible_at_ms = delay.map(|delay| later(now, delay));
        if lock.is_some_and(|lock| lock.leaves_some) {
            // What it left behind must not overtake it: nothing is hidden, and all of it waits
            // (R8.149).
            self.waits_until.extend(visible_at_ms.take().map(|until| (instance, until)));
        }
        for message in self.messages.iter_mut().filter(|row| row.batch.as_deref() == Some(token)) {
            message.batch = None;
            message.visible_at_ms = visible_at_ms.unwrap_or(message.visible_at_ms);
            if ignore_attempt {
                message.attempts = message.attempts.saturating_sub(1);
            }
        }
        Ok(())
    }

    /// Holds a turn for longer, counted from now (R8.68).
    pub(crate) fn renew_turn(
        &mut self,
        token: &str,
        now: u64,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let mut locks = self.turn_locks.values_mut();
        match locks.find(|lock| lock.token == token && lock.is_valid(now)) {
            Some(lock) => lock.until_ms = later(now, extend_for),
            None => return Err(invalid_token("renew_orchestration_item_lock")),
        }
        Ok(())
    }

    /// The instance this token is a valid lock on (R8.40, R8.41).
    pub(crate) fn locked_instance(&self, token: &str, now: u64) -> Result<String, ProviderError> {
        let mut locks = self.turn_locks.iter();
        let found = locks.find(|(_, lock)| lock.token == token && lock.is_valid(now));
        found
            .map(|(instance, _)| instance.clone())
            .ok_or_else(|| invalid_token("ack_orchestration_item"))
    }

    /// Whether an instance is locked by somebody.
    pub(crate) fn is_locked(&self, instance: &str, now: u64) -> bool {
        self.turn_locks.get(instance).is_some_and(|lock| lock.is_valid(now))
    }

    /// The instance that stands first among those that may be fetched.
    fn next_runnable(
        &self,
        now: u64,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Option<String> {
        let owners =
            self.messages.iter().filter(|row| row.is_visible(now)).map(|row| &row.instance);
        owners
            .filter(|instance| {
                !self.is_locked(instance, now)
                    && !self.waits_until.contains_key(*instance)
                    && (self.is_known(instance) || self.has_start(instance, now))
                    && self.fits(instance, filter)
            })
            .min_by_key(|instance| self.position(instance, now))
            .cloned()
    }

    /// Where an instance stands: with its oldest visible message, unless it was moved behind others.
    fn position(&self, instance: &str, now: u64) -> Option<u64> {
        let mut rows = self.messages.iter().filter(|row| row.instance == instance);
        let oldest = rows.find(|row| row.is_visible(now))?.number;
        Some(oldest.max(self.moved_to.get(instance).copied().unwrap_or(0)))
    }

    /// Turns whose lock ran out go behind all others, since they may be what ended their process:
    /// in the order in which the locks ended, then in that in which they stood (R8.146).
    fn move_lost_turns_behind(&mut self, now: u64) {
        // Who has no messages stands nowhere.
        let mut moved_to = std::mem::take(&mut self.moved_to);
        let has_any = |id: &String| self.messages.iter().any(|row| row.instance == *id);
        moved_to.retain(|id, _| has_any(id) || self.is_locked(id, now));
        self.moved_to = moved_to;
        let locks = self.turn_locks.iter().filter(|(_, lock)| lock.just_ran_out(now));
        let mut lost: Vec<_> = locks
            .map(|(instance, lock)| (lock.until_ms, self.position(instance, now), instance.clone()))
            .collect();
        lost.sort();
        for (_, position, instance) in lost {
            if let Some(lock) = self.turn_locks.get_mut(&instance) {
                lock.is_over = true;
            }
            if position.is_some() {
                let last = self.fresh_number();
                self.moved_to.insert(instance, last);
            }
        }
    }

    /// Whether the caller can replay the current execution (R8.90, R8.93).
    fn fits(&self, instance: &str, filter: Option<&DispatcherCapabilityFilter>) -> bool {
        let Some(filter) = filter else { return true };
        let Some(range) = filter.supported_duroxide_versions.first() else { return false };
        let current = self.execution(instance, self.latest_execution(instance));
        current.and_then(|row| row.pin.as_ref()).is_none_or(|pin| range.contains(pin))
    }

    /// Whether there is anything of this instance besides messages.
    pub(crate) fn is_known(&self, instance: &str) -> bool {
        let has_history = || {
            let mut executions =
                self.executions.get(instance).into_iter().flat_map(|all| all.values());
            executions.any(|row| !row.events.is_empty())
        };
        self.instances.contains_key(instance) || has_history()
    }

    /// Whether a start waits to be fetched.
    fn has_start(&self, instance: &str, now: u64) -> bool {
        let mut rows = self.messages.iter().filter(|row| row.instance == instance);
        rows.any(|row| row.is_start && row.is_visible(now))
    }

    /// Messages that nobody will ever fetch become dead letters.
    fn give_up_orphans(&mut self, now: u64) {
        let rows = self.messages.iter().enumerate();
        let lost: Vec<usize> =
            rows.filter(|(_, row)| self.is_lost(row, now)).map(|(at, _)| at).collect();
        for at in lost.into_iter().rev() {
            let row = self.messages.remove(at);
            self.bury(row.instance, row.text, "no such instance", now);
        }
    }

    /// Whether a message is for nobody: queue messages at once if nothing else waits with them, all
    /// others after some time, since a start may follow (R8.28, R8.29).
    fn is_lost(&self, row: &Message, now: u64) -> bool {
        if row.is_start || !row.is_visible(now) || self.is_known(&row.instance) {
            return false;
        }
        let company = || self.messages.iter().filter(|other| other.instance == row.instance);
        let is_old = now >= row.queued_at_ms.saturating_add(self.orphan_retention_ms);
        !company().any(|other| other.is_start)
            && (is_old || company().all(|other| other.is_queue_message || !other.is_visible(now)))
    }

    /// Takes out of the queue what cannot be read; whether there was anything.
    fn bury_unreadable_messages(&mut self, instance: &str, now: u64) -> bool {
        let unreadable = |row: &mut Message| {
            let fetchable = row.instance == instance && row.is_visible(now);
            fetchable && decode::<WorkItem>("fetch_orchestration_item", &row.text).is_err()
        };
        let buried: Vec<Message> = self.messages.extract_if(.., unreadable).collect();
        let any = !buried.is_empty();
        for row in buried {
            self.bury(row.instance, row.text, "unreadable message", now);
        }
        any
    }

    /// Numbers of the messages that the next turn has: the oldest ones, as many as it may have, and in
    /// any case the one that begins its execution (R8.147).
    fn next_batch(&self, instance: &str, now: u64) -> BTreeSet<u64> {
        let rows = self.messages.iter().filter(|row| row.instance == instance);
        let rows: Vec<&Message> = rows.filter(|row| row.is_visible(now)).collect();
        let is_next = |row: &&&Message| row.text.starts_with("{\"ContinueAsNew\"");
        let is_start = |row: &&&Message| row.is_start && !self.is_known(instance);
        let beginning = rows.iter().find(is_next).or_else(|| rows.iter().find(is_start));
        let mut batch = BTreeSet::new();
        let mut bytes = 0;
        for row in beginning.into_iter().chain(&rows) {
            let is_full =
                batch.len() == MAX_TURN_MESSAGES || MAX_TURN_BYTES < bytes + row.text.len();
            if is_full && !batch.is_empty() {
                break;
            }
            // The first may be met again.
            if batch.insert(row.number) {
                bytes += row.text.len();
            }
        }
        batch
    }

    /// Locks an instance, tags the messages of its turn, and says what there is to know (R8.21).
    fn lock_turn(&mut self, instance: &str, now: u64, lock_timeout: Duration) -> Turn {
        let mut lock = self.fresh_lock(now, lock_timeout);
        let (mut messages, mut attempts) = (Vec::new(), 0);
        let batch = self.next_batch(instance, now);
        let rows = self.messages.iter().filter(|row| row.instance == instance);
        lock.leaves_some = batch.len() < rows.filter(|row| row.is_visible(now)).count();
        for row in &mut self.messages {
            if batch.contains(&row.number) {
                row.batch = Some(lock.token.clone());
                row.attempts = row.attempts.saturating_add(1);
                attempts = attempts.max(row.attempts);
                messages.extend(decode::<WorkItem>("fetch_orchestration_item", &row.text).ok());
            }
        }
        let token = lock.token.clone();
        self.turn_locks.insert(instance.to_owned(), lock);
        (self.describe(instance, messages), token, attempts)
    }

    /// An instance with its history; one that cannot be read is no error here (R8.24 – R8.26, R8.31).
    fn describe(&self, instance: &str, messages: Vec<WorkItem>) -> OrchestrationItem {
        let execution_id = self.latest_execution(instance);
        let (history, history_error) = match self.history(instance, execution_id) {
            Ok(history) => (history, None),
            Err(error) => (Vec::new(), Some(error.message)),
        };
        let row = self.instances.get(instance).map(|row| (row.name.clone(), row.version.clone()));
        let (orchestration_name, version) = row
            .or_else(|| history.iter().find_map(started_as))
            .or_else(|| messages.iter().find_map(to_be_started_as))
            .unwrap_or_default();
        let kv_snapshot =
            if history_error.is_none() { self.kv_snapshot(instance) } else { Default::default() };
        OrchestrationItem {
            instance: instance.to_owned(),
            orchestration_name,
            execution_id,
            version,
            history,
            messages,
            history_error,
            kv_snapshot,
        }
    }
}

/// Name and version, if this is a start event.
fn started_as(event: &Event) -> Option<(String, String)> {
    match &event.kind {
        EventKind::OrchestrationStarted { name, version, .. } => {
            Some((name.clone(), version.clone()))
        }
        _ => None,
    }
}

/// Name and version, if this message starts something (R8.25).
fn to_be_started_as(message: &WorkItem) -> Option<(String, String)> {
    match message {
        WorkItem::StartOrchestration { orchestration, version, .. }
        | WorkItem::ContinueAsNew { orchestration, version, .. } => {
            let version = version.clone().unwrap_or_else(|| "unknown".to_owned());
            Some((orchestration.clone(), version))
        }
        _ => None,
    }
}

fn invalid_token(operation: &str) -> ProviderError {
    ProviderError::permanent(operation, "Invalid lock token: unknown, or its lock has expired")
}
