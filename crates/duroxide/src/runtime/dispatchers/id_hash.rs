//! Hashes of numbers that are counted here: nobody can choose them, so that one multiplication does.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What is known by a number that was counted here.
pub(crate) type ById<T> = HashMap<u64, T, BuildHasherDefault<IdHasher>>;

/// Spreads numbers that follow each other.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // 2^64 divided by the golden ratio: both ends of the product depend on all of the number.
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::*;

    #[test]
    fn numbers_that_follow_each_other_are_spread() {
        let hash = |id: u64| BuildHasherDefault::<IdHasher>::default().hash_one(id);
        let low: HashSet<u64> = (0..128).map(|id| hash(id) % 128).collect();
        let high: HashSet<u64> = (0..128).map(|id| hash(id) >> 57).collect();
        assert_eq!(low.len(), 128);
        assert!(64 < high.len(), "{}", high.len());
    }
}
