//! Damage, for tests of what damage does.

use super::Op;
use crate::error::OpError;
use crate::tables::run;
use crate::tx::Tx;

/// Any statement with one parameter.
#[derive(Debug)]
pub(crate) struct Tamper {
    pub(crate) sql: &'static str,
    pub(crate) parameter: String,
}

impl Op for Tamper {
    type Output = usize;

    fn apply(&self, tx: &mut Tx<'_>) -> Result<usize, OpError> {
        Ok(run(tx.connection, self.sql, [&self.parameter])?)
    }
}
