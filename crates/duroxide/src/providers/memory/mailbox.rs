//! The messages of one instance: those to be read, those not yet due, and who reads them.

use std::collections::{BTreeMap, BTreeSet};

use semver::Version;

use duroxide_core::model::WorkItem;
use duroxide_core::model::limits::{MAX_TURN_BYTES, MAX_TURN_MESSAGES};

/// A queued message.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) item: WorkItem,
    pub(super) visible_at: u64,
    pub(super) attempts: u32,
}

impl Message {
    fn bytes(&self) -> usize {
        self.item.payload_bytes()
    }
}

/// Messages for one turn.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// In queue order.
    pub(super) sequences: Vec<u64>,
    pub(super) bytes: usize,
    /// Whether it comes alone: one of them was fetched before, and a lock ended without its holder
    /// (R8.146).
    pub(super) is_tried: bool,
}

impl Batch {
    fn add(&mut self, sequence: u64, message: &Message) {
        self.sequences.push(sequence);
        self.bytes += message.bytes();
        self.is_tried |= 0 < message.attempts;
    }
}

/// The lock of an instance. It stays after it ran out, until somebody else takes the instance:
/// its owner may still abandon (R8.67).
#[derive(Debug)]
pub(super) struct Lock {
    pub(super) token: String,
    /// `None` once it ran out.
    pub(super) held_until: Option<u64>,
    /// When it ran out, until a fetch has moved the mailbox behind the others (R8.146).
    pub(super) ran_out_at: Option<u64>,
    /// Sequence numbers of the messages it was taken with (R8.21).
    pub(super) batch: Vec<u64>,
    /// Whether it left messages behind that could be read (R8.147).
    leaves_some: bool,
}

/// What is known of the instance a mailbox belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// It can run whatever message comes; its current execution is pinned to this version.
    Known(Option<Version>),
    /// Only a start message can make it run (R8.29).
    Unknown,
}

/// What can be done with a mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Readiness {
    /// Nothing: no visible message, locked, or its start is yet to become visible.
    Resting,
    /// A turn can be fetched; its position among the others is that of the oldest visible message
    /// (R8.20), unless it was moved behind (R8.146).
    Runnable { pin: Option<Version>, position: u64 },
    /// Messages for nobody, which a start may yet follow (R8.29).
    Aside,
    /// Queue messages for nobody (R8.28).
    Undeliverable,
}

/// The messages of one instance. A message is in `visible` or in `hidden`, never in both.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    /// By queue order.
    pub(super) visible: BTreeMap<u64, Message>,
    /// By the time they become visible, then queue order.
    pub(super) hidden: BTreeMap<(u64, u64), Message>,
    pub(super) lock: Option<Lock>,
    /// Position behind those that were fetchable when a lock was found to have run out, until the
    /// next commit (R8.146).
    moved_to: Option<u64>,
    /// Until when nothing of it can be fetched, since a turn that had left messages behind was given
    /// back (R8.149).
    waits_until: Option<u64>,
    visible_starts: BTreeSet<u64>,
    visible_queue_messages: usize,
    hidden_starts: usize,
}

impl Mailbox {
    /// Adds a message, or puts it back at its old place.
    pub(super) fn put(&mut self, sequence: u64, message: Message, now: u64) {
        if now < message.visible_at {
            self.hidden_starts += usize::from(message.item.is_start());
            self.hidden.insert((message.visible_at, sequence), message);
        } else {
            if message.item.is_start() {
                self.visible_starts.insert(sequence);
            }
            self.visible_queue_messages += usize::from(is_queue_message(&message.item));
            self.visible.insert(sequence, message);
        }
    }

    /// Lets time pass: the lock runs out, messages become visible. Returns whether the lock did.
    pub(super) fn catch_up(&mut self, now: u64) -> bool {
        let mut ran_out = false;
        if let Some(lock) = &mut self.lock
            && let Some(until) = lock.held_until.take_if(|until| *until <= now)
        {
            lock.ran_out_at = Some(until);
            ran_out = true;
        }
        self.waits_until.take_if(|until| *until <= now);
        while let Some(first) = self.hidden.first_entry()
            && first.key().0 <= now
        {
            let ((_, sequence), message) = first.remove_entry();
            self.hidden_starts -= usize::from(message.item.is_start());
            self.put(sequence, message, now);
        }
        ran_out
    }

    /// The messages that the next turn has: the oldest ones, as many as it may have, and in any case
    /// the one that begins its execution (R8.21, R8.147).
    pub(super) fn next_batch(&self, is_known: bool) -> Batch {
        let beginning = self.beginning(is_known);
        let beginning_bytes =
            beginning.and_then(|first| self.visible.get(&first)).map_or(0, Message::bytes);
        let mut batch = Batch::default();
        for (sequence, message) in &self.visible {
            let is_beginning = beginning == Some(*sequence);
            let is_missing = beginning.is_some_and(|first| *sequence < first);
            let (count, bytes) = match is_missing {
                true => (1, beginning_bytes),
                false => (0, 0),
            };
            let is_full = MAX_TURN_MESSAGES < batch.sequences.len() + count + 1
                || MAX_TURN_BYTES < batch.bytes + bytes + message.bytes();
            let is_only = batch.sequences.is_empty() && !is_missing;
            if is_full && !is_beginning && !is_only {
                if let Some(first) = beginning.filter(|_| is_missing) {
                    batch.add(first, &self.visible[&first]);
                }
                break;
            }
            batch.add(*sequence, message);
        }
        batch.is_tried &= self.moved_to.is_some();
        batch
    }

    /// The message without which a turn can do nothing: the one that begins the next execution, or,
    /// for an instance that does not exist, its start.
    fn beginning(&self, is_known: bool) -> Option<u64> {
        let is_next = |sequence: &&u64| {
            let message = self.visible.get(sequence);
            message.is_some_and(|m| matches!(m.item, WorkItem::ContinueAsNew { .. }))
        };
        let next = self.visible_starts.iter().find(is_next);
        next.or_else(|| self.visible_starts.first().filter(|_| !is_known)).copied()
    }

    /// Locks these messages and counts the attempt (R8.21). Returns them with the highest attempt
    /// count (R8.22).
    pub(super) fn lock(
        &mut self,
        batch: Vec<u64>,
        token: String,
        until: u64,
    ) -> (Vec<WorkItem>, u32) {
        let (mut items, mut max_attempts) = (Vec::with_capacity(batch.len()), 0);
        for sequence in &batch {
            if let Some(message) = self.visible.get_mut(sequence) {
                message.attempts = message.attempts.saturating_add(1);
                max_attempts = max_attempts.max(message.attempts);
                items.push(message.item.clone());
            }
        }
        let leaves_some = batch.len() < self.visible.len();
        let held_until = Some(until);
        self.lock = Some(Lock { token, held_until, ran_out_at: None, batch, leaves_some });
        (items, max_attempts)
    }

    /// Takes out the locked messages and the lock (R8.42, R8.54).
    pub(super) fn consume(&mut self) -> Vec<(u64, Message)> {
        let batch = self.lock.take().map_or_else(Vec::new, |lock| lock.batch);
        self.moved_to = None;
        batch.into_iter().filter_map(|sequence| Some((sequence, self.take(sequence)?))).collect()
    }

    /// Takes out one message, visible or not; whether it was there.
    pub(super) fn remove(&mut self, sequence: u64) -> bool {
        if self.take(sequence).is_some() {
            return true;
        }
        let hidden = self.hidden.keys().find(|(_, hidden)| *hidden == sequence).copied();
        let Some(message) = hidden.and_then(|key| self.hidden.remove(&key)) else { return false };
        self.hidden_starts -= usize::from(message.item.is_start());
        true
    }

    /// Where a timer is that is due and held back, and has never been fetched (R8.150).
    pub(super) fn held_back(&self, timer: &WorkItem, now: u64) -> Option<(u64, u64)> {
        let WorkItem::TimerFired { fire_at_ms, .. } = timer else { return None };
        let is_this =
            |(_, message): &(_, &Message)| message.attempts == 0 && message.item == *timer;
        let mut later = self.hidden.range((*fire_at_ms, 0)..);
        later.find(is_this).filter(|_| *fire_at_ms <= now).map(|(place, _)| *place)
    }

    /// Whether a start is among the messages, visible or not.
    pub(super) fn has_start(&self) -> bool {
        !self.visible_starts.is_empty() || 0 < self.hidden_starts
    }

    /// Gives the locked messages back (R8.65): hidden until then, if a time is given, and with the
    /// attempt uncounted, if that is asked for. Other messages are left alone, unless some could not be
    /// part of the turn: then all of them wait until then, in their places (R8.149).
    pub(super) fn abandon(&mut self, hide_until: Option<u64>, uncount: bool, now: u64) {
        let Some(Lock { batch, leaves_some, .. }) = self.lock.take() else { return };
        let hide_until = match leaves_some {
            true => {
                self.waits_until = hide_until.filter(|until| now < *until);
                None
            }
            false => hide_until,
        };
        for sequence in batch {
            if let Some(mut message) = self.take(sequence) {
                message.attempts = message.attempts.saturating_sub(u32::from(uncount));
                message.visible_at = hide_until.unwrap_or(message.visible_at);
                self.put(sequence, message, now);
            }
        }
    }

    /// Takes out all visible messages.
    pub(super) fn drain_visible(&mut self) -> Vec<Message> {
        let all: Vec<u64> = self.visible.keys().copied().collect();
        all.into_iter().filter_map(|sequence| self.take(sequence)).collect()
    }

    /// Takes out the oldest messages that have been visible since before `limit`.
    pub(super) fn drain_older(&mut self, limit: u64) -> Vec<Message> {
        let mut drained = Vec::new();
        while let Some((sequence, message)) = self.visible.first_key_value()
            && message.visible_at <= limit
        {
            drained.extend(self.take(*sequence));
        }
        drained
    }

    /// What can be done with the mailbox now.
    pub(super) fn readiness(&self, standing: &Standing) -> Readiness {
        let Some(position) = self.position() else { return Readiness::Resting };
        if self.held_until().is_some() || self.waits_until.is_some() {
            return Readiness::Resting;
        }
        match standing {
            Standing::Known(pin) => Readiness::Runnable { pin: pin.clone(), position },
            Standing::Unknown if !self.visible_starts.is_empty() => {
                Readiness::Runnable { pin: None, position }
            }
            Standing::Unknown if 0 < self.hidden_starts => Readiness::Resting,
            Standing::Unknown if self.visible_queue_messages == self.visible.len() => {
                Readiness::Undeliverable
            }
            Standing::Unknown => Readiness::Aside,
        }
    }

    /// Where it stands among the others, if it has anything to read.
    pub(super) fn position(&self) -> Option<u64> {
        let (oldest, _) = self.visible.first_key_value()?;
        Some(self.moved_to.map_or(*oldest, |moved_to| moved_to.max(*oldest)))
    }

    /// Moves it behind those that are fetchable (R8.146).
    pub(super) fn move_to(&mut self, position: u64) {
        self.moved_to = Some(position);
        if let Some(lock) = &mut self.lock {
            lock.ran_out_at = None;
        }
    }

    /// Nothing is left, so nothing stands anywhere, or waits.
    pub(super) fn forget_position(&mut self) {
        (self.moved_to, self.waits_until) = (None, None);
    }

    /// Until when the lock holds, if it does.
    pub(super) fn held_until(&self) -> Option<u64> {
        self.lock.as_ref()?.held_until
    }

    /// When time alone changes something next. Under a lock only its end matters.
    pub(super) fn next_change(&self) -> Option<u64> {
        let due = self.hidden.first_key_value().map(|((at, _), _)| *at);
        self.held_until().or_else(|| due.into_iter().chain(self.waits_until).min())
    }

    /// Number of messages, visible or not.
    pub(super) fn len(&self) -> usize {
        self.visible.len() + self.hidden.len()
    }

    /// Number of messages that no valid lock covers, without those that sleep until they are due.
    pub(super) fn waiting_len(&self, now: u64) -> usize {
        let locked = self.lock.as_ref().filter(|lock| lock.held_until.is_some());
        // What has become due behind a lock is still among the hidden.
        let is_asleep = |message: &&Message| now < message.visible_at && message.attempts == 0;
        let asleep = self.hidden.values().filter(is_asleep).count();
        self.len() - locked.map_or(0, |lock| lock.batch.len()) - asleep
    }

    /// The highest attempt count of all messages.
    pub(super) fn max_attempts(&self) -> u32 {
        let all = self.visible.values().chain(self.hidden.values());
        all.map(|message| message.attempts).max().unwrap_or(0)
    }

    fn take(&mut self, sequence: u64) -> Option<Message> {
        let message = self.visible.remove(&sequence)?;
        self.visible_starts.remove(&sequence);
        self.visible_queue_messages -= usize::from(is_queue_message(&message.item));
        Some(message)
    }
}

fn is_queue_message(item: &WorkItem) -> bool {
    matches!(item, WorkItem::QueueMessage { .. })
}
