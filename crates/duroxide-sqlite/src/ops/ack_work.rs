//! An activity done: its row goes, its outcome is queued (R8.74).

use duroxide_core::model::{WorkItem, kind_of};
use duroxide_core::provider::Refusal;

use super::enqueue::MessageDraft;
use super::{Lasts, Op};
use crate::error::OpError;
use crate::long_text::LongTexts;
use crate::tables::work::{self, Work};
use crate::tables::{instances, sessions};
use crate::token::{self, Secret};
use crate::tx::Tx;

/// Removes a locked activity and queues its outcome, both or neither.
#[derive(Debug)]
pub(crate) struct AckWork {
    seq: i64,
    secret: Secret,
    outcome: Option<MessageDraft>,
}

impl AckWork {
    /// Refuses everything that is no outcome of an activity.
    pub(crate) fn of(token: &str, outcome: Option<&WorkItem>) -> Result<Self, Refusal> {
        let (seq, secret) = token::read_work(token)?;
        let is_outcome = |item: &WorkItem| {
            matches!(item, WorkItem::ActivityCompleted { .. } | WorkItem::ActivityFailed { .. })
        };
        if let Some(item) = outcome.filter(|item| !is_outcome(item)) {
            return Err(Refusal::NotAnOutcome(kind_of(item)));
        }
        let outcome = outcome.map(|item| MessageDraft::of(item, &mut LongTexts::default()));
        Ok(Self { seq, secret, outcome: outcome.transpose()? })
    }
}

impl Op for AckWork {
    type Output = ();

    fn apply(&self, tx: &mut Tx<'_>) -> Result<(), OpError> {
        let row = check_lock(tx, self.seq, &self.secret)?;
        work::delete(tx.connection, self.seq)?;
        if let Some(session) = &row.session {
            sessions::touch(tx.connection, session, tx.now)?; // R8.85
        }
        if let Some(outcome) = &self.outcome {
            let owner = instances::by_key(tx.connection, row.instance)?;
            let instance = match owner.filter(|owner| owner.id == outcome.instance) {
                Some(owner) => owner,
                None => tx.instance(&outcome.instance)?,
            };
            outcome.post(tx, &instance, tx.now)?;
        }
        Ok(())
    }

    fn lasts(&self) -> Lasts {
        Lasts::BeforeAnswer
    }
}

/// The row locked with this secret, if it still is (R8.74, R8.75).
pub(super) fn check_lock(tx: &Tx<'_>, seq: i64, secret: &Secret) -> Result<Work, OpError> {
    let row = work::get(tx.connection, seq)?;
    match row.filter(|row| row.token.as_ref() == Some(secret)) {
        None => Err(Refusal::UnknownToken.into()),
        Some(row) if row.is_locked(tx.now) => Ok(row),
        Some(_) => Err(Refusal::LockExpired.into()),
    }
}
