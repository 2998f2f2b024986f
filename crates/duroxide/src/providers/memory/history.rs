//! The events of one execution, in order of their ids.

use std::collections::BTreeSet;

use crate::providers::Refusal;
use duroxide_core::model::{Event, EventKind};

/// Events by ascending id, with the few positions that are asked for often.
#[derive(Debug, Default)]
pub(super) struct History {
    events: Vec<Event>,
    /// Id of the start event.
    start: Option<u64>,
    /// Id of the last Completed or Failed event, which decides the status (R6.20).
    outcome: Option<u64>,
    /// Why what was stored so far cannot be read (tests only).
    damage: Option<String>,
}

impl History {
    /// Whether these events may be appended to execution `execution_id`: ids are assigned (R8.61)
    /// and unique (R8.60, R8.62).
    pub(super) fn check(&self, execution_id: u64, delta: &[Event]) -> Result<(), Refusal> {
        let mut seen = BTreeSet::new();
        for event in delta {
            let event_id = event.event_id;
            if event_id == 0 {
                return Err(Refusal::UnassignedEvent);
            }
            if !seen.insert(event_id) || self.position(event_id).is_ok() {
                return Err(Refusal::DuplicateEvent { execution_id, event_id });
            }
        }
        Ok(())
    }

    /// Appends checked events; a late low id finds its place.
    pub(super) fn append(&mut self, delta: Vec<Event>) {
        for event in delta {
            match event.kind {
                EventKind::OrchestrationStarted { .. } => self.start = Some(event.event_id),
                EventKind::OrchestrationCompleted { .. }
                | EventKind::OrchestrationFailed { .. } => {
                    self.outcome = self.outcome.max(Some(event.event_id));
                }
                _ => {}
            }
            match self.position(event.event_id) {
                Ok(position) | Err(position) => self.events.insert(position, event),
            }
        }
    }

    /// All events, if they can be read.
    pub(super) fn read(&self) -> Result<&[Event], Refusal> {
        match &self.damage {
            Some(why) => Err(Refusal::UnreadableHistory(why.clone())),
            None => Ok(&self.events),
        }
    }

    /// Events from an id on, at most `limit` (R8.131).
    pub(super) fn read_from(&self, event_id: u64, limit: usize) -> Result<&[Event], Refusal> {
        let events = self.read()?;
        let rest = &events[self.position(event_id).unwrap_or_else(|next| next)..];
        Ok(&rest[..rest.len().min(limit)])
    }

    /// The events as they are, damaged or not: for counting and inspection.
    pub(super) fn raw(&self) -> &[Event] {
        &self.events
    }

    /// Id and time of the last event, zeros if there is none.
    pub(super) fn end(&self) -> (u64, u64) {
        self.events.last().map_or((0, 0), |event| (event.event_id, event.timestamp_ms))
    }

    /// The start event.
    pub(super) fn start(&self) -> Option<&Event> {
        self.event(self.start?)
    }

    /// The last Completed or Failed event.
    pub(super) fn outcome(&self) -> Option<&Event> {
        self.event(self.outcome?)
    }

    /// Why the history cannot be read.
    pub(super) fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// Makes what is stored so far unreadable; later events can still be understood.
    pub(super) fn break_it(&mut self, why: &str) {
        self.damage = Some(why.to_owned());
        self.start = None;
        self.outcome = None;
    }

    fn event(&self, event_id: u64) -> Option<&Event> {
        self.position(event_id).ok().map(|position| &self.events[position])
    }

    /// Where an id is, or where it would go. Appending is the common case and costs one look.
    fn position(&self, event_id: u64) -> Result<usize, usize> {
        if self.end().0 < event_id {
            return Err(self.events.len());
        }
        self.events.binary_search_by_key(&event_id, |event| event.event_id)
    }
}
