//! What travels between a store and the runtime.

use std::collections::HashMap;

use semver::Version;

use crate::model::{Event, KvEntry, WorkItem};

/// A locked instance with its messages.
#[derive(Debug, Clone)]
pub struct OrchestrationItem {
    /// The instance.
    pub instance: String,
    /// Registered name.
    pub orchestration_name: String,
    /// Current execution.
    pub execution_id: u64,
    /// Handler version, or `unknown`.
    pub version: String,
    /// Events of the current execution.
    pub history: Vec<Event>,
    /// Locked messages, in queue order.
    pub messages: Vec<WorkItem>,
    /// Why the history could not be read; it is empty then.
    pub history_error: Option<String>,
    /// Key-value entries of completed executions.
    pub kv_snapshot: HashMap<String, KvEntry>,
}

/// What a commit says about its execution. Absent fields leave things as they are.
#[derive(Debug, Clone, Default)]
pub struct ExecutionMetadata {
    /// `Completed`, `Failed` or `ContinuedAsNew`, when the execution ended.
    pub status: Option<String>,
    /// Result, error text or next input, when it ended.
    pub output: Option<String>,
    /// Registered name, when it started.
    pub orchestration_name: Option<String>,
    /// Handler version, when it started.
    pub orchestration_version: Option<String>,
    /// Parent, when it started as a child.
    pub parent_instance_id: Option<String>,
    /// Library version the execution is pinned to, when it started.
    pub pinned_duroxide_version: Option<Version>,
}
