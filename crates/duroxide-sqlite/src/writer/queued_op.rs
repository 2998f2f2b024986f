//! An operation on its way through the writer, with the caller that waits for it.

use std::time::Instant;

use tokio::sync::oneshot;

use crate::error::{Failure, OpError, SqliteError};
use crate::ops::{Lasts, Op};
use crate::tx::Tx;

/// Which queue a fetch waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    /// Turns.
    Turns,
    /// Activities.
    Work,
}

/// For how long a fetch waits, and for what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) queue: Queue,
    pub(crate) until: Instant,
}

/// An operation of any kind.
pub(crate) trait QueuedOp: Send {
    /// Does it within a transaction. An error undoes the transaction; a refusal is an answer.
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), rusqlite::Error>;
    /// Forgets what `run` brought, because its transaction was undone.
    fn reset(&mut self);
    /// Whether it found what it looks for; a fetch that did not may wait on.
    fn is_done(&self) -> bool;
    /// Whether it has looked.
    fn has_looked(&self) -> bool;
    /// When its effect has to be on the disk.
    fn lasts(&self) -> Lasts;
    /// How long it may wait, if it is one that waits.
    fn patience(&self) -> Option<Patience>;
    /// Whether it is one that waits for this queue.
    fn waits_for(&self, queue: Queue) -> bool {
        self.patience().is_some_and(|patience| patience.queue == queue)
    }
    /// Whether its caller has stopped waiting for it.
    fn is_abandoned(&self) -> bool;
    /// Answers the caller, after the commit. If the caller is gone, the operations that give back
    /// what it was to get.
    fn answer(self: Box<Self>) -> Vec<Box<dyn QueuedOp>>;
    /// Tells the caller that it did not happen.
    fn fail(self: Box<Self>, error: &SqliteError);
}

/// Answer of the writer.
pub(crate) type Answer<T> = Result<T, Failure>;

/// An operation, its caller, and what came of it.
struct Pending<O: Op> {
    op: O,
    patience: Option<Patience>,
    /// `None` for operations whose result no caller awaits.
    reply: Option<oneshot::Sender<Answer<O::Output>>>,
    outcome: Option<Answer<O::Output>>,
}

/// An operation whose answer a caller awaits.
pub(crate) fn with_reply<O: Op>(
    op: O,
    patience: Option<Patience>,
) -> (Box<dyn QueuedOp>, oneshot::Receiver<Answer<O::Output>>) {
    let (reply, answer) = oneshot::channel();
    (Box::new(Pending { op, patience, reply: Some(reply), outcome: None }), answer)
}

/// An operation whose result no caller awaits.
pub(crate) fn without_reply<O: Op>(op: O) -> Box<dyn QueuedOp> {
    Box::new(Pending { op, patience: None, reply: None, outcome: None })
}

impl<O: Op> QueuedOp for Pending<O> {
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), rusqlite::Error> {
        self.outcome = match self.op.apply(tx) {
            Ok(output) => Some(Ok(output)),
            Err(OpError::Refused(refusal)) => Some(Err(Failure::Refused(refusal))),
            Err(OpError::Storage(error)) => return Err(error),
        };
        Ok(())
    }

    fn reset(&mut self) {
        self.outcome = None;
    }

    fn is_done(&self) -> bool {
        match &self.outcome {
            Some(Ok(output)) => O::is_worth_waiting_for(output),
            Some(Err(_)) => true,
            None => false,
        }
    }

    fn has_looked(&self) -> bool {
        self.outcome.is_some()
    }

    fn lasts(&self) -> Lasts {
        self.op.lasts()
    }

    fn patience(&self) -> Option<Patience> {
        self.patience
    }

    fn is_abandoned(&self) -> bool {
        self.reply.as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    fn answer(self: Box<Self>) -> Vec<Box<dyn QueuedOp>> {
        let Some(outcome) = self.outcome else { return Vec::new() };
        let Some(reply) = self.reply else {
            if let Err(failure) = outcome {
                let error = failure.during("give back");
                tracing::debug!(target: "duroxide::providers", %error, "nothing to give back");
            }
            return Vec::new();
        };
        match reply.send(outcome) {
            Err(Ok(output)) => O::undo(output),
            Ok(()) | Err(Err(_)) => Vec::new(),
        }
    }

    fn fail(self: Box<Self>, error: &SqliteError) {
        match self.reply {
            // A caller that is gone needs no answer.
            Some(reply) => drop(reply.send(Err(Failure::Storage(error.clone())))),
            None => {
                tracing::warn!(target: "duroxide::providers", %error, "lock not given back");
            }
        }
    }
}
