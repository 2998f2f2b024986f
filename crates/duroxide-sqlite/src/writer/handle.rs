//! How the rest of the store reaches the writer.

use std::sync::mpsc::Sender;
use std::time::Instant;

use super::queued_op::{Answer, Patience, QueuedOp, with_reply, without_reply};
use crate::error::{Failure, SqliteError};
use crate::ops::Op;

/// What the writer is told.
pub(super) enum Message {
    /// Do this.
    QueuedOp(Box<dyn QueuedOp>),
    /// A client begins to wait for commits of other processes.
    Watch,
    /// Finish and end.
    Close,
}

/// A way to the writer. Any number of callers may hold one.
#[derive(Clone)]
pub(crate) struct WriterHandle {
    inbox: Sender<Message>,
}

impl WriterHandle {
    pub(super) fn new(inbox: Sender<Message>) -> Self {
        Self { inbox }
    }

    /// Does an operation; returns when it is committed.
    pub(crate) async fn run<O: Op>(&self, op: O) -> Answer<O::Output> {
        self.submit(op, None).await
    }

    /// Does a fetch, waiting inside the writer until there is something to fetch.
    pub(crate) async fn wait_for<O: Op>(&self, op: O, patience: Patience) -> Answer<O::Output> {
        let patience = (Instant::now() < patience.until).then_some(patience);
        self.submit(op, patience).await
    }

    /// Has an operation done whose result no caller awaits.
    pub(crate) fn post<O: Op>(&self, op: O) {
        // A writer that is gone has given everything back.
        drop(self.inbox.send(Message::QueuedOp(without_reply(op))));
    }

    /// Has the writer look out for commits of other processes.
    pub(crate) fn watch(&self) {
        // A writer that is gone has nothing to watch any more.
        drop(self.inbox.send(Message::Watch));
    }

    /// Tells the writer to end.
    pub(crate) fn close(&self) {
        // A writer that is gone has ended.
        drop(self.inbox.send(Message::Close));
    }

    async fn submit<O: Op>(&self, op: O, patience: Option<Patience>) -> Answer<O::Output> {
        let (op, answer) = with_reply(op, patience);
        let closed = || Failure::Storage(SqliteError::Closed);
        self.inbox.send(Message::QueuedOp(op)).map_err(|_| closed())?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }
}
