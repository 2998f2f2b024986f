//! All the data, and how its parts hang together. Time is an argument; nothing here waits.
//!
//! Invariants:
//! - a mailbox exists only while it has messages or a lock;
//! - after every call the queues' indexes say what a look at every row would say (`settle`,
//!   `set_phase`);
//! - a lock token is known exactly as long as its lock is the latest one of its instance or row.

use std::collections::VecDeque;

use duroxide_core::model::WorkItem;

use super::instances::{Id, Instances};
use super::mailbox::{Mailbox, Message, Standing};
use super::orchestration_queue::OrchestrationQueue;
use super::worker_queue::{WorkerQueue, check_message};
use crate::providers::{DeadLetter, Refusal, StartOutcome};

/// How many dead letters are kept; the oldest make room.
const DEAD_LETTERS_MAX: usize = 10_000;

/// Everything a store holds.
#[derive(Debug)]
pub(super) struct State {
    pub(super) instances: Instances,
    pub(super) messages: OrchestrationQueue,
    pub(super) work: WorkerQueue,
    pub(super) dead_letters: VecDeque<DeadLetter>,
    /// Dead letters to be logged once nobody holds the lock.
    unreported: Vec<DeadLetter>,
    commits: u64,
    /// Instances committed to since this was last asked.
    committed: Vec<Id>,
    orphan_retention_ms: u64,
}

impl State {
    /// An empty store.
    pub(super) fn new(orphan_retention_ms: u64) -> Self {
        Self {
            instances: Instances::default(),
            messages: OrchestrationQueue::new(orphan_retention_ms),
            work: WorkerQueue::default(),
            dead_letters: VecDeque::new(),
            unreported: Vec::new(),
            commits: 0,
            committed: Vec::new(),
            orphan_retention_ms,
        }
    }

    /// Lets time pass. Comes before everything else, so that nothing else compares times.
    pub(super) fn advance(&mut self, now: u64) {
        while let Some(id) = self.messages.due(now) {
            self.settle(&id, now);
        }
        self.work.advance(now);
    }

    /// Queues a message, visible at `visible_at` (R8.10). Makes no instance (R8.11).
    pub(super) fn enqueue_message(
        &mut self,
        item: WorkItem,
        visible_at: u64,
        now: u64,
    ) -> Result<(), Refusal> {
        let id = self.shared_id(check_message(&item)?);
        self.messages.push(&id, item, visible_at, now);
        self.settle(&id, now);
        Ok(())
    }

    /// Queues the start of an instance unless its id is taken (R6.88).
    pub(super) fn start_instance(
        &mut self,
        start: WorkItem,
        replace_ended: bool,
        now: u64,
    ) -> Result<StartOutcome, Refusal> {
        let id = check_message(&start)?.to_owned();
        match self.instances.get(&id).filter(|instance| instance.is_known()) {
            Some(instance) if !instance.has_ended() => return Ok(StartOutcome::Running),
            Some(_) if !replace_ended => return Ok(StartOutcome::Ended),
            Some(_) => {
                self.make_room(&id, now)?;
            }
            None if self.messages.mailbox(&id).is_some_and(Mailbox::has_start) => {
                return Ok(StartOutcome::Running);
            }
            None => {}
        }
        self.enqueue_message(start, now, now)?;
        Ok(StartOutcome::Started)
    }

    /// Brings the queue in line with a mailbox that changed, or whose instance did.
    pub(super) fn settle(&mut self, id: &Id, now: u64) {
        let standing = self.standing(id);
        let overdue = self.messages.settle(id, &standing, now);
        if !overdue.is_empty() {
            let seconds = self.orphan_retention_ms / 1000;
            self.bury(id, overdue, &format!("no such instance appeared within {seconds} s"), now);
        }
    }

    /// Gives up the messages of instances that only queue messages speak of (R8.28).
    pub(super) fn bury_undeliverable(&mut self, now: u64) {
        while let Some((id, messages)) = self.messages.take_undeliverable() {
            self.bury(&id, messages, "queue message for an instance that does not exist", now);
            self.settle(&id, now);
        }
    }

    /// Numbers a commit to an instance, and remembers to tell those who wait for it (R8.134).
    pub(super) fn note_commit(&mut self, id: &Id) {
        self.commits += 1;
        if let Some(instance) = self.instances.get_mut(id) {
            instance.last_commit = self.commits;
        }
        self.committed.push(Id::clone(id));
    }

    /// Number of an instance's latest commit; 0 if there is none.
    pub(super) fn last_commit(&self, id: &str) -> u64 {
        self.instances.get(id).map_or(0, |instance| instance.last_commit)
    }

    /// Instances committed to since the last call.
    pub(super) fn take_committed(&mut self) -> Vec<Id> {
        std::mem::take(&mut self.committed)
    }

    /// Dead letters since the last call.
    pub(super) fn take_unreported(&mut self) -> Vec<DeadLetter> {
        std::mem::take(&mut self.unreported)
    }

    /// The shared form of an id.
    pub(super) fn shared_id(&self, id: &str) -> Id {
        self.instances.shared_id(id).unwrap_or_else(|| Id::from(id))
    }

    pub(super) fn standing(&self, id: &str) -> Standing {
        match self.instances.get(id) {
            Some(instance) if instance.row.is_some() => {
                Standing::Known(instance.current().and_then(|(_, e)| e.pin.clone()))
            }
            // R8.90: no instance row, no pin.
            Some(instance) if instance.is_known() => Standing::Known(None),
            _ => Standing::Unknown,
        }
    }

    fn bury(&mut self, id: &Id, messages: Vec<Message>, reason: &str, now: u64) {
        for message in messages {
            let letter = DeadLetter {
                instance: Some(id.to_string()),
                payload: serde_json::to_string(&message.item).unwrap_or_default(),
                reason: reason.to_owned(),
                at_ms: now,
            };
            self.unreported.push(letter.clone());
            self.dead_letters.push_back(letter);
        }
        let surplus = self.dead_letters.len().saturating_sub(DEAD_LETTERS_MAX);
        self.dead_letters.drain(..surplus);
    }
}
