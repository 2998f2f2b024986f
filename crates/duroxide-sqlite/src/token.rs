//! Lock tokens: where the lock is, and 128 random bits that prove it is yours.
//!
//! The place saves an index over tokens; the bits are what counts. `lock_t2a_9f…` is a turn of the
//! instance with key 0x2a, `lock_w…` an activity.

use duroxide_core::provider::Refusal;

/// What a token locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// An instance, by its key.
    Turn(i64),
    /// An activity, by its queue position.
    Work(i64),
}

/// The secret part of a token.
pub(crate) type Secret = [u8; 16];

/// A fresh secret.
pub(crate) fn fresh_secret() -> Secret {
    let mut secret = [0; 16];
    // Without entropy no token is safe to hand out: stopping here is the honest answer.
    #[expect(clippy::expect_used, reason = "the system's random source does not fail once booted")]
    getrandom::fill(&mut secret).expect("the operating system provides randomness");
    secret
}

/// A token as callers see it.
pub(crate) fn write(place: Place, secret: &Secret) -> String {
    let (letter, number) = match place {
        Place::Turn(key) => ('t', key),
        Place::Work(seq) => ('w', seq),
    };
    format!("lock_{letter}{number:x}_{:032x}", u128::from_be_bytes(*secret))
}

/// The instance key and secret of a turn's token.
pub(crate) fn read_turn(token: &str) -> Result<(i64, Secret), Refusal> {
    match read(token) {
        Some((Place::Turn(key), secret)) => Ok((key, secret)),
        _ => Err(Refusal::UnknownToken),
    }
}

/// The queue position and secret of an activity's token.
pub(crate) fn read_work(token: &str) -> Result<(i64, Secret), Refusal> {
    match read(token) {
        Some((Place::Work(seq), secret)) => Ok((seq, secret)),
        _ => Err(Refusal::UnknownToken),
    }
}

fn read(token: &str) -> Option<(Place, Secret)> {
    let (place, secret) = token.strip_prefix("lock_")?.split_once('_')?;
    // Written as 64 bits, whatever they mean.
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok().map(|bits| bits as i64);
    let place = match place.split_at_checked(1)? {
        ("t", digits) => Place::Turn(number(digits)?),
        ("w", digits) => Place::Work(number(digits)?),
        _ => return None,
    };
    let secret = (secret.len() == 32).then(|| u128::from_str_radix(secret, 16).ok())??;
    Some((place, secret.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r10_10_tokens_begin_with_lock_and_are_read_back() {
        let secret = fresh_secret();
        let (turn, work) = (write(Place::Turn(42), &secret), write(Place::Work(7), &secret));
        assert!(turn.starts_with("lock_") && work.starts_with("lock_"));
        assert_eq!(read_turn(&turn), Ok((42, secret)));
        assert_eq!(read_work(&work), Ok((7, secret)));
        for number in [0, -7, i64::MIN, i64::MAX] {
            assert_eq!(read_work(&write(Place::Work(number), &secret)), Ok((number, secret)));
        }
        assert_ne!(fresh_secret(), secret);
    }

    #[test]
    fn r8_40_anything_else_is_no_token() {
        let secret = [7; 16];
        let of_work = write(Place::Work(42), &secret);
        let cut = &write(Place::Turn(42), &secret)[..30];
        for token in ["", "lock_", "lock__", "lock_t_", "lock_é1_00", &of_work, cut] {
            assert_eq!(read_turn(token), Err(Refusal::UnknownToken), "{token}");
        }
        assert_eq!(read_work(&write(Place::Turn(1), &secret)), Err(Refusal::UnknownToken));
    }
}
