//! What history alone tells about waits and dequeues: which are open, which messages are unread.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::model::{Event, EventKind};

/// Positional waits and dequeues that are neither resolved nor cancelled, in order (R3.105).
pub(super) fn outstanding<'a>(history: impl Iterator<Item = &'a Event>) -> (Vec<u64>, Vec<u64>) {
    let mut waits = OpenByName::default();
    let mut dequeues = OpenByName::default();
    let mut messages: Vec<&str> = Vec::new();
    for event in history {
        match &event.kind {
            EventKind::ExternalSubscribed { name } => waits.open(name, event.event_id),
            EventKind::ExternalEvent { name, .. } => waits.resolve_oldest(name),
            EventKind::QueueSubscribed { name } => dequeues.open(name, event.event_id),
            EventKind::QueueEventDelivered { name, .. } => messages.push(name),
            EventKind::ExternalSubscribedCancelled { .. } => waits.cancel(event.source_event_id),
            EventKind::QueueSubscriptionCancelled { .. } => dequeues.cancel(event.source_event_id),
            _ => {}
        }
    }
    // Dequeues are matched by count, wherever in history their messages stand.
    messages.into_iter().for_each(|name| dequeues.resolve_oldest(name));
    (waits.into_open(), dequeues.into_open())
}

/// Open subscriptions, oldest first under each name.
#[derive(Default)]
struct OpenByName<'a> {
    open: HashMap<&'a str, VecDeque<u64>>,
    cancelled: HashSet<u64>,
}

impl<'a> OpenByName<'a> {
    fn open(&mut self, name: &'a str, event_id: u64) {
        self.open.entry(name).or_default().push_back(event_id);
    }

    fn cancel(&mut self, event_id: Option<u64>) {
        self.cancelled.extend(event_id);
    }

    fn resolve_oldest(&mut self, name: &str) {
        let Some(open) = self.open.get_mut(name) else { return };
        while let Some(oldest) = open.pop_front() {
            if !self.cancelled.contains(&oldest) {
                break;
            }
        }
    }

    fn into_open(self) -> Vec<u64> {
        let open = self.open.into_values().flatten();
        let mut ids: Vec<u64> = open.filter(|id| !self.cancelled.contains(id)).collect();
        ids.sort_unstable();
        ids
    }
}

/// Unread messages under the old race policy: per queue, as many of the oldest as there are live
/// dequeues count as read (R3.113).
pub(super) fn unread_by_count<'a>(
    history: impl Iterator<Item = &'a Event> + Clone,
) -> Vec<(String, String)> {
    let cancelled: HashSet<u64> = history
        .clone()
        .filter(|event| matches!(event.kind, EventKind::QueueSubscriptionCancelled { .. }))
        .filter_map(|event| event.source_event_id)
        .collect();
    let mut read: HashMap<&str, usize> = HashMap::new();
    let mut arrived: VecDeque<(&str, &str)> = VecDeque::new();
    for event in history {
        match &event.kind {
            EventKind::QueueSubscribed { name } if !cancelled.contains(&event.event_id) => {
                *read.entry(name).or_default() += 1;
            }
            EventKind::QueueEventDelivered { name, data } => arrived.push_back((name, data)),
            _ => {}
        }
    }
    arrived.retain(|(name, _)| match read.get_mut(name) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        _ => true,
    });
    arrived.into_iter().map(|(name, data)| (name.to_owned(), data.to_owned())).collect()
}
