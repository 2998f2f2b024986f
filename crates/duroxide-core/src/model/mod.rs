//! What gets written down: events, messages, errors, and the limits they obey.
//!
//! Everything here is data. Its serialised shape is a format at rest: a change needs a golden test
//! and a line in `docs/formats.md`.

mod ids;
mod event;
mod action;
mod work_item;
mod error;
mod poison;
mod retry;
mod timeout;
mod status;
mod codec;
pub mod limits;
pub mod version;

pub use action::Action;
pub use codec::{decode, encode};
pub use error::{AppErrorKind, ConfigErrorKind, ErrorDetails, PoisonMessageType};
pub use event::{Event, EventKind};
pub use ids::{
    INITIAL_EVENT_ID, INITIAL_EXECUTION_ID, SUB_ORCH_AUTO_PREFIX, SYSCALL_GET_KV_VALUE,
    SYSCALL_NEW_GUID, SYSCALL_PREFIX, SYSCALL_UTC_NOW_MS, ScheduledActivityIdentifier,
    UNREADABLE_HISTORY_EVENT_ID, build_child_instance_id, child_suffix,
    is_auto_generated_sub_orch_id, is_reserved_root_id, pending_child_suffix,
};
pub use poison::poison_message;
pub use retry::{BackoffStrategy, RetryPolicy};
pub use status::{KvEntry, LogLevel, OrchestrationDescriptor, OrchestrationStatus, SystemStats};
pub use timeout::ActivityTimeout;
pub use work_item::{WorkItem, kind_of};
