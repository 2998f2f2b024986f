//! Plans are made for tables as they are, and kept for as long as their connection lasts. A plan that was made
//! when a table was empty may read all of it, since that cost nothing then. So when a table has grown, all
//! connections make their plans anew; the pulse tells how large the tables are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Smaller tables are read in no time, whatever the plan.
const SMALL_BYTES: i64 = 64 * 1024;
/// A table that is so many times as large as it was is another table.
const GROWTH: i64 = 2;

/// For which sizes of tables plans are made.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    sizes: Mutex<Vec<i64>>,
    generation: AtomicU64,
}

impl Plans {
    /// Plans of an earlier generation are out of date.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Tables, always in the same order, have these sizes.
    pub(crate) fn note_sizes(&self, sizes: Vec<i64>) {
        let mut known = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = |table| known.get(table).copied().unwrap_or(0).max(SMALL_BYTES) * GROWTH;
        if sizes.iter().enumerate().any(|(table, size)| limit(table) <= *size) {
            *known = sizes;
            self.generation.fetch_add(1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_made_anew_when_a_table_has_doubled() {
        let plans = Plans::default();
        let generation_after = |sizes: [i64; 2]| {
            plans.note_sizes(sizes.to_vec());
            plans.generation()
        };
        assert_eq!(generation_after([0, 8 * 1024]), 0);
        assert_eq!(generation_after([0, 100 * 1024]), 0, "still small");
        assert_eq!(generation_after([0, 128 * 1024]), 1);
        assert_eq!(generation_after([0, 250 * 1024]), 1);
        assert_eq!(generation_after([0, 256 * 1024]), 2);
        assert_eq!(generation_after([130 * 1024, 300 * 1024]), 3, "the other one");
        assert_eq!(generation_after([130 * 1024, 0]), 3, "one that was emptied");
    }
}
