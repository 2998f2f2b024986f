//! The orchestrator queue: mailboxes, and indexes that find the next one to serve without looking
//! at the others.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use semver::Version;

use duroxide_core::model::WorkItem;

use super::instances::Id;
use super::mailbox::{Batch, Mailbox, Message, Readiness, Standing};
use crate::providers::Refusal;

/// All messages for orchestrations.
///
/// Whatever changes a mailbox, or what is known of its instance, is followed by
/// [`settle`](Self::settle), which alone touches `runnable`, `undeliverable` and `timers`. Each
/// mailbox has at most one entry in each of them.
#[derive(Debug)]
pub(super) struct OrchestrationQueue {
    slots: HashMap<Id, Slot>,
    /// Who holds which token, run out or not.
    tokens: HashMap<String, Id>,
    /// Instances to serve, by pin, then by their position.
    runnable: BTreeMap<Option<Version>, BTreeMap<u64, Id>>,
    /// Instances that only queue messages speak of.
    undeliverable: BTreeSet<Id>,
    /// When which mailbox changes by itself.
    timers: BTreeSet<(u64, Id)>,
    /// Instances whose lock ran out, which no fetch has seen yet.
    ran_out: Vec<Id>,
    /// Starts of children that nobody has begun, by the parent they name: place and addressee.
    starts: HashMap<String, BTreeMap<u64, Id>>,
    /// Instances that became runnable since this was last asked.
    awakened: Vec<Id>,
    next_sequence: u64,
    orphan_retention_ms: u64,
}

/// A mailbox and where the indexes have it.
#[derive(Debug)]
struct Slot {
    mailbox: Mailbox,
    readiness: Readiness,
    timer: Option<u64>,
}

impl OrchestrationQueue {
    /// An empty queue that keeps messages for unknown instances so long.
    pub(super) fn new(orphan_retention_ms: u64) -> Self {
        Self {
            slots: HashMap::new(),
            tokens: HashMap::new(),
            runnable: BTreeMap::new(),
            undeliverable: BTreeSet::new(),
            timers: BTreeSet::new(),
            ran_out: Vec::new(),
            starts: HashMap::new(),
            awakened: Vec::new(),
            next_sequence: 1,
            orphan_retention_ms,
        }
    }

    /// Appends a message to an instance's mailbox (R8.10).
    pub(super) fn push(&mut self, id: &Id, item: WorkItem, visible_at: u64, now: u64) {
        let sequence = self.skip_position();
        if let Some(parent) = item.parent_of_start() {
            self.starts.entry(parent.to_owned()).or_default().insert(sequence, Id::clone(id));
        }
        let slot = self.slots.entry(Id::clone(id)).or_insert_with(|| Slot {
            mailbox: Mailbox::default(),
            readiness: Readiness::Resting,
            timer: None,
        });
        slot.mailbox.put(sequence, Message { item, visible_at, attempts: 0 }, now);
    }

    /// The instance to serve next among those whose pin is accepted (R8.20, R8.90).
    pub(super) fn oldest_runnable(&self, accepts: impl Fn(Option<&Version>) -> bool) -> Option<Id> {
        let accepted = self.runnable.iter().filter(|(pin, _)| accepts(pin.as_ref()));
        let heads = accepted.filter_map(|(_, instances)| instances.first_key_value());
        heads.min_by_key(|(position, _)| **position).map(|(_, id)| Id::clone(id))
    }

    /// Locks an instance with these messages (R8.21): the messages and the attempt count.
    pub(super) fn lock(
        &mut self,
        id: &Id,
        batch: Batch,
        token: &str,
        until: u64,
    ) -> (Vec<WorkItem>, u32) {
        let Some(slot) = self.slots.get_mut(id) else { return (Vec::new(), 0) };
        if let Some(outlived) = slot.mailbox.lock.take() {
            self.tokens.remove(&outlived.token);
        }
        self.tokens.insert(token.to_owned(), Id::clone(id));
        slot.mailbox.lock(batch.sequences, token.to_owned(), until)
    }

    /// The instance locked with this token, whether or not the lock ran out (R8.67).
    pub(super) fn owner(&self, token: &str) -> Result<Id, Refusal> {
        self.tokens.get(token).cloned().ok_or(Refusal::UnknownToken)
    }

    /// The instance that is locked with this token now (R8.40, R8.41).
    pub(super) fn holder(&self, token: &str) -> Result<Id, Refusal> {
        let id = self.owner(token)?;
        match self.mailbox(&id).and_then(Mailbox::held_until) {
            Some(_) => Ok(id),
            None => Err(Refusal::LockExpired),
        }
    }

    /// Removes an instance's locked messages and its lock (R8.42, R8.54); the place of the first.
    pub(super) fn consume(&mut self, id: &Id) -> u64 {
        let consumed = self.mailbox_without_token(id).map(Mailbox::consume).unwrap_or_default();
        consumed.iter().for_each(|(sequence, message)| self.forget_start(*sequence, message));
        consumed.first().map_or(0, |(sequence, _)| *sequence)
    }

    /// Where these timers are, if each is due and held back, and has never been fetched (R8.150).
    pub(super) fn held_back(
        &self,
        id: &Id,
        timers: &[WorkItem],
        now: u64,
    ) -> Result<BTreeSet<(u64, u64)>, Refusal> {
        let mailbox = self.mailbox(id).ok_or(Refusal::NotHeldBack)?;
        let mut places = BTreeSet::new();
        for timer in timers {
            let place = mailbox.held_back(timer, now).filter(|place| places.insert(*place));
            place.ok_or(Refusal::NotHeldBack)?;
        }
        if places.is_empty() { Err(Refusal::NotHeldBack) } else { Ok(places) }
    }

    /// Takes such timers out.
    pub(super) fn remove_held_back(&mut self, id: &Id, places: &BTreeSet<(u64, u64)>) {
        if let Some(slot) = self.slots.get_mut(id) {
            slot.mailbox.hidden.retain(|place, _| !places.contains(place));
        }
    }

    /// A queue position that no message has.
    pub(super) fn skip_position(&mut self) -> u64 {
        self.next_sequence += 1;
        self.next_sequence - 1
    }

    /// Takes out the starts of an instance's children (R6.68), and ends the locks of turns that have
    /// read one, uncounted: who they were for, each as often as there was one.
    pub(super) fn remove_starts_of(&mut self, parent: &str, now: u64) -> Vec<Id> {
        let starts = self.starts.remove(parent).unwrap_or_default();
        for (sequence, id) in &starts {
            let lock = self.mailbox(id).and_then(|mailbox| mailbox.lock.as_ref());
            let lock = lock.filter(|lock| lock.held_until.is_some());
            if lock.is_some_and(|lock| lock.batch.contains(sequence)) {
                self.abandon(id, None, true, now);
            }
            if let Some(slot) = self.slots.get_mut(id) {
                slot.mailbox.remove(*sequence);
            }
        }
        starts.into_values().collect()
    }

    /// Gives an instance's locked messages back (R8.65).
    pub(super) fn abandon(&mut self, id: &Id, hide_until: Option<u64>, uncount: bool, now: u64) {
        if let Some(mailbox) = self.mailbox_without_token(id) {
            mailbox.abandon(hide_until, uncount, now);
        }
    }

    /// Moves the end of an instance's lock (R8.68).
    pub(super) fn renew(&mut self, id: &Id, until: u64) {
        if let Some(lock) = self.slots.get_mut(id).and_then(|slot| slot.mailbox.lock.as_mut()) {
            lock.held_until = Some(until);
        }
    }

    /// Instances that are locked.
    pub(super) fn locked(&self) -> Vec<Id> {
        let locked = self.slots.iter().filter(|(_, slot)| slot.mailbox.held_until().is_some());
        locked.map(|(id, _)| Id::clone(id)).collect()
    }

    /// Ends an instance's lock before its time.
    pub(super) fn expire(&mut self, id: &Id, now: u64) {
        if let Some(lock) = self.slots.get_mut(id).and_then(|slot| slot.mailbox.lock.as_mut()) {
            lock.held_until = Some(now);
        }
    }

    /// Instances whose lock ran out since the last call, to be moved behind the others: in the order
    /// in which the locks ended, then in that in which they stood (R8.146).
    pub(super) fn take_ran_out(&mut self) -> Vec<Id> {
        let ran_out = std::mem::take(&mut self.ran_out).into_iter();
        let mut ran_out: Vec<_> = ran_out
            .filter_map(|id| {
                let mailbox = &self.slots.get(&id)?.mailbox;
                let ended_at = mailbox.lock.as_ref()?.ran_out_at?;
                Some((ended_at, mailbox.position()?, id))
            })
            .collect();
        ran_out.sort_unstable();
        ran_out.dedup();
        ran_out.into_iter().map(|(_, _, id)| id).collect()
    }

    /// Moves an instance behind those that are fetchable.
    pub(super) fn move_behind(&mut self, id: &Id) {
        let position = self.skip_position();
        if let Some(slot) = self.slots.get_mut(id) {
            slot.mailbox.move_to(position);
        }
    }

    /// What a fetch of this instance would give (R8.147).
    pub(super) fn next_batch(&self, id: &Id, is_known: bool) -> Batch {
        self.mailbox(id).map(|mailbox| mailbox.next_batch(is_known)).unwrap_or_default()
    }

    /// Removes a mailbox with its lock; how many messages it had.
    pub(super) fn remove(&mut self, id: &Id) -> usize {
        let Some(slot) = self.slots.remove(id) else { return 0 };
        self.withdraw(id, &slot.readiness, slot.timer);
        if let Some(lock) = &slot.mailbox.lock {
            self.tokens.remove(&lock.token);
        }
        let visible = slot.mailbox.visible.iter().map(|(sequence, message)| (*sequence, message));
        let hidden =
            slot.mailbox.hidden.iter().map(|((_, sequence), message)| (*sequence, message));
        visible.chain(hidden).for_each(|(sequence, message)| self.forget_start(sequence, message));
        slot.mailbox.len()
    }

    /// Brings the indexes in line with a mailbox. Returns the messages that waited too long for a
    /// start (R8.29).
    pub(super) fn settle(&mut self, id: &Id, standing: &Standing, now: u64) -> Vec<Message> {
        let Some(slot) = self.slots.get_mut(id) else { return Vec::new() };
        if slot.mailbox.catch_up(now) {
            self.ran_out.push(Id::clone(id));
        }
        if slot.mailbox.len() == 0 && slot.mailbox.held_until().is_none() {
            slot.mailbox.forget_position();
        }
        let mut overdue = Vec::new();
        let mut readiness = slot.mailbox.readiness(standing);
        if readiness == Readiness::Aside && self.orphan_retention_ms <= now {
            overdue = slot.mailbox.drain_older(now - self.orphan_retention_ms);
            readiness = slot.mailbox.readiness(standing);
        }
        let timer = slot.next_change(&readiness, self.orphan_retention_ms);
        let empty = slot.mailbox.len() == 0 && slot.mailbox.lock.is_none();

        let before = std::mem::replace(&mut slot.readiness, readiness.clone());
        let timer_before = std::mem::replace(&mut slot.timer, timer);
        if empty {
            self.slots.remove(id);
        }
        self.withdraw(id, &before, timer_before);
        self.offer(id, &before, readiness, timer);
        overdue
    }

    /// A mailbox that time has changed and that is to be settled.
    pub(super) fn due(&self, now: u64) -> Option<Id> {
        self.timers.first().filter(|(at, _)| *at <= now).map(|(_, id)| Id::clone(id))
    }

    /// When time alone changes something next.
    pub(super) fn next_change(&self) -> Option<u64> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Takes out the messages of an instance that only queue messages speak of (R8.28).
    pub(super) fn take_undeliverable(&mut self) -> Option<(Id, Vec<Message>)> {
        let id = self.undeliverable.first().cloned()?;
        let messages = self.slots.get_mut(&id)?.mailbox.drain_visible();
        Some((id, messages))
    }

    /// Instances that became runnable since the last call.
    pub(super) fn take_awakened(&mut self) -> Vec<Id> {
        std::mem::take(&mut self.awakened)
    }

    /// The pin of an instance, if it can be served now.
    pub(super) fn runnable_pin(&self, id: &str) -> Option<Option<&Version>> {
        match &self.slots.get(id)?.readiness {
            Readiness::Runnable { pin, .. } => Some(pin.as_ref()),
            _ => None,
        }
    }

    pub(super) fn mailbox(&self, id: &str) -> Option<&Mailbox> {
        self.slots.get(id).map(|slot| &slot.mailbox)
    }

    /// All mailboxes, in no order.
    pub(super) fn mailboxes(&self) -> impl Iterator<Item = (&Id, &Mailbox)> {
        self.slots.iter().map(|(id, slot)| (id, &slot.mailbox))
    }

    /// A message that has left its mailbox is not to be found as a start any more.
    fn forget_start(&mut self, sequence: u64, message: &Message) {
        let Some(parent) = message.item.parent_of_start() else { return };
        if let Some(starts) = self.starts.get_mut(parent) {
            starts.remove(&sequence);
            if starts.is_empty() {
                self.starts.remove(parent);
            }
        }
    }

    fn mailbox_without_token(&mut self, id: &Id) -> Option<&mut Mailbox> {
        let mailbox = &mut self.slots.get_mut(id)?.mailbox;
        if let Some(lock) = &mailbox.lock {
            self.tokens.remove(&lock.token);
        }
        Some(mailbox)
    }

    /// Takes a mailbox out of the indexes.
    fn withdraw(&mut self, id: &Id, readiness: &Readiness, timer: Option<u64>) {
        if let Some(at) = timer {
            self.timers.remove(&(at, Id::clone(id)));
        }
        match readiness {
            Readiness::Runnable { pin, position } => {
                if let Some(instances) = self.runnable.get_mut(pin) {
                    instances.remove(position);
                    if instances.is_empty() {
                        self.runnable.remove(pin);
                    }
                }
            }
            Readiness::Undeliverable => {
                self.undeliverable.remove(id);
            }
            Readiness::Resting | Readiness::Aside => {}
        }
    }

    /// Puts a mailbox into the indexes, and says so if it is news that it can be served.
    fn offer(&mut self, id: &Id, before: &Readiness, now: Readiness, timer: Option<u64>) {
        if let Some(at) = timer {
            self.timers.insert((at, Id::clone(id)));
        }
        match now {
            Readiness::Runnable { pin, position } => {
                // A pin changes in a commit only, so never while the instance can be fetched.
                if !matches!(before, Readiness::Runnable { .. }) {
                    self.awakened.push(Id::clone(id));
                }
                self.runnable.entry(pin).or_default().insert(position, Id::clone(id));
            }
            Readiness::Undeliverable => {
                self.undeliverable.insert(Id::clone(id));
            }
            Readiness::Resting | Readiness::Aside => {}
        }
    }
}

impl Slot {
    /// When time alone changes this mailbox next: by itself, or because its messages have waited
    /// for a start long enough.
    fn next_change(&self, readiness: &Readiness, orphan_retention_ms: u64) -> Option<u64> {
        let oldest = self.mailbox.visible.first_key_value();
        let given_up_at = oldest
            .filter(|_| *readiness == Readiness::Aside)
            .map(|(_, message)| message.visible_at.saturating_add(orphan_retention_ms));
        self.mailbox.next_change().into_iter().chain(given_up_at).min()
    }
}
