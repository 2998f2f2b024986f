//! A store whose rows make no sense is set right, as far as other rows tell what is right (R10.18).
//!
//! What cannot be set right becomes a dead letter. It is looked for when a store is opened, for a
//! moment, and when an operation meets something it cannot read.

use rusqlite::{Transaction, TransactionBehavior};

use crate::connection::in_steps;
use crate::database::Db;
use crate::mailbox;
use crate::tables::{Sql, corruption};
use crate::tx::{Settings, Tx};

/// How far a store that is being opened is looked at: for about 0.1 s.
const STEPS_THOUSANDS: u32 = 1000;

/// Looks for rows that make no sense, as far as a moment goes, and repairs the store if there are any.
pub(crate) fn repair_if_needed(connection: Db<'_>, settings: Settings, now: u64) -> Sql<()> {
    match in_steps(&connection, STEPS_THOUSANDS, |c| corruption::is_any(Db::of(c)))? {
        Some(true) => repair(connection, settings, now),
        Some(false) | None => Ok(()),
    }
}

/// Repairs a store in a transaction of its own.
pub(crate) fn repair(connection: Db<'_>, settings: Settings, now: u64) -> Sql<()> {
    let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)?;
    let mut rows = corruption::repair_instances(connection, now)?;
    rows += corruption::repair_queues(connection, now)?;
    rows += corruption::repair_work(connection)?;
    rows += corruption::delete_mailboxes(connection)?;
    let mut tx = Tx::new(connection, settings, now);
    for key in corruption::without_mailbox(connection)? {
        rows += 1;
        mailbox::settle(&mut tx, key)?;
    }
    transaction.commit()?;
    if 0 < rows {
        tracing::error!(
            target: "duroxide::providers",
            rows,
            "rows that made no sense were set right or became dead letters: check disk and memory"
        );
    }
    Ok(())
}
