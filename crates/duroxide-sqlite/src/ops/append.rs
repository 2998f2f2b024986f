//! Events appended outside a turn, for tests and tools (R8.96).

use super::Op;
use super::commit_turn::Delta;
use crate::error::OpError;
use crate::mailbox;
use crate::tables::executions::{self, Execution};
use crate::tables::instances;
use crate::tx::Tx;

/// Appends events to an execution, which is made if there is none.
#[derive(Debug)]
pub(crate) struct AppendEvents {
    pub(crate) instance: String,
    pub(crate) execution: u64,
    pub(crate) events: Delta,
}

impl Op for AppendEvents {
    type Output = ();

    fn apply(&self, tx: &mut Tx<'_>) -> Result<(), OpError> {
        if let Some(known) = instances::by_id(tx.connection, &self.instance)? {
            self.events.check(tx, known.key, self.execution)?;
        }
        let instance = tx.instance(&self.instance)?;
        let key = instance.key;
        let stored = executions::get(tx.connection, key, self.execution)?;
        let mut execution = stored.unwrap_or_else(|| Execution::new(self.execution, tx.now));
        self.events.note(&mut execution);
        executions::put(tx.connection, key, &execution)?;
        self.events.append(tx, key, self.execution)?;
        mailbox::settle(tx, key)?;
        tx.effects.committed.push(instance.id);
        Ok(())
    }
}
