//! Fetches that wait for something to fetch.

use std::time::Instant;

use super::queued_op::{Queue, QueuedOp};
use crate::tx::{Tx, TxEffects};

/// Fetches in the order in which they came.
#[derive(Default)]
pub(super) struct Parked {
    ops: Vec<Box<dyn QueuedOp>>,
}

impl Parked {
    pub(super) fn add(&mut self, op: Box<dyn QueuedOp>) {
        self.ops.push(op);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Box<dyn QueuedOp>> {
        self.ops.iter()
    }

    /// Whether any fetch waits for this queue.
    pub(super) fn waits_for(&self, queue: Queue) -> bool {
        self.iter().any(|op| op.waits_for(queue))
    }

    /// When the wait of the first of them ends.
    pub(super) fn first_deadline(&self) -> Option<Instant> {
        self.ops.iter().filter_map(|op| op.patience()).map(|p| p.until).min()
    }

    /// Runs the fetches whose queue has something new, or all; also those of `fresh` that found
    /// nothing and will be parked, since what came after them may be for them. Served ones are found
    /// by [`take_served`](Self::take_served) after the commit.
    pub(super) fn serve(
        &mut self,
        tx: &mut Tx<'_>,
        all: bool,
        fresh: &mut [Box<dyn QueuedOp>],
    ) -> Result<(), rusqlite::Error> {
        // What one of them takes may be what another was to have (a session changes hands), so a
        // fetch may bring news itself: until nothing is new.
        let mut look_at_all = all;
        loop {
            let TxEffects { turns_ready, work_ready, .. } = tx.effects;
            if !(turns_ready || work_ready || look_at_all) {
                return Ok(());
            }
            (tx.effects.turns_ready, tx.effects.work_ready) = (false, false);
            let waiting = self.ops.iter_mut().chain(fresh.iter_mut());
            for op in waiting.filter(|op| !op.is_done() && !op.is_abandoned()) {
                let news = match op.patience().map(|patience| patience.queue) {
                    Some(Queue::Turns) => turns_ready,
                    Some(Queue::Work) => work_ready,
                    None => false,
                };
                if news || look_at_all {
                    op.run(tx)?;
                }
            }
            look_at_all = false;
        }
    }

    /// Forgets what was served in a transaction that was undone.
    pub(super) fn reset(&mut self) {
        self.ops.iter_mut().for_each(|op| op.reset());
    }

    /// The fetches that were served, whose time is up, or whose caller is gone.
    pub(super) fn take_served(&mut self, now: Instant) -> Vec<Box<dyn QueuedOp>> {
        let is_over = |op: &mut Box<dyn QueuedOp>| {
            op.is_done()
                || op.is_abandoned()
                || op.patience().is_none_or(|patience| patience.until <= now)
        };
        self.ops.extract_if(.., is_over).collect()
    }

    /// All of them.
    pub(super) fn drain(&mut self) -> Vec<Box<dyn QueuedOp>> {
        std::mem::take(&mut self.ops)
    }
}
