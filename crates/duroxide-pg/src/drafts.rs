//! Messages and activities, serialised by whoever sends them.

use duroxide_core::model::{WorkItem, kind_of};
use duroxide_core::provider::Refusal;

use crate::numbers::id_in;
use crate::text::{pack, packed};

/// What decides whether a message can be served to somebody unknown (R8.28, R8.29).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i16)]
pub(crate) enum Kind {
    /// Anything not named below.
    Any = 0,
    /// Brings an instance into being.
    Start = 1,
    /// A message for a queue of the instance.
    Queue = 2,
}

/// A message, serialised.
#[derive(Debug)]
pub(crate) struct MessageDraft {
    pub(crate) instance: String,
    pub(crate) kind: Kind,
    pub(crate) payload: String,
    /// The instance whose child it begins.
    pub(crate) parent: Option<String>,
}

impl MessageDraft {
    /// Refuses activities (R8.10).
    pub(crate) fn of(item: &WorkItem) -> Result<Self, Refusal> {
        let instance =
            item.orchestration_key().ok_or_else(|| Refusal::NotAMessage(kind_of(item)))?;
        let kind = match item {
            item if item.is_start() => Kind::Start,
            WorkItem::QueueMessage { .. } => Kind::Queue,
            _ => Kind::Any,
        };
        let parent = packed(item.parent_of_start());
        Ok(Self { instance: pack(instance).into_owned(), kind, payload: json(item), parent })
    }
}

/// An activity, serialised.
#[derive(Debug)]
pub(crate) struct WorkDraft {
    pub(crate) instance: String,
    pub(crate) execution: i64,
    pub(crate) activity: i64,
    pub(crate) tag: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) payload: String,
}

impl WorkDraft {
    /// Refuses everything that is no activity.
    pub(crate) fn of(item: &WorkItem) -> Result<Self, Refusal> {
        let WorkItem::ActivityExecute { instance, execution_id, id, session_id, tag, .. } = item
        else {
            return Err(Refusal::NotWork(kind_of(item)));
        };
        Ok(Self {
            instance: pack(instance).into_owned(),
            execution: id_in(*execution_id),
            activity: id_in(*id),
            tag: packed(tag.as_deref()),
            session: packed(session_id.as_deref()),
            payload: json(item),
        })
    }
}

fn json(item: &WorkItem) -> String {
    // Items are plain data: strings, numbers, options and lists. There is nothing to go wrong.
    serde_json::to_string(item).unwrap_or_default()
}
