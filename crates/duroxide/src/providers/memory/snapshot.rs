//! The whole store as plain public data, for tests and invariant checks.

use std::collections::BTreeMap;

use duroxide_core::model::{Event, KvEntry, WorkItem};

use super::instances::Instance;
use super::mailbox::Mailbox;
use super::sessions::Session;
use super::state::State;
use super::worker_queue::{Phase, WorkRow};
use crate::providers::DeadLetter;

/// Everything in a memory store at one moment. Times are milliseconds since the epoch.
#[derive(Debug, Clone, Default)]
pub struct MemorySnapshot {
    /// When it was taken.
    pub taken_at_ms: u64,
    /// Everything known of an instance id, whether or not it has a row.
    pub instances: BTreeMap<String, InstanceSnapshot>,
    /// Messages for orchestrations, in queue order.
    pub orchestrator_queue: Vec<MessageSnapshot>,
    /// Locks of instances, run out or not, by instance.
    pub instance_locks: BTreeMap<String, LockSnapshot>,
    /// Activities, in queue order.
    pub worker_queue: Vec<WorkSnapshot>,
    /// Sessions by id.
    pub sessions: BTreeMap<String, SessionSnapshot>,
    /// Messages given up, oldest first.
    pub dead_letters: Vec<DeadLetter>,
}

/// One instance.
#[derive(Debug, Clone)]
pub struct InstanceSnapshot {
    /// Whether there is a row; name to parent mean nothing without.
    pub has_row: bool,
    /// Registered name.
    pub name: String,
    /// Handler version.
    pub version: String,
    /// Newest execution.
    pub current_execution: u64,
    /// Parent, for a child.
    pub parent: Option<String>,
    /// Last status set by the code.
    pub custom_status: Option<String>,
    /// Number of commits that changed the custom status.
    pub custom_status_version: u64,
    /// Executions by number.
    pub executions: BTreeMap<u64, ExecutionSnapshot>,
    /// Values of completed executions.
    pub kv_store: BTreeMap<String, KvEntry>,
    /// Changes of the current execution; `None` is a tombstone.
    pub kv_delta: BTreeMap<String, Option<KvEntry>>,
}

/// One execution.
#[derive(Debug, Clone)]
pub struct ExecutionSnapshot {
    /// Its status.
    pub status: String,
    /// Result, error text or next input.
    pub output: Option<String>,
    /// Library version it is pinned to.
    pub pinned_duroxide_version: Option<semver::Version>,
    /// When it began.
    pub started_at: u64,
    /// When it ended.
    pub completed_at: Option<u64>,
    /// Its events.
    pub history: Vec<Event>,
}

/// A lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockSnapshot {
    /// Its token.
    pub token: String,
    /// When it ends; `None` if it has ended.
    pub held_until: Option<u64>,
}

/// A message for an orchestration.
#[derive(Debug, Clone)]
pub struct MessageSnapshot {
    /// Its place in the queue.
    pub sequence: u64,
    /// Target instance.
    pub instance: String,
    /// The message.
    pub item: WorkItem,
    /// When it becomes or became visible.
    pub visible_at: u64,
    /// How often it has been fetched.
    pub attempts: u32,
    /// Whether the instance's lock, run out or not, was taken with it.
    pub tagged: bool,
}

/// A queued activity.
#[derive(Debug, Clone)]
pub struct WorkSnapshot {
    /// Its place in the queue.
    pub sequence: u64,
    /// The activity.
    pub item: WorkItem,
    /// When it becomes visible, if it is hidden.
    pub hidden_until: Option<u64>,
    /// How often it has been fetched.
    pub attempts: u32,
    /// Its last lock.
    pub lock: Option<LockSnapshot>,
}

/// A session.
#[derive(Debug, Clone)]
pub struct SessionSnapshot {
    /// Who last leased it.
    pub owner: Option<String>,
    /// When the lease ends; `None` if it has ended.
    pub leased_until: Option<u64>,
    /// When it was last used.
    pub last_activity: Option<u64>,
    /// Queued activities bound to it.
    pub rows: usize,
}

impl MemorySnapshot {
    pub(super) fn of(state: &State, now: u64) -> Self {
        let mut snapshot = Self { taken_at_ms: now, ..Self::default() };
        for (id, instance) in state.instances.all() {
            snapshot.instances.insert(id.to_string(), of_instance(instance));
        }
        for (id, mailbox) in state.messages.mailboxes() {
            snapshot.orchestrator_queue.extend(of_mailbox(id, mailbox));
            if let Some(lock) = &mailbox.lock {
                let (token, held_until) = (lock.token.clone(), lock.held_until);
                snapshot.instance_locks.insert(id.to_string(), LockSnapshot { token, held_until });
            }
        }
        snapshot.orchestrator_queue.sort_by_key(|message| message.sequence);
        snapshot.worker_queue = state.work.rows.iter().map(|(s, row)| of_row(*s, row)).collect();
        let sessions = state.work.sessions.all();
        snapshot.sessions = sessions.map(|(id, s)| (id.clone(), of_session(s))).collect();
        snapshot.dead_letters = state.dead_letters.iter().cloned().collect();
        snapshot
    }
}

fn of_instance(instance: &Instance) -> InstanceSnapshot {
    let row = instance.row.as_ref();
    let executions = instance.executions.iter().map(|(number, execution)| {
        let snapshot = ExecutionSnapshot {
            status: execution.status.clone(),
            output: execution.output.clone(),
            pinned_duroxide_version: execution.pin.clone(),
            started_at: execution.started_at,
            completed_at: execution.completed_at,
            history: execution.history.raw().to_vec(),
        };
        (*number, snapshot)
    });
    InstanceSnapshot {
        has_row: row.is_some(),
        name: row.map(|row| row.name.clone()).unwrap_or_default(),
        version: row.map(|row| row.version.clone()).unwrap_or_default(),
        current_execution: row.map_or(0, |row| row.current_execution),
        parent: row.and_then(|row| row.parent.as_deref()).map(str::to_owned),
        custom_status: row.and_then(|row| row.custom_status.clone()),
        custom_status_version: row.map_or(0, |row| row.custom_status_version),
        executions: executions.collect(),
        kv_store: instance.kv.store.clone(),
        kv_delta: instance.kv.delta.clone(),
    }
}

fn of_mailbox<'a>(id: &'a str, mailbox: &'a Mailbox) -> impl Iterator<Item = MessageSnapshot> + 'a {
    let batch = mailbox.lock.as_ref().map_or(&[][..], |lock| &lock.batch);
    let visible = mailbox.visible.iter().map(|(sequence, message)| (*sequence, message));
    let hidden = mailbox.hidden.iter().map(|((_, sequence), message)| (*sequence, message));
    visible.chain(hidden).map(move |(sequence, message)| MessageSnapshot {
        sequence,
        instance: id.to_owned(),
        item: message.item.clone(),
        visible_at: message.visible_at,
        attempts: message.attempts,
        tagged: batch.binary_search(&sequence).is_ok(),
    })
}

fn of_row(sequence: u64, row: &WorkRow) -> WorkSnapshot {
    let (hidden_until, held_until) = match row.phase {
        Phase::Ready => (None, None),
        Phase::Hidden(until) => (Some(until), None),
        Phase::Locked(until) => (None, Some(until)),
    };
    let lock = row.token.clone().map(|token| LockSnapshot { token, held_until });
    let (item, attempts) = (row.item.clone(), row.attempts);
    WorkSnapshot { sequence, item, hidden_until, attempts, lock }
}

fn of_session(session: &Session) -> SessionSnapshot {
    let lease = session.lease.as_ref();
    SessionSnapshot {
        owner: lease.map(|lease| lease.owner.clone()),
        leased_until: lease.filter(|lease| !lease.lapsed).map(|lease| lease.until),
        last_activity: lease.map(|lease| lease.last_activity),
        rows: session.rows,
    }
}
