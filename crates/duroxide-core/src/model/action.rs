//! All that an orchestration can ask for.

/// What one scheduling call asks of the engine. `scheduling_event_id` is 0 until the engine has
/// recorded the schedule event (R2.16).
#[derive(Debug, Clone)]
pub enum Action {
    /// Run an activity.
    CallActivity {
        /// Id of the schedule event.
        scheduling_event_id: u64,
        /// Registered name.
        name: String,
        /// Its input.
        input: String,
        /// Session to run it in.
        session_id: Option<String>,
        /// Tag that routes it.
        tag: Option<String>,
    },
    /// Set a timer.
    CreateTimer {
        /// Id of the schedule event.
        scheduling_event_id: u64,
        /// Due time, milliseconds since the epoch.
        fire_at_ms: u64,
    },
    /// Wait for an external event.
    WaitExternal {
        /// Id of the schedule event.
        scheduling_event_id: u64,
        /// Name of the event.
        name: String,
    },
    /// Start a root instance and forget it.
    StartOrchestrationDetached {
        /// Id of the recording event.
        scheduling_event_id: u64,
        /// Registered name.
        name: String,
        /// Exact version, or the registry's policy.
        version: Option<String>,
        /// Full id of the new instance.
        instance: String,
        /// Its input.
        input: String,
    },
    /// Start a child and expect its result.
    StartSubOrchestration {
        /// Id of the schedule event.
        scheduling_event_id: u64,
        /// Registered name.
        name: String,
        /// Exact version, or the registry's policy.
        version: Option<String>,
        /// Suffix of an automatic id, or the chosen id.
        instance: String,
        /// Its input.
        input: String,
    },
    /// End this execution and begin the next.
    ContinueAsNew {
        /// Input of the successor.
        input: String,
        /// Exact version, or the registry's policy.
        version: Option<String>,
    },
    /// Set or reset the custom status.
    UpdateCustomStatus {
        /// New status; `None` resets.
        status: Option<String>,
    },
    /// Take the next message of a queue.
    DequeueEvent {
        /// Id of the schedule event.
        scheduling_event_id: u64,
        /// Name of the queue.
        name: String,
    },
    /// Second-generation wait (R2.60).
    #[cfg(feature = "replay-version-test")]
    WaitExternal2 {
        /// Id of the schedule event.
        scheduling_event_id: u64,
        /// Name of the event.
        name: String,
        /// Topic of the event.
        topic: String,
    },
    /// Set a key.
    SetKeyValue {
        /// Which key.
        key: String,
        /// Its value.
        value: String,
        /// When, milliseconds since the epoch.
        last_updated_at_ms: u64,
    },
    /// Remove a key.
    ClearKeyValue {
        /// Which key.
        key: String,
    },
    /// Remove all keys.
    ClearKeyValues,
}
