//! What was fetched and cannot be decoded becomes a dead letter (R8.30, R8.78).

use super::Op;
use super::{ack_work, commit_turn};
use crate::error::OpError;
use crate::mailbox;
use crate::tables::{instances, work};
use crate::token::Secret;
use crate::tx::Tx;

/// Takes undecodable messages out of a locked turn and gives the turn back, uncounted.
#[derive(Debug)]
pub(crate) struct DeadLetterMessages {
    pub(crate) key: i64,
    pub(crate) secret: Secret,
    /// Queue positions with what is wrong there.
    pub(crate) undecodable: Vec<(i64, String)>,
}

impl Op for DeadLetterMessages {
    type Output = ();

    fn apply(&self, tx: &mut Tx<'_>) -> Result<(), OpError> {
        let mailbox = commit_turn::check_lock(tx, self.key, &self.secret)?;
        for (seq, why) in &self.undecodable {
            mailbox::dead_letter(tx, self.key, *seq, &format!("message cannot be decoded: {why}"))?;
        }
        Ok(mailbox::unlock(tx, self.key, mailbox.moved_to)?)
    }
}

/// Takes an undecodable activity out of the queue.
#[derive(Debug)]
pub(crate) struct DeadLetterWork {
    pub(crate) seq: i64,
    pub(crate) secret: Secret,
    pub(crate) payload: String,
    pub(crate) why: String,
}

impl Op for DeadLetterWork {
    type Output = ();

    fn apply(&self, tx: &mut Tx<'_>) -> Result<(), OpError> {
        let row = ack_work::check_lock(tx, self.seq, &self.secret)?;
        let instance = instances::by_key(tx.connection, row.instance)?;
        work::delete(tx.connection, self.seq)?;
        let reason = format!("activity cannot be decoded: {}", self.why);
        let id = instance.as_ref().map_or("", |instance| &instance.id);
        Ok(tx.dead_letter(id, self.payload.clone(), &reason)?)
    }
}
