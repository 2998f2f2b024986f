//! What was fetched, until somebody takes it.

use std::sync::Arc;

use tokio_postgres::Row;

use super::floor::Floor;
use super::op::{Lock, Op, Queue, Waiting};

/// What was fetched, until somebody takes it. Dropped, it goes back as if it had not been fetched.
pub(crate) struct Catch {
    rows: Vec<Row>,
    queue: Queue,
    floor: Arc<Floor>,
}

impl Catch {
    /// What was fetched.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Makes it the caller's.
    pub(crate) fn keep(mut self) {
        self.rows.clear();
    }

    pub(super) fn new(rows: Vec<Row>, queue: Queue, floor: &Arc<Floor>) -> Self {
        Self { rows, queue, floor: Arc::clone(floor) }
    }

    pub(super) fn nothing(floor: &Arc<Floor>) -> Self {
        Self { rows: Vec::new(), queue: Queue::Turns, floor: Arc::clone(floor) }
    }
}

impl Drop for Catch {
    fn drop(&mut self) {
        let place = if self.queue == Queue::Turns { "key" } else { "seq" };
        for row in &self.rows {
            let (place, secret) = (row.get(place), row.get("token"));
            let lock = Lock { queue: self.queue, place, secret };
            let op = Op::Abandon { lock, delay: 0, uncount: true };
            self.floor.add(Waiting::new(op, None, None));
        }
    }
}

impl std::fmt::Debug for Catch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catch").field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}
