//! Lock tokens: where the lock is, and the random bits that prove it is yours.
//!
//! `lock_t2a_1f_9f…` is a turn of the instance with key 0x2a, whose commits ring bell 0x1f; `lock_w…` an
//! activity.

use duroxide_core::provider::Refusal;
use uuid::Uuid;

use crate::commit_board::Place;

/// A fresh secret.
pub(crate) fn fresh_secret() -> Uuid {
    let mut secret = [0; 16];
    // Without entropy no token is safe to hand out: stopping here is the honest answer.
    #[expect(clippy::expect_used, reason = "the system's random source does not fail once booted")]
    getrandom::fill(&mut secret).expect("the operating system provides randomness");
    Uuid::from_bytes(secret)
}

/// The token of a turn.
pub(crate) fn of_turn(key: i64, bell: Place, secret: Uuid) -> String {
    format!("lock_t{key:x}_{bell:x}_{}", secret.simple())
}

/// The token of an activity.
pub(crate) fn of_work(seq: i64, secret: Uuid) -> String {
    format!("lock_w{seq:x}_{}", secret.simple())
}

/// The instance key and secret of a turn's token.
pub(crate) fn read_turn(token: &str) -> Result<(i64, Uuid), Refusal> {
    let read = || {
        let (key, rest) = token.strip_prefix("lock_t")?.split_once('_')?;
        let (_, secret) = rest.split_once('_')?;
        read(key, secret)
    };
    read().ok_or(Refusal::UnknownToken)
}

/// The bell that a commit with a turn's token rings.
pub(crate) fn bell_of_turn(token: &str) -> Option<Place> {
    Place::from_str_radix(token.split('_').nth(2)?, 16).ok()
}

/// The queue position and secret of an activity's token.
pub(crate) fn read_work(token: &str) -> Result<(i64, Uuid), Refusal> {
    let parts = token.strip_prefix("lock_w").and_then(|token| token.split_once('_'));
    parts.and_then(|(seq, secret)| read(seq, secret)).ok_or(Refusal::UnknownToken)
}

fn read(number: &str, secret: &str) -> Option<(i64, Uuid)> {
    let number = i64::from_str_radix(number, 16).ok()?;
    let secret = (secret.len() == 32).then(|| Uuid::try_parse(secret).ok())??;
    Some((number, secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r8_40_tokens_are_read_back_and_nothing_else_is_one() {
        let secret = Uuid::from_u128(7);
        let (turn, work) = (of_turn(42, 31, secret), of_work(7, secret));
        assert_eq!(read_turn(&turn), Ok((42, secret)));
        assert_eq!(bell_of_turn(&turn), Some(31));
        assert_eq!(read_work(&work), Ok((7, secret)));
        for token in ["", "lock_", "lock_t_", "lock_t1_1_00", "lock_é1_0", &work, &turn[..30]] {
            assert_eq!(read_turn(token), Err(Refusal::UnknownToken), "{token}");
        }
        assert_eq!(read_work(&turn), Err(Refusal::UnknownToken));
    }
}
