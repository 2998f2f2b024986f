//! A locked activity given back (R8.76). It stays bound to its session (R8.88).

use duroxide_core::provider::Refusal;

use super::{Lasts, Op};
use crate::error::OpError;
use crate::tables::work;
use crate::token::Secret;
use crate::tx::Tx;

/// Gives an activity back.
#[derive(Debug)]
pub(crate) struct AbandonWork {
    pub(crate) seq: i64,
    pub(crate) secret: Secret,
    /// Hides it for so long.
    pub(crate) delay_ms: u64,
    /// Lets this attempt not count.
    pub(crate) uncount: bool,
}

impl Op for AbandonWork {
    type Output = ();

    fn apply(&self, tx: &mut Tx<'_>) -> Result<(), OpError> {
        let row = work::get(tx.connection, self.seq)?;
        let row = row.filter(|row| row.token == Some(self.secret)).ok_or(Refusal::UnknownToken)?;
        let attempts = row.attempts.saturating_sub(u32::from(self.uncount));
        let hidden_until = (0 < self.delay_ms).then(|| tx.now.saturating_add(self.delay_ms));
        work::release(tx.connection, self.seq, hidden_until, attempts)?;
        tx.effects.work_ready |= hidden_until.is_none();
        Ok(())
    }

    fn lasts(&self) -> Lasts {
        Lasts::No
    }
}
