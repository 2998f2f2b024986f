//! What can be asked of a store, with everything it takes. Printed, it is the call.

use std::fmt;
use std::time::Duration;

use duroxide_core::model::{Event, WorkItem};

use crate::providers::{
    DirectTurn, DispatcherCapabilityFilter, InstanceFilter, PruneOptions, SessionFetchConfig,
    TagFilter, TimerTurn, TurnCommit,
};

/// One operation on both stores.
#[derive(Debug, Clone)]
pub(super) enum Op {
    /// Time passes.
    Advance { ms: u64 },
    /// So much time passes that messages for nobody are given up, which the next fetch may do.
    OutlastRetention,
    /// The store is closed and opened again.
    Reopen,
    /// `enqueue_for_orchestrator`.
    Send { item: WorkItem, delay: Option<Duration> },
    /// `fetch_orchestration_item`, or `fetch_turn` and the history after it.
    FetchTurn { lock: Duration, filter: Option<DispatcherCapabilityFilter>, bare: bool },
    /// `ack_orchestration_item`, or `commit_turn`.
    Commit { token: Token, commit: Box<TurnCommit>, bundled: bool },
    /// `abandon_orchestration_item`.
    AbandonTurn { token: Token, delay: Option<Duration>, ignore_attempt: bool },
    /// `renew_orchestration_item_lock`.
    RenewTurn { token: Token, extend_for: Duration },
    /// `append_with_execution`.
    Append { instance: String, execution_id: u64, events: Vec<Event> },
    /// `enqueue_for_worker`.
    QueueWork { item: WorkItem },
    /// `fetch_work_item`.
    FetchWork { lock: Duration, session: Option<SessionFetchConfig>, tags: TagFilter },
    /// `ack_work_item`.
    AckWork { token: Token, completion: Option<WorkItem> },
    /// `commit_direct_turn`, with the token of both stores in turn.
    CommitDirect { token: Token, turn: Box<DirectTurn> },
    /// `commit_timer_turn`.
    CommitTimers { turn: Box<TimerTurn> },
    /// `renew_work_item_lock`.
    RenewWork { token: Token, extend_for: Duration },
    /// `abandon_work_item`.
    AbandonWork { token: Token, delay: Option<Duration>, ignore_attempt: bool },
    /// `renew_session_lock`.
    RenewSessions { owners: Vec<String>, extend_for: Duration, idle: Duration },
    /// `cleanup_orphaned_sessions`.
    CleanSessions { idle: Duration },
    /// `read_history_from`.
    ReadFrom { instance: String, execution_id: u64, from: u64, limit: Option<usize> },
    /// `get_custom_status`.
    CustomStatus { instance: String, last_seen: u64 },
    /// `get_kv_value`.
    Value { instance: String, key: String },
    /// `delete_instance`, or `try_delete_instance`.
    Delete { instance: String, force: bool, typed: bool },
    /// `delete_instances_atomic`.
    DeleteExactly { ids: Vec<String>, force: bool },
    /// `delete_instance_bulk`.
    DeleteBulk { filter: InstanceFilter },
    /// `prune_executions`.
    Prune { instance: String, options: PruneOptions },
    /// `prune_executions_bulk`.
    PruneBulk { filter: InstanceFilter, options: PruneOptions },
}

impl Op {
    /// The token it uses.
    pub(super) fn token(&self) -> Option<Token> {
        match self {
            Self::Commit { token, .. }
            | Self::AbandonTurn { token, .. }
            | Self::RenewTurn { token, .. }
            | Self::AckWork { token, .. }
            | Self::CommitDirect { token, .. }
            | Self::RenewWork { token, .. }
            | Self::AbandonWork { token, .. } => Some(*token),
            _ => None,
        }
    }

    /// The time after which it ends by itself.
    pub(super) fn takes(&self) -> Option<Duration> {
        match self {
            Self::FetchTurn { lock: time, .. }
            | Self::FetchWork { lock: time, .. }
            | Self::RenewTurn { extend_for: time, .. }
            | Self::RenewWork { extend_for: time, .. }
            | Self::RenewSessions { extend_for: time, .. } => Some(*time),
            Self::Send { delay, .. }
            | Self::AbandonTurn { delay, .. }
            | Self::AbandonWork { delay, .. } => *delay,
            _ => None,
        }
    }

    /// Its name in reports.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Advance { .. } => "advance",
            Self::OutlastRetention => "outlast retention",
            Self::Reopen => "reopen",
            Self::Send { .. } => "enqueue_for_orchestrator",
            Self::FetchTurn { bare: false, .. } => "fetch_orchestration_item",
            Self::FetchTurn { bare: true, .. } => "fetch_turn",
            Self::Commit { bundled: false, .. } => "ack_orchestration_item",
            Self::Commit { bundled: true, .. } => "commit_turn",
            Self::AbandonTurn { .. } => "abandon_orchestration_item",
            Self::RenewTurn { .. } => "renew_orchestration_item_lock",
            Self::Append { .. } => "append_with_execution",
            Self::QueueWork { .. } => "enqueue_for_worker",
            Self::FetchWork { .. } => "fetch_work_item",
            Self::AckWork { .. } => "ack_work_item",
            Self::CommitDirect { .. } => "commit_direct_turn",
            Self::CommitTimers { .. } => "commit_timer_turn",
            Self::RenewWork { .. } => "renew_work_item_lock",
            Self::AbandonWork { .. } => "abandon_work_item",
            Self::RenewSessions { .. } => "renew_session_lock",
            Self::CleanSessions { .. } => "cleanup_orphaned_sessions",
            Self::ReadFrom { .. } => "read_history_from",
            Self::CustomStatus { .. } => "get_custom_status",
            Self::Value { .. } => "get_kv_value",
            Self::Delete { typed: false, .. } => "delete_instance",
            Self::Delete { typed: true, .. } => "try_delete_instance",
            Self::DeleteExactly { .. } => "delete_instances_atomic",
            Self::DeleteBulk { .. } => "delete_instance_bulk",
            Self::Prune { .. } => "prune_executions",
            Self::PruneBulk { .. } => "prune_executions_bulk",
        }
    }
}

/// A lock token. The stores make their own, so a token is known by when it was handed out.
#[derive(Clone, Copy)]
pub(super) enum Token {
    /// That of the n-th lock, from 0.
    Handed(usize),
    /// One that no store ever made.
    MadeUp(&'static str),
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handed(number) => write!(f, "token #{number}"),
            Self::MadeUp(text) => write!(f, "{text:?}"),
        }
    }
}
