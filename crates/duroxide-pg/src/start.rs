//! The start of an instance, unless its id is taken (R6.88).

use std::sync::Arc;

use duroxide_core::model::WorkItem;
use duroxide_core::provider::{DeleteRefused, Refusal, StartOutcome};
use tokio_postgres::Row;

use crate::commit_board::place_of;
use crate::drafts::MessageDraft;
use crate::error::Failure;
use crate::lanes::Queue;
use crate::store::Store;
use crate::text::unpack;
use crate::value::Value;

impl Store {
    /// Queues a start, or says who has the id. One transaction, which looks when it has the lock: an answer
    /// that got lost leaves an error, after which nobody knows.
    pub(crate) async fn start_instance(
        self: &Arc<Self>,
        start: &WorkItem,
        replace_ended: bool,
    ) -> Result<StartOutcome, Failure> {
        const START: &str = "SELECT * FROM duroxide.start_instance($1, $2, $3, $4, $5)";
        let MessageDraft { instance, payload, .. } = MessageDraft::of(start)?;
        let (now, retention) = (self.given_time(), self.retention());
        self.start_if_needed();
        let values: &[&dyn Value] = &[&instance, &payload, &replace_ended, &now, &retention];
        let rows = self.pool.change(START, values).await?;
        let outcome = outcome(&rows, &unpack(instance.clone()))?;
        if outcome == StartOutcome::Started {
            self.floor.ring(Queue::Turns);
            let bell = replace_ended.then(|| place_of(&unpack(instance)));
            bell.into_iter().for_each(|bell| self.board.ring(bell));
            if self.has_company() {
                self.outbox.add(|news| {
                    news.turns = true;
                    news.bells.extend(bell);
                });
            }
        }
        Ok(outcome)
    }
}

/// What became of a start.
fn outcome(rows: &[Row], instance: &str) -> Result<StartOutcome, Failure> {
    let Some(row) = rows.first() else { return Ok(StartOutcome::Running) };
    let text = |column| unpack(row.get::<_, Option<String>>(column).unwrap_or_default());
    match row.get("outcome") {
        0_i16 => Ok(StartOutcome::Started),
        1 => Ok(StartOutcome::Running),
        2 => Ok(StartOutcome::Ended),
        3 => {
            let (root, descendant) = (instance.to_owned(), text("culprit"));
            Err(Refusal::DescendantRuns { root, descendant }.into())
        }
        4 => {
            let why = DeleteRefused::SubOrchestration;
            Err(Refusal::Undeletable(why, instance.to_owned()).into())
        }
        _ => {
            let (child, parent) = (text("culprit"), text("parent"));
            Err(Refusal::ChildAppeared { child, parent }.into())
        }
    }
}
