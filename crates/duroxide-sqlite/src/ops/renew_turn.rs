//! A turn's lock held for longer (R8.68).

use super::commit_turn::check_lock;
use super::{Lasts, Op};
use crate::error::OpError;
use crate::tables::{mailboxes, ms_in};
use crate::token::Secret;
use crate::tx::Tx;

/// Holds a turn's lock for longer.
#[derive(Debug)]
pub(crate) struct RenewTurn {
    pub(crate) key: i64,
    pub(crate) secret: Secret,
    pub(crate) extend_ms: u64,
}

impl Op for RenewTurn {
    type Output = ();

    fn apply(&self, tx: &mut Tx<'_>) -> Result<(), OpError> {
        let mut mailbox = check_lock(tx, self.key, &self.secret)?;
        mailbox.wake_at = Some(ms_in(tx.now.saturating_add(self.extend_ms)));
        Ok(mailboxes::put(tx.connection, self.key, &mailbox)?)
    }

    fn lasts(&self) -> Lasts {
        Lasts::No
    }
}
