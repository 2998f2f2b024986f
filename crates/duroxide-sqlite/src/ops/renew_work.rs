//! An activity's lock held for longer (R8.75).

use super::ack_work::check_lock;
use super::{Lasts, Op};
use crate::error::OpError;
use crate::tables::{sessions, work};
use crate::token::Secret;
use crate::tx::Tx;

/// Holds an activity's lock for longer.
#[derive(Debug)]
pub(crate) struct RenewWork {
    pub(crate) seq: i64,
    pub(crate) secret: Secret,
    pub(crate) extend_ms: u64,
}

impl Op for RenewWork {
    type Output = ();

    fn apply(&self, tx: &mut Tx<'_>) -> Result<(), OpError> {
        let row = check_lock(tx, self.seq, &self.secret)?;
        work::set_wake(tx.connection, self.seq, tx.now.saturating_add(self.extend_ms))?;
        if let Some(session) = &row.session {
            sessions::touch(tx.connection, session, tx.now)?; // R8.85
        }
        Ok(())
    }

    fn lasts(&self) -> Lasts {
        Lasts::No
    }
}
