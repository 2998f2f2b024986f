//! A message or an activity into its queue.

use std::sync::Arc;

use duroxide_core::model::{WorkItem, kind_of};
use duroxide_core::provider::Refusal;

use super::{Lasts, Op};
use crate::error::OpError;
use crate::long_text::{LongText, LongTexts};
use crate::mailbox;
use crate::tables::Sql;
use crate::tables::instances::Instance;
use crate::tables::messages::{Kind, Message};
use crate::tables::work::{self, NewWork};
use crate::tx::Tx;

/// A message, serialised.
#[derive(Debug)]
pub(crate) struct MessageDraft {
    pub(crate) instance: String,
    kind: Kind,
    pub(super) payload: String,
    long: Option<Arc<LongText>>,
    /// The instance whose child it begins.
    parent: Option<String>,
}

impl MessageDraft {
    /// Refuses activities (R8.10).
    pub(crate) fn of(item: &WorkItem, longs: &mut LongTexts) -> Result<Self, Refusal> {
        let instance =
            item.orchestration_key().ok_or_else(|| Refusal::NotAMessage(kind_of(item)))?.to_owned();
        let kind = match item {
            item if item.is_start() => Kind::Start,
            WorkItem::QueueMessage { .. } => Kind::Queue,
            _ => Kind::Any,
        };
        let (payload, long) = encode(item, longs);
        let parent = item.parent_of_start().map(str::to_owned);
        Ok(Self { instance, kind, payload, long, parent })
    }

    /// The instance it is for, noted if it is new.
    pub(crate) fn addressee(&self, tx: &mut Tx<'_>) -> Sql<Instance> {
        tx.child(&self.instance, self.parent.as_deref())
    }

    /// Puts it into the mailbox of its instance.
    pub(crate) fn post(&self, tx: &mut Tx<'_>, instance: &Instance, visible_at: u64) -> Sql<()> {
        let long_text = tx.keep(instance.key, self.long.as_ref())?;
        let (kind, payload, parent) = (self.kind, &self.payload, self.parent.as_deref());
        let message = Message { kind, attempts: 0, payload, long_text, parent };
        mailbox::post(tx, instance, visible_at, message)
    }
}

/// An activity, serialised.
#[derive(Debug)]
pub(crate) struct WorkDraft {
    pub(crate) instance: String,
    execution: u64,
    activity: u64,
    tag: Option<String>,
    session: Option<String>,
    payload: String,
    long: Option<Arc<LongText>>,
}

impl WorkDraft {
    /// Refuses everything that is no activity.
    pub(crate) fn of(item: &WorkItem, longs: &mut LongTexts) -> Result<Self, Refusal> {
        let WorkItem::ActivityExecute { instance, execution_id, id, session_id, tag, .. } = item
        else {
            return Err(Refusal::NotWork(kind_of(item)));
        };
        let (payload, long) = encode(item, longs);
        Ok(Self {
            instance: instance.clone(),
            execution: *execution_id,
            activity: *id,
            tag: tag.clone(),
            session: session_id.clone(),
            payload,
            long,
        })
    }

    /// Queues it, fetchable at once (R8.71).
    pub(crate) fn queue(&self, tx: &mut Tx<'_>, instance: i64) -> Sql<()> {
        let seq = tx.next_seq()?;
        tx.effects.work_ready = true;
        let new = NewWork {
            instance,
            execution: self.execution,
            activity: self.activity,
            tag: self.tag.as_deref(),
            session: self.session.as_deref(),
            payload: &self.payload,
            long_text: tx.keep(instance, self.long.as_ref())?,
        };
        work::insert(tx.connection, seq, new)
    }
}

/// Queues a message for an instance (R8.10).
#[derive(Debug)]
pub(crate) struct EnqueueMessage {
    pub(crate) draft: MessageDraft,
    pub(crate) delay_ms: u64,
}

impl Op for EnqueueMessage {
    type Output = ();

    fn apply(&self, tx: &mut Tx<'_>) -> Result<(), OpError> {
        let instance = self.draft.addressee(tx)?;
        let visible_at = tx.now.saturating_add(self.delay_ms);
        Ok(self.draft.post(tx, &instance, visible_at)?)
    }

    fn lasts(&self) -> Lasts {
        Lasts::BeforeAnswer
    }
}

/// Queues an activity.
#[derive(Debug)]
pub(crate) struct EnqueueWork(pub(crate) WorkDraft);

impl Op for EnqueueWork {
    type Output = ();

    fn apply(&self, tx: &mut Tx<'_>) -> Result<(), OpError> {
        let instance = tx.instance(&self.0.instance)?;
        Ok(self.0.queue(tx, instance.key)?)
    }
}

fn encode(item: &WorkItem, longs: &mut LongTexts) -> (String, Option<Arc<LongText>>) {
    // Items are plain data: strings, numbers, options and lists. There is nothing to go wrong.
    longs.encode(item).unwrap_or_default()
}
