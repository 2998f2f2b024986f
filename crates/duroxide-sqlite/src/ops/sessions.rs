//! Session leases renewed and swept (R8.86, R8.87).

use super::{Lasts, Op};
use crate::error::OpError;
use crate::tables::sessions;
use crate::tx::Tx;

/// Extends the valid, recently used leases of these owners.
#[derive(Debug)]
pub(crate) struct RenewSessions {
    pub(crate) owners: Vec<String>,
    pub(crate) extend_ms: u64,
    pub(crate) idle_ms: u64,
}

impl Op for RenewSessions {
    type Output = usize;

    fn apply(&self, tx: &mut Tx<'_>) -> Result<usize, OpError> {
        let idle_since = tx.now.saturating_sub(self.idle_ms);
        let until = tx.now.saturating_add(self.extend_ms);
        let mut renewed = 0;
        for owner in &self.owners {
            renewed += sessions::renew(tx.connection, owner, tx.now, idle_since, until)?;
        }
        Ok(renewed)
    }

    fn lasts(&self) -> Lasts {
        Lasts::No
    }
}

/// Forgets sessions whose lease ran out and that no activity needs.
#[derive(Debug)]
pub(crate) struct CleanSessions;

impl Op for CleanSessions {
    type Output = usize;

    fn apply(&self, tx: &mut Tx<'_>) -> Result<usize, OpError> {
        Ok(sessions::delete_orphaned(tx.connection, tx.now)?)
    }

    fn lasts(&self) -> Lasts {
        Lasts::No
    }
}
