//! The storage contract: what the runtime asks of a store. Signatures here, rules in
//! `docs/behaviour.md` chapter 8.
//!
//! A provider stores without understanding: it never makes ids, never interprets orchestration
//! logic, never decides a status (R8.3).

mod item;
mod filter;
mod admin;
pub mod error;
pub mod management;
mod turn;
mod refusal;
mod start;

use std::any::Any;
use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;

use crate::model::{Event, OrchestrationStatus, SystemStats, WorkItem};

pub use crate::model::limits::MAX_WORKER_TAGS;
pub use crate::model::version::current_build_version;
pub use crate::model::{KvEntry, ScheduledActivityIdentifier};
pub use admin::{DeadLetter, DeleteRefused, ProviderAdmin};
pub use error::ProviderError;
pub use filter::{DispatcherCapabilityFilter, SemverRange, SessionFetchConfig, TagFilter};
pub use item::{ExecutionMetadata, OrchestrationItem};
pub use management::{
    DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree,
    ManagementProvider, PruneOptions, PruneResult, QueueDepths, SystemMetrics,
};
pub use refusal::Refusal;
pub use start::StartOutcome;
pub use turn::{DirectTurn, FetchedTurn, RejectedCommit, TimerTurn, TurnCommit};

/// A store with two peek-lock queues.
///
/// What each method has to guarantee, and in which order things happen inside it, is chapter 8 of
/// `docs/behaviour.md`. Locks are handed out as tokens; a token that is no longer valid is answered
/// with a permanent error, contention with a retryable one.
///
/// The methods up to `get_instance_stats` are the contract every provider fulfils. Those after it
/// have default bodies built from the others: a provider that can do better overrides them, a
/// wrapper that knows nothing of them still sees every call.
#[async_trait]
pub trait Provider: Any + Send + Sync {
    /// Name for logs.
    fn name(&self) -> &str {
        "unknown"
    }

    /// Version for logs.
    fn version(&self) -> &str {
        "0.0.0"
    }

    /// Locks the next runnable instance and its visible messages: (item, lock token, attempt).
    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError>;

    /// Commits one turn: all of it or nothing.
    #[expect(clippy::too_many_arguments, reason = "inherited signature; see commit_turn")]
    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError>;

    /// Gives a locked turn back, visible again after `delay`.
    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError>;

    /// Events of the latest execution; empty for an unknown instance.
    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError>;

    /// Events of one execution.
    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError>;

    /// Appends events outside a turn (tests and tools).
    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError>;

    /// Queues an activity.
    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError>;

    /// Locks the next activity these sessions and tags admit: (item, lock token, attempt).
    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError>;

    /// Removes a locked activity and queues its completion, in one transaction.
    async fn ack_work_item(
        &self,
        token: &str,
        completion: Option<WorkItem>,
    ) -> Result<(), ProviderError>;

    /// Holds an activity's lock for longer.
    async fn renew_work_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError>;

    /// Extends the live, recently used session leases of these owners; how many there were.
    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError>;

    /// Removes expired sessions without queued work; how many there were.
    async fn cleanup_orphaned_sessions(
        &self,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError>;

    /// Gives a locked activity back, visible again after `delay`.
    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError>;

    /// Holds a turn's lock for longer.
    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError>;

    /// Queues a message for an instance, visible after `delay`.
    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError>;

    /// The management side of this store, if it has one.
    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        None
    }

    /// Custom status and its version, if newer than `last_seen_version`.
    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError>;

    /// A committed value.
    async fn get_kv_value(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<String>, ProviderError>;

    /// All committed values.
    async fn get_kv_all_values(
        &self,
        instance: &str,
    ) -> Result<HashMap<String, String>, ProviderError>;

    /// Sizes of an instance.
    async fn get_instance_stats(
        &self,
        instance: &str,
    ) -> Result<Option<SystemStats>, ProviderError>;

    // ---- Additive methods (R8.130 and following) ------------------------------------------------

    /// Like [`fetch_orchestration_item`](Self::fetch_orchestration_item), but may leave the history
    /// out and say only how long it is: a runtime that still holds the instance in memory does not
    /// need it, any other asks [`read_history_from`](Self::read_history_from) (R8.130).
    async fn fetch_turn(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<FetchedTurn>, ProviderError> {
        let fetched = self.fetch_orchestration_item(lock_timeout, poll_timeout, filter).await?;
        Ok(fetched.map(|(item, lock_token, attempt_count)| {
            FetchedTurn::with_history(item, lock_token, attempt_count)
        }))
    }

    /// Like [`fetch_turn`](Self::fetch_turn), but up to `max` turns at once, of different instances.
    /// Waits for the first only; empty if there was none (R8.138).
    async fn fetch_turns(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
        max: usize,
    ) -> Result<Vec<FetchedTurn>, ProviderError> {
        if max == 0 {
            return Ok(Vec::new());
        }
        let turn = self.fetch_turn(lock_timeout, poll_timeout, filter).await?;
        Ok(turn.into_iter().collect())
    }

    /// Like [`fetch_work_item`](Self::fetch_work_item), but up to `max` activities at once, in queue
    /// order. Waits for the first only; empty if there was none. At most one of them belongs to a
    /// session, and that is the last (R8.139).
    #[expect(clippy::too_many_arguments, reason = "those of fetch_work_item, and how many")]
    async fn fetch_work_items(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
        max: usize,
    ) -> Result<Vec<(WorkItem, String, u32)>, ProviderError> {
        if max == 0 {
            return Ok(Vec::new());
        }
        let work = self.fetch_work_item(lock_timeout, poll_timeout, session, tag_filter).await?;
        Ok(work.into_iter().collect())
    }

    /// Events of one execution with an id of at least `from_event_id`, at most `limit` of them
    /// (R8.131).
    async fn read_history_from(
        &self,
        instance: &str,
        execution_id: u64,
        from_event_id: u64,
        limit: Option<usize>,
    ) -> Result<Vec<Event>, ProviderError> {
        let mut events = self.read_with_execution(instance, execution_id).await?;
        events.retain(|event| event.event_id >= from_event_id);
        events.truncate(limit.unwrap_or(usize::MAX));
        Ok(events)
    }

    /// Commits one turn, and hands the commit back if that failed, so that trying again costs no
    /// copy (R8.132).
    async fn commit_turn(
        &self,
        lock_token: &str,
        commit: TurnCommit,
    ) -> Result<(), RejectedCommit> {
        if commit.successor.is_some() {
            let error = Refusal::NoSuccessors.during("commit_turn");
            return Err(RejectedCommit { error, commit: Box::new(commit) });
        }
        let copy = commit.clone();
        self.ack_orchestration_item(
            lock_token,
            copy.execution_id,
            copy.history_delta,
            copy.worker_items,
            copy.orchestrator_items,
            copy.metadata,
            copy.cancelled_activities,
        )
        .await
        .map_err(|error| RejectedCommit { error, commit: Box::new(commit) })
    }

    /// Whether [`commit_turn`](Self::commit_turn) takes a turn together with the first turn of the
    /// execution it continues as: [`TurnCommit::successor`] (R8.140).
    fn commits_successors(&self) -> bool {
        false
    }

    /// Whether [`commit_direct_turn`](Self::commit_direct_turn) does anything (R8.142).
    fn commits_direct_turns(&self) -> bool {
        false
    }

    /// Takes a locked activity out of its queue and commits the turn that has read its outcome, in one
    /// transaction and without a message between them; or refuses, if the instance is not at rest as
    /// the turn has seen it, and changes nothing (R8.142).
    async fn commit_direct_turn(&self, _turn: DirectTurn) -> Result<(), ProviderError> {
        Err(Refusal::NoDirectTurns.during("commit_direct_turn"))
    }

    /// Whether [`commit_timer_turn`](Self::commit_timer_turn) does anything, and timers are held back
    /// as [`TurnCommit::timer_grace_ms`] says (R8.150).
    fn commits_timer_turns(&self) -> bool {
        false
    }

    /// Takes timers that are due and not visible yet out of the queue and commits the turn that has
    /// read them, in one transaction; or refuses, if one of them is not there or the instance is not at
    /// rest as the turn has seen it, and changes nothing (R8.150).
    async fn commit_timer_turn(&self, _turn: TimerTurn) -> Result<(), ProviderError> {
        Err(Refusal::NoTimerTurns.during("commit_timer_turn"))
    }

    /// Whether [`start_instance`](Self::start_instance) decides in one transaction (R6.88).
    fn decides_starts(&self) -> bool {
        false
    }

    /// Queues the start of an instance unless its id is taken: by an instance, or by a start that is
    /// queued or in a turn that has not been committed. An ended instance can be made room of: it is
    /// deleted with its descendants, as by `delete_instance` without force. All of it is one
    /// transaction, so that of many callers that start an id at once one is told that it has (R6.88).
    /// The default looks first and sends then.
    async fn start_instance(
        &self,
        start: WorkItem,
        replace_ended: bool,
    ) -> Result<StartOutcome, ProviderError> {
        start::look_and_send(self, start, replace_ended).await
    }

    /// The status of an instance, without reading its history if the store can (R8.133).
    async fn read_status(&self, instance: &str) -> Result<OrchestrationStatus, ProviderError> {
        let history = self.read(instance).await?;
        // R6.23: a status without its decoration is better than none.
        let custom = self.get_custom_status(instance, 0).await.unwrap_or_else(|error| {
            tracing::warn!(target: "duroxide::providers", %error, instance, "custom status unreadable");
            None
        });
        Ok(OrchestrationStatus::from_history(&history, custom.unwrap_or((None, 0))))
    }

    /// Waits until this process commits something for `instance` that a client can wait for (its
    /// status, custom status or a value), at most `timeout`. Returns the number of commits seen so
    /// far, to be passed as `seen` next time; `None` means that this store cannot tell and the
    /// caller has to look for itself (R8.134).
    async fn wait_for_commit(&self, instance: &str, seen: u64, timeout: Duration) -> Option<u64> {
        let _ = (instance, seen, timeout);
        None
    }

    /// The ones of these lock tokens whose activity is no longer in the queue, or was locked by another
    /// worker since: a renewal would be refused. A read, asked every second or so for activities that
    /// run for longer, so that one cancelled elsewhere is stopped before its next renewal. Empty if the
    /// store cannot tell (R8.148).
    async fn lost_work_items(&self, tokens: &[&str]) -> Result<Vec<String>, ProviderError> {
        let _ = tokens;
        Ok(Vec::new())
    }

    /// The time by which this store decides what is visible, in milliseconds since the epoch, if
    /// that is not simply this process's wall clock (R8.135).
    fn store_time_ms(&self) -> Option<u64> {
        None
    }
}
