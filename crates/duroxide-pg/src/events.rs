//! Events as rows, and what they mean for other tables.

use std::collections::{BTreeMap, BTreeSet};

use duroxide_core::model::{Event, EventKind};
use duroxide_core::provider::Refusal;
use tokio_postgres::Row;

use crate::numbers::{id_in, id_out, ms_in, ms_out};
use crate::text::{pack, unpack};

/// Events about to be stored, and what they mean for other tables.
#[derive(Debug)]
pub(crate) struct Delta<'a> {
    pub(crate) events: Vec<EventDraft>,
    pub(crate) started: Option<u64>,
    pub(crate) outcome: Option<u64>,
    pub(crate) custom_status: Option<Option<&'a str>>,
    /// All keys were cleared, before the changes in `kv`.
    pub(crate) cleared: bool,
    /// The last word on each key: value and time, or nothing if it was cleared (R8.112).
    pub(crate) kv: BTreeMap<&'a str, Option<(&'a str, u64)>>,
}

impl<'a> Delta<'a> {
    /// Serialises events. Ids have to be assigned and different (R8.61, R8.62).
    pub(crate) fn of(execution_id: u64, events: &'a [Event]) -> Result<Self, Refusal> {
        let mut delta = Self {
            events: Vec::with_capacity(events.len()),
            started: None,
            outcome: None,
            custom_status: None,
            cleared: false,
            kv: BTreeMap::new(),
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
            delta.note(event_id, &event.kind);
            let body = serde_json::to_string(&event.kind);
            delta.events.push(EventDraft {
                id: id_in(event_id),
                source: event.source_event_id.map(id_in),
                at: ms_in(event.timestamp_ms),
                stamp: pack(&event.duroxide_version).into_owned(),
                body: body.map_err(|why| Refusal::UnreadableHistory(why.to_string()))?,
            });
        }
        Ok(delta)
    }

    fn note(&mut self, event_id: u64, kind: &'a EventKind) {
        match kind {
            EventKind::OrchestrationStarted { .. } => self.started = Some(event_id),
            EventKind::OrchestrationCompleted { .. } | EventKind::OrchestrationFailed { .. } => {
                self.outcome = self.outcome.max(Some(event_id));
            }
            EventKind::CustomStatusUpdated { status } => {
                self.custom_status = Some(status.as_deref())
            }
            EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
                self.kv.insert(key, Some((value, *last_updated_at_ms)));
            }
            EventKind::KeyValueCleared { key } => {
                self.kv.insert(key, None);
            }
            EventKind::KeyValuesCleared => {
                self.cleared = true;
                self.kv.values_mut().for_each(|change| *change = None);
            }
            _ => {}
        }
    }
}

/// An event as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct EventRow {
    pub(crate) event: u64,
    source: Option<u64>,
    at: u64,
    stamp: String,
    pub(crate) body: String,
}

impl EventRow {
    /// Reads columns event, source, at, stamp, body, from the given one on.
    pub(crate) fn read(row: &Row, first: usize) -> Self {
        Self {
            event: id_out(row.get(first)),
            source: row.get::<_, Option<i64>>(first + 1).map(id_out),
            at: ms_out(row.get(first + 2)),
            stamp: unpack(row.get(first + 3)),
            body: row.get(first + 4),
        }
    }

    /// The event again; an error text that names it if it makes no sense.
    pub(crate) fn into_event(self, instance: &str, execution: u64) -> Result<Event, String> {
        let kind: EventKind = serde_json::from_str(&self.body).map_err(|error| {
            format!("event {} of execution {execution} of {instance}: {error}", self.event)
        })?;
        Ok(Event {
            event_id: self.event,
            source_event_id: self.source,
            instance_id: instance.to_owned(),
            execution_id: execution,
            timestamp_ms: self.at,
            duroxide_version: self.stamp,
            kind,
        })
    }
}

/// All events of a history, or what is wrong with it.
pub(crate) fn decode(
    rows: impl Iterator<Item = EventRow>,
    instance: &str,
    execution: u64,
) -> Result<Vec<Event>, Refusal> {
    let events = rows.map(|row| row.into_event(instance, execution));
    events.collect::<Result<_, _>>().map_err(Refusal::UnreadableHistory)
}

/// An event about to be stored.
#[derive(Debug)]
pub(crate) struct EventDraft {
    id: i64,
    source: Option<i64>,
    at: i64,
    stamp: String,
    body: String,
}

/// Columns of events, as arrays.
pub(crate) struct EventColumns<'a> {
    pub(crate) ids: Vec<i64>,
    pub(crate) sources: Vec<Option<i64>>,
    pub(crate) times: Vec<i64>,
    pub(crate) stamps: Vec<&'a str>,
    pub(crate) bodies: Vec<&'a str>,
}

impl EventDraft {
    /// About how many bytes it has.
    pub(crate) fn weight(&self) -> usize {
        self.body.len() + self.stamp.len()
    }
}

impl<'a> EventColumns<'a> {
    /// The events of many turns, one after the other.
    pub(crate) fn of(events: impl Iterator<Item = &'a EventDraft> + Clone) -> Self {
        Self {
            ids: events.clone().map(|event| event.id).collect(),
            sources: events.clone().map(|event| event.source).collect(),
            times: events.clone().map(|event| event.at).collect(),
            stamps: events.clone().map(|event| event.stamp.as_str()).collect(),
            bodies: events.map(|event| event.body.as_str()).collect(),
        }
    }
}
