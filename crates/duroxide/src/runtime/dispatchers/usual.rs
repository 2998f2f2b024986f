//! How long something takes lately, and so how much of it can be fetched ahead.

use std::time::Duration;

/// What is fetched is expected to have begun within this time.
const HORIZON: Duration = Duration::from_millis(5);

/// How long something takes lately; nothing until one has ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usual(Option<Duration>);

impl Usual {
    /// Learns how long one took. A long one counts for much: it may keep others waiting, while
    /// fetching less than possible costs little.
    pub(super) fn learn(&mut self, took: Duration) {
        self.0 = Some(match self.0 {
            None => took,
            Some(usual) if usual < took => usual + (took - usual) / 2,
            Some(usual) => usual - (usual - took) / 8,
        });
    }

    /// How many will have begun within the horizon if so many run at a time: one at least, `max` at
    /// most. `None` as long as nothing is known.
    pub(super) fn begun_soon(self, slots: usize, max: usize) -> Option<usize> {
        let begun = HORIZON.as_nanos() * slots as u128 / self.0?.as_nanos().max(1);
        Some(usize::try_from(begun).unwrap_or(max).clamp(1, max))
    }
}
