//! Turns: fetched, given back, held for longer. (How they are committed: `commit.rs`.)

use std::time::Duration;

use semver::Version;

use duroxide_core::model::{EventKind, INITIAL_EXECUTION_ID, WorkItem};

use super::instances::{Id, Instance};
use super::mailbox::Standing;
use super::millis;
use super::state::State;
use crate::providers::Refusal;
use crate::providers::{DispatcherCapabilityFilter, FetchedTurn, OrchestrationItem, SemverRange};

/// Handler version of an instance that never said (R8.24, R8.25).
const UNKNOWN_VERSION: &str = "unknown";

/// What a fetch asks for.
#[derive(Debug, Clone)]
pub(super) struct TurnWants {
    pub(super) lock_ms: u64,
    /// Pins it can replay; `None` is all (R8.90).
    pub(super) pins: Option<SemverRange>,
    pub(super) with_history: bool,
    /// If it is to be handed out together with others: how many bytes there is room for (R8.147);
    /// and then nothing that comes alone (R8.146).
    pub(super) room: Option<usize>,
}

/// A locked turn.
#[derive(Debug)]
pub(super) struct TakenTurn {
    pub(super) turn: FetchedTurn,
    /// Of its messages.
    pub(super) bytes: usize,
    /// Whether it comes alone (R8.146).
    pub(super) is_tried: bool,
}

impl TurnWants {
    /// `None` if the filter lets nothing through.
    pub(super) fn of(
        lock_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
        with_history: bool,
    ) -> Option<Self> {
        // R8.90: the first range counts.
        let pins = match filter {
            Some(filter) => Some(filter.supported_duroxide_versions.first()?.clone()),
            None => None,
        };
        Some(Self { lock_ms: millis(lock_timeout), pins, with_history, room: None })
    }
}

impl TurnWants {
    /// Whether it can replay an execution with this pin. No pin suits everybody (R7.84).
    pub(super) fn accepts(&self, pin: Option<&Version>) -> bool {
        match (&self.pins, pin) {
            (Some(range), Some(pin)) => range.contains(pin),
            _ => true,
        }
    }
}

impl State {
    /// Locks the next runnable instance and its visible messages (R8.20, R8.21).
    pub(super) fn take_turn(
        &mut self,
        wants: &TurnWants,
        new_token: impl FnOnce() -> String,
        now: u64,
    ) -> Option<(Id, TakenTurn)> {
        self.bury_undeliverable(now);
        self.move_turns_behind(now);
        let id = self.messages.oldest_runnable(|pin| wants.accepts(pin))?;
        let is_known = self.standing(&id) != Standing::Unknown;
        let batch = self.messages.next_batch(&id, is_known);
        if wants.room.is_some_and(|room| batch.is_tried || room < batch.bytes) {
            return None;
        }
        let (bytes, is_tried) = (batch.bytes, batch.is_tried);
        let lock_token = new_token();
        let until = now.saturating_add(wants.lock_ms);
        let (messages, attempt_count) = self.messages.lock(&id, batch, &lock_token, until);
        self.settle(&id, now);

        let instance = self.instances.get(&id);
        let item = describe(&id, instance, messages, wants.with_history);
        let (last_event_id, last_event_at_ms) = instance
            .and_then(|instance| instance.executions.get(&item.execution_id))
            .map_or((0, 0), |execution| execution.history.end());
        let batch = self.messages.mailbox(&id).and_then(|mailbox| mailbox.lock.as_ref());
        let first = batch.and_then(|lock| lock.batch.first()).copied().unwrap_or(0);
        let lived = instance.map_or(0, |instance| instance.incarnation);
        let turn = FetchedTurn {
            item,
            lock_token,
            attempt_count,
            last_event_id,
            last_event_at_ms,
            incarnation: if lived == 0 { first } else { lived },
            history_included: wants.with_history || last_event_id == 0,
        };
        Some((id, TakenTurn { turn, bytes, is_tried }))
    }

    /// Moves the instances whose locks ran out behind all others (R8.146).
    fn move_turns_behind(&mut self, now: u64) {
        for id in self.messages.take_ran_out() {
            self.messages.move_behind(&id);
            self.settle(&id, now);
        }
    }

    /// Gives a turn back (R8.65 – R8.67).
    pub(super) fn abandon_turn(
        &mut self,
        token: &str,
        delay_ms: Option<u64>,
        uncount: bool,
        now: u64,
    ) -> Result<(), Refusal> {
        let id = self.messages.owner(token)?;
        let hide_until = delay_ms.map(|delay| now.saturating_add(delay));
        self.messages.abandon(&id, hide_until, uncount, now);
        self.settle(&id, now);
        Ok(())
    }

    /// Holds a turn's lock for longer (R8.68).
    pub(super) fn renew_turn(
        &mut self,
        token: &str,
        extend_ms: u64,
        now: u64,
    ) -> Result<(), Refusal> {
        let id = self.messages.holder(token)?;
        self.messages.renew(&id, now.saturating_add(extend_ms));
        self.settle(&id, now);
        Ok(())
    }
}

/// The item of a locked instance (R8.24 – R8.26, R8.31).
fn describe(
    id: &Id,
    instance: Option<&Instance>,
    messages: Vec<WorkItem>,
    with_history: bool,
) -> OrchestrationItem {
    let identity = instance.and_then(Identity::of_instance);
    let identity = identity.or_else(|| messages.iter().find_map(Identity::of_start));
    let identity = identity.unwrap_or_else(Identity::unknown);
    let execution = instance.and_then(|i| i.executions.get(&identity.execution_id));

    let mut item = OrchestrationItem {
        instance: id.to_string(),
        orchestration_name: identity.name,
        execution_id: identity.execution_id,
        version: identity.version,
        history: Vec::new(),
        messages,
        history_error: execution.and_then(|e| e.history.damage()).map(str::to_owned),
        kv_snapshot: Default::default(),
    };
    if item.history_error.is_none() {
        item.kv_snapshot = instance.map(|i| i.kv.snapshot()).unwrap_or_default();
        if let Some(execution) = execution.filter(|_| with_history) {
            item.history = execution.history.raw().to_vec();
        }
    }
    item
}

/// Who an instance is.
struct Identity {
    name: String,
    version: String,
    execution_id: u64,
}

impl Identity {
    /// By its row (R8.24), else by its start event (R8.25).
    fn of_instance(instance: &Instance) -> Option<Self> {
        if let Some(row) = &instance.row {
            return Some(Self {
                name: row.name.clone(),
                version: row.version.clone(),
                execution_id: row.current_execution,
            });
        }
        let (execution_id, execution) = instance.newest()?;
        match &execution.history.start()?.kind {
            EventKind::OrchestrationStarted { name, version, .. } => {
                Some(Self { name: name.clone(), version: version.clone(), execution_id })
            }
            _ => None,
        }
    }

    /// By the message that starts it (R8.25).
    fn of_start(item: &WorkItem) -> Option<Self> {
        match item {
            WorkItem::StartOrchestration { orchestration, version, .. }
            | WorkItem::ContinueAsNew { orchestration, version, .. } => Some(Self {
                name: orchestration.clone(),
                version: version.clone().unwrap_or_else(|| UNKNOWN_VERSION.to_owned()),
                execution_id: INITIAL_EXECUTION_ID,
            }),
            _ => None,
        }
    }

    fn unknown() -> Self {
        Self {
            name: UNKNOWN_VERSION.to_owned(),
            version: UNKNOWN_VERSION.to_owned(),
            execution_id: INITIAL_EXECUTION_ID,
        }
    }
}
