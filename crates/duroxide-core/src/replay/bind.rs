//! Emitted action against recorded event: the one place that finds out that code and history have
//! parted (R3.44 – R3.51).

use super::divergence::Divergence;
use super::execution::Execution;
use super::index::Class;
use crate::context::Emitted;
use crate::model::{Action, Event, EventKind, is_auto_generated_sub_orch_id};

impl Execution {
    /// Matches a schedule event to the oldest unmatched action and opens it (R3.48).
    pub(super) fn bind_schedule(
        &mut self,
        event: &Event,
        class: Class,
    ) -> Result<(), Box<Divergence>> {
        let emitted = self.expect_action(event, "history schedule but no emitted action")?;
        self.require_match("schedule mismatch", emitted, event)?;
        self.open(event, class);
        Ok(())
    }

    /// Matches a recorded detached start.
    pub(super) fn bind_chained(&mut self, event: &Event) -> Result<(), Box<Divergence>> {
        let emitted =
            self.expect_action(event, "history OrchestrationChained but no emitted action")?;
        self.require_match("schedule mismatch", emitted, event)
    }

    /// Matches a status or key-value event if an action is waiting; else it is accepted, so that
    /// code may stop publishing (R3.50).
    pub(super) fn bind_note(&mut self, event: &Event, label: &str) -> Result<(), Box<Divergence>> {
        match self.emitted.pop_front() {
            Some(emitted) => self.require_match(label, emitted, event),
            None => {
                if let EventKind::KeyValueSet { key, .. } = &event.kind {
                    self.ctx.state().kv.forget_stamp(key);
                }
                Ok(())
            }
        }
    }

    /// Matches a cleared key within the run of clears at the front: prunes may have been recorded in
    /// another key order (R3.51).
    pub(super) fn bind_cleared(&mut self, event: &Event, key: &str) -> Result<(), Box<Divergence>> {
        let same_key = self
            .emitted
            .iter()
            .map_while(|emitted| match &emitted.action {
                Action::ClearKeyValue { key } => Some(key),
                _ => None,
            })
            .position(|cleared| cleared == key);
        // Brought to the front, it is the action that waits.
        if let Some(emitted) = same_key.and_then(|place| self.emitted.remove(place)) {
            self.emitted.push_front(emitted);
        }
        self.bind_note(event, "kv clear mismatch")
    }

    /// Registers a schedule whose token is bound.
    pub(super) fn open(&mut self, event: &Event, class: Class) {
        match &event.kind {
            EventKind::ExternalSubscribed { name } => {
                self.ctx.state().bind_wait(event.event_id, name);
            }
            EventKind::QueueSubscribed { name } => {
                // The message a dequeue asks for may be there already (R3.49).
                let waker = self.ctx.state().bind_dequeue(event.event_id, name);
                self.wake(waker);
            }
            _ => {}
        }
        self.open.insert(event.event_id, class);
        self.open_work += usize::from(class.is_work());
    }

    fn expect_action(&mut self, event: &Event, missing: &str) -> Result<Emitted, Box<Divergence>> {
        self.emitted.pop_front().ok_or_else(|| Divergence::new(missing).at(event))
    }

    fn require_match(
        &mut self,
        label: &str,
        emitted: Emitted,
        event: &Event,
    ) -> Result<(), Box<Divergence>> {
        if !matches(&emitted.action, &event.kind, self.rules.strict) {
            let text = format!("{label}: action={:?} vs event={:?}", emitted.action, event.kind);
            return Err(Divergence::new(text).at(event).by(&emitted));
        }
        self.matched.push((event.event_id, emitted.location));
        self.ctx.state().bind(emitted.token, event.event_id);
        Ok(())
    }
}

/// What is compared, and by its absence what is not (R3.47).
fn matches(action: &Action, kind: &EventKind, strict: bool) -> bool {
    match (action, kind) {
        (
            Action::CallActivity { name, input, session_id, tag, .. },
            EventKind::ActivityScheduled { name: n, input: i, session_id: s, tag: t },
        ) => name == n && input == i && session_id == s && tag == t,
        (Action::CreateTimer { .. }, EventKind::TimerCreated { .. })
        | (Action::UpdateCustomStatus { .. }, EventKind::CustomStatusUpdated { .. })
        | (Action::ClearKeyValues, EventKind::KeyValuesCleared) => true,
        (Action::WaitExternal { name, .. }, EventKind::ExternalSubscribed { name: n })
        | (Action::DequeueEvent { name, .. }, EventKind::QueueSubscribed { name: n }) => name == n,
        #[cfg(feature = "replay-version-test")]
        (
            Action::WaitExternal2 { name, topic, .. },
            EventKind::ExternalSubscribed2 { name: n, topic: t },
        ) => name == n && topic == t,
        (
            Action::StartSubOrchestration { name, input, instance, .. },
            EventKind::SubOrchestrationScheduled { name: n, input: i, instance: recorded },
        ) => name == n && input == i && (!strict || same_child(instance, recorded)),
        (
            Action::StartOrchestrationDetached { name, instance, input, .. },
            EventKind::OrchestrationChained { name: n, instance: i, input: p },
        ) => name == n && instance == i && input == p,
        (
            Action::SetKeyValue { key, value, .. },
            EventKind::KeyValueSet { key: k, value: v, .. },
        ) => key == k && value == v,
        (Action::ClearKeyValue { key }, EventKind::KeyValueCleared { key: k }) => key == k,
        _ => false,
    }
}

/// Automatic ids are placeholders until they are recorded; chosen ones must be the same (L22).
fn same_child(asked: &str, recorded: &str) -> bool {
    asked == recorded
        || is_auto_generated_sub_orch_id(asked) && is_auto_generated_sub_orch_id(recorded)
}
