//! The start of an instance, unless its id is taken (R6.88).

use duroxide_core::model::WorkItem;
use duroxide_core::provider::{Refusal, StartOutcome};

use super::delete::make_room;
use super::{Lasts, MessageDraft, Op};
use crate::error::OpError;
use crate::long_text::LongTexts;
use crate::tables::{Sql, executions, hidden, instances, starts};
use crate::tx::Tx;

/// Queues a start, or says in what state the instance is that has the id.
#[derive(Debug)]
pub(crate) struct StartInstance {
    draft: MessageDraft,
    /// Whether an ended instance makes room.
    replace_ended: bool,
}

impl StartInstance {
    /// Refuses what is no message.
    pub(crate) fn of(start: &WorkItem, replace_ended: bool) -> Result<Self, Refusal> {
        Ok(Self { draft: MessageDraft::of(start, &mut LongTexts::default())?, replace_ended })
    }
}

impl Op for StartInstance {
    type Output = StartOutcome;

    fn apply(&self, tx: &mut Tx<'_>) -> Result<StartOutcome, OpError> {
        let id = &self.draft.instance;
        match taken(tx, id)? {
            Some(StartOutcome::Ended) if self.replace_ended => {
                make_room(tx, id)?;
            }
            Some(taken) => return Ok(taken),
            None => {}
        }
        let instance = self.draft.addressee(tx)?;
        self.draft.post(tx, &instance, tx.now)?;
        Ok(StartOutcome::Started)
    }

    fn lasts(&self) -> Lasts {
        // A deletion must not be seen before it is on the disk; a start alone may.
        if self.replace_ended { Lasts::BeforeSeen } else { Lasts::BeforeAnswer }
    }
}

/// In what state the instance is that has the id; `None` if none has it.
fn taken(tx: &mut Tx<'_>, id: &str) -> Sql<Option<StartOutcome>> {
    let c = tx.connection;
    let Some(instance) = instances::by_id(c, id)? else { return Ok(None) };
    let key = instance.key;
    if !tx.is_known(&instance)? {
        let is_queued = starts::has_start(c, key)? || hidden::has_start(c, key)?;
        if is_queued {
            // That start may not be on the disk yet. A change, even of the counter alone, lets this
            // answer wait for a sync, which brings everything before it there.
            tx.next_seq()?;
        }
        return Ok(is_queued.then_some(StartOutcome::Running));
    }
    let status = executions::newest(c, key)?.map(|execution| execution.status);
    Ok(Some(match status.as_deref() {
        Some("Completed" | "Failed") => StartOutcome::Ended,
        // One that continues as new goes on.
        _ => StartOutcome::Running,
    }))
}
