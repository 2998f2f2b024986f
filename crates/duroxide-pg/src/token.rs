//! Lock tokens: where the lock is, and the random bits that prove it is yours.
//!
//! `lock_t2a_9f…` is a turn of the instance with key 0x2a, `lock_w…` an activity.

use duroxide_core::provider::Refusal;
use uuid::Uuid;

/// The token of a turn.
pub(crate) fn of_turn(key: i64, secret: Uuid) -> String {
    format!("lock_t{key:x}_{}", secret.simple())
}

/// The token of an activity.
pub(crate) fn of_work(seq: i64, secret: Uuid) -> String {
    format!("lock_w{seq:x}_{}", secret.simple())
}

/// The instance key and secret of a turn's token.
pub(crate) fn read_turn(token: &str) -> Result<(i64, Uuid), Refusal> {
    read(token, 't').ok_or(Refusal::UnknownToken)
}

/// The queue position and secret of an activity's token.
pub(crate) fn read_work(token: &str) -> Result<(i64, Uuid), Refusal> {
    read(token, 'w').ok_or(Refusal::UnknownToken)
}

fn read(token: &str, kind: char) -> Option<(i64, Uuid)> {
    let (number, secret) = token.strip_prefix("lock_")?.strip_prefix(kind)?.split_once('_')?;
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
        let (turn, work) = (of_turn(42, secret), of_work(7, secret));
        assert_eq!(read_turn(&turn), Ok((42, secret)));
        assert_eq!(read_work(&work), Ok((7, secret)));
        for token in ["", "lock_", "lock_t_", "lock_t1_00", "lock_é1_00", &work, &turn[..30]] {
            assert_eq!(read_turn(token), Err(Refusal::UnknownToken), "{token}");
        }
    }
}
