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
        check_lock(tx, self.key, &self.secret)?;
        if let Some(mut mailbox) = mailboxes::get(tx.connection, self.key)? {
            mailbox.wake_at = Some(ms_in(tx.now.saturating_add(self.extend_ms)));
            mailboxes::put(tx.connection, self.key, &mailbox)?;
        }
        Ok(())
    }

    fn lasts(&self) -> Lasts {
        Lasts::No
    }
}
