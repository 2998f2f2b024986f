//! An activity done and the turn that has read its outcome, without a message between them (R8.142).

use duroxide_core::provider::{DirectTurn, Refusal};

use super::Op;
use super::ack_work::check_lock;
use super::commit_turn::{Turns, record_all};
use crate::error::OpError;
use crate::tables::instances::{self, Instance};
use crate::tables::mailboxes::{self, State};
use crate::tables::{Sql, history, messages, sessions, work};
use crate::token::{self, Secret};
use crate::tx::Tx;

/// Removes a locked activity and commits a turn of its instance, both or neither.
#[derive(Debug)]
pub(crate) struct CommitDirect {
    seq: i64,
    secret: Secret,
    seen: Seen,
    turns: Turns,
}

/// What a turn without a lock has seen.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) instance: String,
    pub(super) execution: u64,
    /// Id and time.
    pub(super) last_event: (u64, u64),
}

impl CommitDirect {
    /// Serialises a commit; whatever can be refused without looking at the store will be.
    pub(crate) fn of(turn: DirectTurn) -> Result<Self, Refusal> {
        let (seq, secret) = token::read_work(&turn.work_token)?;
        let (execution, turns) = (turn.commit.execution_id, Turns::of(&turn.commit)?);
        let last_event = (turn.last_event_id, turn.last_event_at_ms);
        let seen = Seen { instance: turn.instance, execution, last_event };
        Ok(Self { seq, secret, seen, turns })
    }
}

impl Seen {
    /// The instance, if it is as the turn has seen it and no message or lock is about to change that.
    pub(super) fn at_rest(&self, tx: &mut Tx<'_>, key: i64) -> Result<Instance, OpError> {
        let c = tx.connection;
        let is_free = match mailboxes::get(c, key)? {
            // Of a lock that ran out only what it leaves counts.
            Some(mailbox) if mailbox.state == State::Locked && !mailbox.is_locked(tx.now) => {
                messages::oldest(c, key)?.is_none()
            }
            mailbox => mailbox.is_none_or(|mailbox| mailbox.state == State::Resting),
        };
        if !is_free || tx.has_overdue(key)? {
            return Err(self.refused());
        }
        let instance = instances::by_key(c, key)?.filter(|instance| {
            let execution = instance.identity.as_ref().map(|identity| identity.execution);
            instance.id == self.instance && execution == Some(self.execution)
        });
        let end = history::end(c, key, self.execution)?;
        instance.filter(|_| end == self.last_event).ok_or_else(|| self.refused())
    }

    pub(super) fn refused(&self) -> OpError {
        Refusal::NotAtRest(self.instance.clone()).into()
    }
}

impl Op for CommitDirect {
    type Output = ();

    fn apply(&self, tx: &mut Tx<'_>) -> Result<(), OpError> {
        let row = check_lock(tx, self.seq, &self.secret)?;
        let instance = self.seen.at_rest(tx, row.instance)?;
        let turns = self.turns.check(tx, instance.key)?;
        work::delete(tx.connection, self.seq)?;
        if let Some(session) = &row.session {
            sessions::touch(tx.connection, session, tx.now)?; // R8.85
        }
        Ok(record_all(tx, instance, turns, open)?)
    }
}

/// What is left of a lock that ran out goes, as with any commit.
pub(super) fn open(tx: &mut Tx<'_>, own: &Instance) -> Sql<()> {
    mailboxes::delete(tx.connection, own.key)
}
