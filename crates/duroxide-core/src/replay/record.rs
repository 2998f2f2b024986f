//! Numbers and stamps the events of one turn; every event of a turn shares its time.

use crate::model::version::BUILD_VERSION;
use crate::model::{Event, EventKind, INITIAL_EVENT_ID};

pub(super) struct Recorder {
    pub(super) instance: String,
    pub(super) execution_id: u64,
    pub(super) now_ms: u64,
    next_id: u64,
    events: Vec<Event>,
}

impl Recorder {
    /// Continues after the last event of `baseline` (R2.11).
    pub(super) fn after(
        instance: String,
        execution_id: u64,
        baseline: &[Event],
        now_ms: u64,
    ) -> Self {
        let next_id =
            baseline.last().map_or(INITIAL_EVENT_ID, |event| event.event_id.saturating_add(1));
        Self { instance, execution_id, now_ms, next_id, events: Vec::new() }
    }

    /// The id that [`record`](Self::record) would give next.
    pub(super) fn upcoming_id(&self) -> u64 {
        self.next_id
    }

    pub(super) fn record(&mut self, source_event_id: Option<u64>, kind: EventKind) -> &Event {
        let event = stamped(self, source_event_id, kind);
        self.next_id = self.next_id.saturating_add(1);
        self.events.push(event);
        &self.events[self.events.len() - 1]
    }

    pub(super) fn events(&self) -> &[Event] {
        &self.events
    }

    /// The events so far; ids go on after them.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

fn stamped(recorder: &Recorder, source_event_id: Option<u64>, kind: EventKind) -> Event {
    Event {
        event_id: recorder.next_id,
        source_event_id,
        instance_id: recorder.instance.clone(),
        execution_id: recorder.execution_id,
        timestamp_ms: recorder.now_ms,
        duroxide_version: BUILD_VERSION.to_owned(),
        kind,
    }
}
