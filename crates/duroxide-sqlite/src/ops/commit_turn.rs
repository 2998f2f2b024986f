//! The commit of a turn (R8.40 – R8.62): everything is checked first, then everything happens.

use std::collections::BTreeSet;
use std::sync::Arc;

use duroxide_core::model::{Event, EventKind};
use duroxide_core::provider::{
    ExecutionMetadata, Refusal, ScheduledActivityIdentifier, TurnCommit,
};

use super::Op;
use super::enqueue::{MessageDraft, WorkDraft};
use crate::error::OpError;
use crate::long_text::{LongText, LongTexts};
use crate::mailbox;
use crate::tables::executions::{self, Execution, RUNNING};
use crate::tables::history::{self, EventRow};
use crate::tables::instances::{self, Identity, Instance};
use crate::tables::kv::{self, Change};
use crate::tables::long_texts::{self, TextReference};
use crate::tables::mailboxes::{self, Mailbox};
use crate::tables::{Sql, custom_status, messages, work};
use crate::token::{self, Secret};
use crate::tx::Tx;

/// The commit of a locked turn, serialised.
#[derive(Debug)]
pub(crate) struct CommitTurn {
    key: i64,
    secret: Secret,
    turns: Turns,
}

/// A turn, or several that follow one another (R8.140), serialised; or why they are refused, no matter
/// with which lock they are committed.
#[derive(Debug)]
pub(super) struct Turns(Result<Vec<TurnDraft>, Refusal>);

/// What one turn changes.
#[derive(Debug)]
pub(super) struct TurnDraft {
    pub(super) execution: u64,
    events: Delta,
    work: Vec<WorkDraft>,
    /// Messages with the time they become visible, if that is not now.
    messages: Vec<(MessageDraft, Option<u64>)>,
    metadata: ExecutionMetadata,
    /// The output, if it is long: then it is not there.
    long_output: Option<Arc<LongText>>,
    cancelled: Vec<ScheduledActivityIdentifier>,
}

impl CommitTurn {
    /// Serialises a commit; whatever can be refused without looking at the store will be.
    pub(crate) fn of(token: &str, commit: &TurnCommit) -> Result<Self, Refusal> {
        let (key, secret) = token::read_turn(token)?;
        Ok(Self { key, secret, turns: Turns::of(commit)? })
    }
}

impl Op for CommitTurn {
    type Output = ();

    fn apply(&self, tx: &mut Tx<'_>) -> Result<(), OpError> {
        let mailbox = check_lock(tx, self.key, &self.secret)?;
        let turns = self.turns.check(tx, self.key)?;
        let instance = instances::by_key(tx.connection, self.key)?;
        let instance = instance.ok_or(Refusal::UnknownToken)?;
        messages::delete_taken(tx.connection, self.key, mailbox.batch)?; // R8.42
        Ok(record_all(tx, instance, turns, mailbox::unlock_used)?) // R8.54
    }
}

impl Turns {
    pub(super) fn of(commit: &TurnCommit) -> Result<Self, Refusal> {
        let mut longs = LongTexts::default();
        let turns = commit.turns()?.into_iter().map(|turn| TurnDraft::of(turn, &mut longs));
        Ok(Self(turns.collect()))
    }

    /// The turns, if the instance can have them.
    pub(super) fn check(&self, tx: &Tx<'_>, key: i64) -> Result<&[TurnDraft], OpError> {
        let turns = self.0.as_ref().map_err(Refusal::clone)?;
        for turn in turns {
            turn.events.check(tx, key, turn.execution)?;
        }
        Ok(turns)
    }
}

/// Writes turns down. The mailbox is opened before they send messages, which may be for themselves.
pub(super) fn record_all(
    tx: &mut Tx<'_>,
    mut instance: Instance,
    turns: &[TurnDraft],
    open: impl FnOnce(&mut Tx<'_>, &Instance) -> Sql<()>,
) -> Sql<()> {
    for turn in turns {
        turn.record(tx, &mut instance)?;
    }
    open(tx, &instance)?;
    for turn in turns {
        turn.record_messages(tx, &instance)?;
    }
    if turns.iter().all(|turn| turn.events.rows.is_empty()) {
        // No event took up the messages: their texts go with them.
        long_texts::sweep(tx.connection, instance.key)?;
    }
    if turns.iter().any(TurnDraft::can_be_waited_for) {
        tx.effects.committed.push(instance.id);
    }
    Ok(())
}

impl TurnDraft {
    fn of(commit: &TurnCommit, longs: &mut LongTexts) -> Result<Self, Refusal> {
        let events = Delta::of(commit.execution_id, &commit.history_delta, longs)?;
        let work = commit.worker_items.iter().map(|item| WorkDraft::of(item, longs));
        let work = work.collect::<Result<_, _>>()?;
        let mut metadata = commit.metadata.clone();
        let long_output = longs.take(&mut metadata.output);
        let message = |item| Ok((MessageDraft::of(item, longs)?, commit.due_at(item)));
        Ok(Self {
            execution: commit.execution_id,
            events,
            work,
            messages: commit.orchestrator_items.iter().map(message).collect::<Result<_, _>>()?,
            metadata,
            long_output,
            cancelled: commit.cancelled_activities.clone(),
        })
    }

    /// Everything but its messages.
    fn record(&self, tx: &mut Tx<'_>, instance: &mut Instance) -> Sql<()> {
        let pin = self.record_execution(tx, instance.key)?;
        self.record_instance(tx, instance, pin)?; // R8.43, R8.44, R8.47
        self.record_kv(tx, instance.key)?; // R8.51
        self.events.append(tx, instance.key, self.execution)?; // R8.48
        if let (Some(status), Some(_)) = (&self.events.custom_status, &instance.identity) {
            custom_status::set(tx.connection, instance.key, status.as_deref())?; // R8.50
        }
        self.record_work(tx, instance)
    }

    fn can_be_waited_for(&self) -> bool {
        self.metadata.status.is_some() || self.events.can_be_waited_for()
    }

    /// The row: made when name and version are there, otherwise only kept up to date.
    fn record_instance(&self, tx: &mut Tx<'_>, instance: &mut Instance, pin: i64) -> Sql<()> {
        let named = self
            .metadata
            .orchestration_name
            .as_ref()
            .zip(self.metadata.orchestration_version.as_ref());
        let is_current = match &instance.identity {
            Some(identity) => identity.execution <= self.execution,
            None => true,
        };
        if is_current {
            instance.pin = pin;
        }
        match (&mut instance.identity, named) {
            (Some(identity), named) => {
                if let Some((name, version)) = named {
                    identity.name.clone_from(name);
                    identity.version.clone_from(version);
                }
                identity.execution = identity.execution.max(self.execution);
                identity.updated_at = tx.now;
                instances::update(tx.connection, instance.key, identity, instance.pin)
            }
            (None, Some((name, version))) => {
                let identity = Identity {
                    name: name.clone(),
                    version: version.clone(),
                    execution: self.execution,
                    parent: self.metadata.parent_instance_id.clone(),
                    created_at: tx.now,
                    updated_at: tx.now,
                };
                instances::create(tx.connection, instance.key, &identity, instance.pin)?;
                instance.identity = Some(identity);
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    /// The execution with its pin and its end (R8.45, R8.46, R8.49).
    fn record_execution(&self, tx: &mut Tx<'_>, key: i64) -> Sql<i64> {
        let stored = executions::get(tx.connection, key, self.execution)?;
        let mut execution = stored.unwrap_or_else(|| Execution::new(self.execution, tx.now));
        if let Some(version) = &self.metadata.pinned_duroxide_version {
            execution.pin = tx.pin(version)?;
        }
        self.events.note(&mut execution);
        if let Some(status) = &self.metadata.status {
            execution.completed_at = (status != RUNNING).then_some(tx.now);
            execution.status.clone_from(status);
            execution.output.clone_from(&self.metadata.output);
            execution.long_output = tx.keep(key, self.long_output.as_ref())?.map(TextReference::to);
        }
        executions::put(tx.connection, key, &execution)?;
        Ok(execution.pin)
    }

    fn record_kv(&self, tx: &Tx<'_>, key: i64) -> Sql<()> {
        for change in &self.events.kv {
            kv::apply(tx.connection, key, change)?;
        }
        match self.metadata.status.as_deref() {
            Some("Completed" | "ContinuedAsNew" | "Failed") => kv::merge(tx.connection, key),
            _ => Ok(()),
        }
    }

    /// New activities first, then those to be taken out (R8.52).
    fn record_work(&self, tx: &mut Tx<'_>, own: &Instance) -> Sql<()> {
        for draft in &self.work {
            let key = key_of(tx, own, &draft.instance)?;
            draft.queue(tx, key)?;
        }
        for activity in &self.cancelled {
            let key = match &activity.instance {
                id if *id == own.id => Some(own.key),
                id => instances::by_id(tx.connection, id)?.map(|instance| instance.key),
            };
            if let Some(key) = key {
                let (execution, id) = (activity.execution_id, activity.activity_id);
                work::delete_activity(tx.connection, key, execution, id)?;
            }
        }
        Ok(())
    }

    /// Messages in order; timers when they are due (R8.53).
    fn record_messages(&self, tx: &mut Tx<'_>, own: &Instance) -> Sql<()> {
        for (draft, due) in &self.messages {
            let visible_at = due.unwrap_or(tx.now);
            if draft.instance == own.id {
                draft.post(tx, own, visible_at)?;
            } else {
                let other = draft.addressee(tx)?;
                draft.post(tx, &other, visible_at)?;
            }
        }
        Ok(())
    }
}

/// Events about to be stored, and what they mean for other tables.
#[derive(Debug)]
pub(crate) struct Delta {
    /// Events, and the long texts that they are to refer to.
    rows: Vec<(EventRow, Option<Arc<LongText>>)>,
    started: Option<u64>,
    outcome: Option<u64>,
    custom_status: Option<Option<String>>,
    kv: Vec<Change>,
}

impl Delta {
    /// Serialises events. Ids have to be assigned and different (R8.61, R8.62).
    pub(crate) fn of(
        execution_id: u64,
        events: &[Event],
        longs: &mut LongTexts,
    ) -> Result<Self, Refusal> {
        let mut delta = Self {
            rows: Vec::with_capacity(events.len()),
            started: None,
            outcome: None,
            custom_status: None,
            kv: Vec::new(),
        };
        let mut seen = BTreeSet::new();
        for event in events {
            let event_id = event.event_id;
            if event_id == 0 {
                return Err(Refusal::UnassignedEvent);
            }
            if !seen.insert(event_id) {
                return Err(Refusal::DuplicateEvent { execution_id, event_id });
            }
            delta.note_kind(event_id, &event.kind);
            let row = EventRow::of(event, longs);
            delta.rows.push(row.map_err(|error| Refusal::UnreadableHistory(error.to_string()))?);
        }
        Ok(delta)
    }

    /// Whether none of the ids is taken (R8.62). Appending is the common case and costs one look.
    pub(crate) fn check(&self, tx: &Tx<'_>, key: i64, execution: u64) -> Result<(), OpError> {
        let Some(lowest) = self.rows.iter().map(|(row, _)| row.event).min() else { return Ok(()) };
        if history::end(tx.connection, key, execution)?.0 < lowest {
            return Ok(());
        }
        for (row, _) in &self.rows {
            if history::get(tx.connection, key, execution, row.event)?.is_some() {
                let (execution_id, event_id) = (execution, row.event);
                return Err(Refusal::DuplicateEvent { execution_id, event_id }.into());
            }
        }
        Ok(())
    }

    /// Stores the events.
    pub(crate) fn append(&self, tx: &mut Tx<'_>, key: i64, execution: u64) -> Sql<()> {
        for (row, long) in &self.rows {
            let long_text = tx.keep(key, long.as_ref())?;
            history::insert(tx.connection, key, execution, row, long_text)?;
        }
        Ok(())
    }

    /// What the events say about their execution.
    pub(crate) fn note(&self, execution: &mut Execution) {
        execution.started = self.started.or(execution.started);
        execution.outcome = self.outcome.max(execution.outcome);
    }

    /// Whether they change something that a client can wait for (R8.134).
    fn can_be_waited_for(&self) -> bool {
        self.custom_status.is_some() || !self.kv.is_empty()
    }

    fn note_kind(&mut self, event_id: u64, kind: &EventKind) {
        match kind {
            EventKind::OrchestrationStarted { .. } => self.started = Some(event_id),
            EventKind::OrchestrationCompleted { .. } | EventKind::OrchestrationFailed { .. } => {
                self.outcome = self.outcome.max(Some(event_id));
            }
            EventKind::CustomStatusUpdated { status } => self.custom_status = Some(status.clone()),
            EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
                let (key, value) = (key.clone(), value.clone());
                self.kv.push(Change::Set { key, value, at: *last_updated_at_ms });
            }
            EventKind::KeyValueCleared { key } => self.kv.push(Change::Clear { key: key.clone() }),
            EventKind::KeyValuesCleared => self.kv.push(Change::ClearAll),
            _ => {}
        }
    }
}

/// Whether the instance is locked with this secret, and still is (R8.40, R8.41).
pub(super) fn check_lock(tx: &Tx<'_>, key: i64, secret: &Secret) -> Result<Mailbox, OpError> {
    let mailbox = mailboxes::get(tx.connection, key)?;
    match mailbox.filter(|mailbox| mailbox.token.as_ref() == Some(secret)) {
        None => Err(Refusal::UnknownToken.into()),
        Some(mailbox) if mailbox.is_locked(tx.now) => Ok(mailbox),
        Some(_) => Err(Refusal::LockExpired.into()),
    }
}

fn key_of(tx: &mut Tx<'_>, own: &Instance, id: &str) -> Sql<i64> {
    if id == own.id { Ok(own.key) } else { Ok(tx.instance(id)?.key) }
}
