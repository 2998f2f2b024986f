//! The one source of randomness: lock tokens, ids, jitter. Seedable, so that a run can be repeated.

use std::sync::{Arc, Mutex, PoisonError};

/// A shareable source of random numbers.
#[derive(Debug, Clone)]
pub struct Random {
    /// `None` asks the operating system each time.
    seeded: Option<Arc<Mutex<u64>>>,
}

impl Random {
    /// Random numbers nobody can guess.
    pub fn from_os() -> Self {
        Self { seeded: None }
    }

    /// The same numbers for the same seed. For tests and simulation only.
    pub fn seeded(seed: u64) -> Self {
        Self { seeded: Some(Arc::new(Mutex::new(seed))) }
    }

    /// The next 128 bits.
    pub fn next_u128(&self) -> u128 {
        match &self.seeded {
            Some(state) => {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                u128::from(split_mix(&mut state)) << 64 | u128::from(split_mix(&mut state))
            }
            None => from_operating_system(),
        }
    }

    /// The next 64 bits.
    pub fn next_u64(&self) -> u64 {
        self.next_u128() as u64
    }

    /// A version 4 UUID as hyphenated text.
    pub fn guid(&self) -> String {
        uuid::Builder::from_random_bytes(self.next_u128().to_be_bytes()).into_uuid().to_string()
    }
}

fn from_operating_system() -> u128 {
    let mut bytes = [0; 16];
    // Without entropy no token is safe to hand out: stopping here is the honest answer.
    #[expect(clippy::expect_used, reason = "the system's random source does not fail once booted")]
    getrandom::fill(&mut bytes).expect("the operating system provides randomness");
    u128::from_be_bytes(bytes)
}

/// Sebastiano Vigna's splitmix64.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_repeat_and_systems_do_not() {
        let draw = |random: Random| [random.next_u64(), random.next_u64()];
        assert_eq!(draw(Random::seeded(7)), draw(Random::seeded(7)));
        assert_ne!(draw(Random::seeded(7)), draw(Random::seeded(8)));
        assert_ne!(draw(Random::from_os()), draw(Random::from_os()));
    }

    #[test]
    fn r4_95_guids_are_version_4() {
        let guid = Random::from_os().guid();
        assert_eq!((guid.len(), &guid[14..15]), (36, "4"));
        assert!(guid.chars().all(|c| c == '-' || c.is_ascii_hexdigit() && !c.is_ascii_uppercase()));
    }
}
