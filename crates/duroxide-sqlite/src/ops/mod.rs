//! Everything that writes: one operation of the contract, one file, one `apply`.
//!
//! An operation first looks, then writes: when it refuses, it has written nothing. So a refusal
//! costs the other operations of its transaction nothing, and no savepoint is needed.

mod enqueue;
mod start;
mod fetch_turn;
mod commit_turn;
mod commit_direct;
mod commit_timers;
mod abandon_turn;
mod renew_turn;
mod append;
mod fetch_work;
mod ack_work;
mod abandon_work;
mod renew_work;
mod sessions;
mod dead_letter;
mod delete;
mod prune;
#[cfg(feature = "test-hooks")]
mod tamper;

use crate::error::OpError;
use crate::tx::Tx;

pub(crate) use abandon_turn::AbandonTurn;
pub(crate) use abandon_work::AbandonWork;
pub(crate) use ack_work::AckWork;
pub(crate) use append::AppendEvents;
pub(crate) use commit_direct::CommitDirect;
pub(crate) use commit_timers::CommitTimers;
pub(crate) use commit_turn::{CommitTurn, Delta};
pub(crate) use dead_letter::{DeadLetterMessages, DeadLetterWork};
pub(crate) use delete::{DeleteExactly, DeleteRoots, DeleteTree, deletable, has_ended_before};
pub(crate) use enqueue::{EnqueueMessage, EnqueueWork, MessageDraft, WorkDraft};
pub(crate) use fetch_turn::{FetchTurn, TakenTurn};
pub(crate) use fetch_work::{FetchWork, TakenWork};
pub(crate) use prune::{Prune, PruneSome};
pub(crate) use renew_turn::RenewTurn;
pub(crate) use renew_work::RenewWork;
pub(crate) use sessions::{CleanSessions, RenewSessions};
pub(crate) use start::StartInstance;
#[cfg(feature = "test-hooks")]
pub(crate) use tamper::Tamper;

/// When an effect has to be on the disk, so that it survives a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lasts {
    /// Never: leases need not survive, since the process that held them did not either.
    No,
    /// Before the caller is answered. Others may see it before: it is a message, without effect
    /// until a turn has used it.
    BeforeAnswer,
    /// Before any other transaction sees it.
    BeforeSeen,
}

/// Something that happens in a transaction of the writer.
pub(crate) trait Op: Send + 'static {
    /// What the caller gets.
    type Output: Send + 'static;

    /// Does it. May be called again if the transaction around it was undone.
    fn apply(&self, tx: &mut Tx<'_>) -> Result<Self::Output, OpError>;

    /// When its effect has to be on the disk.
    fn lasts(&self) -> Lasts {
        Lasts::BeforeSeen
    }

    /// For a fetch that waits: whether this is what it waits for.
    fn is_worth_waiting_for(_output: &Self::Output) -> bool {
        true
    }

    /// The operations that give the output back if the caller is gone when it is done.
    fn undo(_output: Self::Output) -> Vec<Box<dyn crate::writer::QueuedOp>> {
        Vec::new()
    }
}
