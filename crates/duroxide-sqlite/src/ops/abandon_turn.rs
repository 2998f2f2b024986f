//! A locked turn given back (R8.65 – R8.67).

use duroxide_core::provider::Refusal;

use super::{Lasts, Op};
use crate::error::OpError;
use crate::mailbox;
use crate::tables::mailboxes::{self, State};
use crate::tables::messages;
use crate::token::Secret;
use crate::tx::Tx;

/// Gives a turn back.
#[derive(Debug)]
pub(crate) struct AbandonTurn {
    pub(crate) key: i64,
    pub(crate) secret: Secret,
    /// Hides the messages for so long.
    pub(crate) delay_ms: Option<u64>,
    /// Lets this attempt not count.
    pub(crate) uncount: bool,
}

impl Op for AbandonTurn {
    type Output = ();

    fn apply(&self, tx: &mut Tx<'_>) -> Result<(), OpError> {
        // R8.67: the token has to be the current one, its time may be up.
        let mailbox = mailboxes::get(tx.connection, self.key)?;
        let Some(mailbox) = mailbox.filter(|mailbox| mailbox.token == Some(self.secret)) else {
            return Err(Refusal::UnknownToken.into());
        };
        let (is_counted, counts) = (mailbox.state != State::Locked, !self.uncount);
        if is_counted != counts {
            let more = if counts { 1 } else { -1 };
            messages::count_taken(tx.connection, self.key, mailbox.batch, more)?;
        }
        let hide_until = self.delay_ms.map(|delay| tx.now.saturating_add(delay));
        if let Some(until) = hide_until.filter(|until| tx.now < *until) {
            if mailbox.batch.leaves_some {
                return Ok(mailbox::unlock_later(tx, self.key, mailbox.moved_to, until)?);
            }
            messages::hide_taken(tx.connection, self.key, mailbox.batch, until)?;
        }
        Ok(mailbox::unlock(tx, self.key, mailbox.moved_to)?)
    }

    fn lasts(&self) -> Lasts {
        Lasts::No
    }
}
