//! Fetches that wait for something to fetch.

use std::time::Instant;

use super::job::{Job, Queue};
use crate::tx::{Notes, Tx};

/// Fetches in the order in which they came.
#[derive(Default)]
pub(super) struct Parked {
    jobs: Vec<Box<dyn Job>>,
}

impl Parked {
    pub(super) fn add(&mut self, job: Box<dyn Job>) {
        self.jobs.push(job);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Box<dyn Job>> {
        self.jobs.iter()
    }

    /// Whether anybody waits for this queue.
    pub(super) fn waits_for(&self, queue: Queue) -> bool {
        self.iter().any(|job| job.waits_for(queue))
    }

    /// When the first of them loses patience.
    pub(super) fn first_deadline(&self) -> Option<Instant> {
        self.jobs.iter().filter_map(|job| job.patience()).map(|p| p.until).min()
    }

    /// Lets those try whose queue has something new, or all; also those of `fresh` who found
    /// nothing and will be parked, since what came after them may be for them. Served ones are found
    /// by [`take_served`](Self::take_served) after the commit.
    pub(super) fn serve(
        &mut self,
        tx: &mut Tx<'_>,
        all: bool,
        fresh: &mut [Box<dyn Job>],
    ) -> Result<(), rusqlite::Error> {
        // What one of them takes may be what another was to have (a session changes hands), so a
        // fetch may bring news itself: until nothing is new.
        let mut look_at_all = all;
        loop {
            let Notes { turns_ready, work_ready, .. } = tx.notes;
            if !(turns_ready || work_ready || look_at_all) {
                return Ok(());
            }
            (tx.notes.turns_ready, tx.notes.work_ready) = (false, false);
            let waiting = self.jobs.iter_mut().chain(fresh.iter_mut());
            for job in waiting.filter(|job| !job.is_done() && !job.is_abandoned()) {
                let news = match job.patience().map(|patience| patience.queue) {
                    Some(Queue::Turns) => turns_ready,
                    Some(Queue::Work) => work_ready,
                    None => false,
                };
                if news || look_at_all {
                    job.run(tx)?;
                }
            }
            look_at_all = false;
        }
    }

    /// Forgets what was served in a transaction that was undone.
    pub(super) fn reset(&mut self) {
        self.jobs.iter_mut().for_each(|job| job.reset());
    }

    /// Those who have been served, whose time is up, or who are gone.
    pub(super) fn take_served(&mut self, now: Instant) -> Vec<Box<dyn Job>> {
        let is_over = |job: &mut Box<dyn Job>| {
            job.is_done()
                || job.is_abandoned()
                || job.patience().is_none_or(|patience| patience.until <= now)
        };
        self.jobs.extract_if(.., is_over).collect()
    }

    /// All of them.
    pub(super) fn drain(&mut self) -> Vec<Box<dyn Job>> {
        std::mem::take(&mut self.jobs)
    }
}
