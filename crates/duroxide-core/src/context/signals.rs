//! Positional waits (§3.7): the n-th live wait of a name gets the n-th delivered signal of it.

use std::collections::HashMap;

use crate::id_map::IdMap;

#[derive(Default)]
pub(crate) struct Signals {
    channels: HashMap<String, Channel>,
    /// Wait event id -> (name, raw index).
    waits: IdMap<(String, usize)>,
    #[cfg(feature = "replay-version-test")]
    topics: topics::Topics,
}

#[derive(Default)]
struct Channel {
    /// Waits registered so far, by raw index: their event ids.
    registered: Vec<u64>,
    /// Raw indexes of cancelled waits, ascending.
    cancelled: Vec<usize>,
    /// Signals that found an open slot, in order.
    delivered: Vec<String>,
}

impl Signals {
    /// Gives a wait the next raw index of its name (R3.81).
    pub(crate) fn subscribe(&mut self, event_id: u64, name: &str) {
        let channel = self.channels.entry(name.to_owned()).or_default();
        self.waits.insert(event_id, (name.to_owned(), channel.registered.len()));
        channel.registered.push(event_id);
    }

    /// Delivers a signal if a slot is open for it; early ones are not kept (R3.57). Its wait.
    pub(crate) fn deliver(&mut self, name: &str, data: &str) -> Option<u64> {
        let channel = self.channels.get_mut(name)?;
        let wait = channel.wait_at(channel.delivered.len())?;
        channel.delivered.push(data.to_owned());
        Some(wait)
    }

    /// The signal in a wait's slot (R3.82).
    pub(crate) fn take(&self, event_id: u64) -> Option<String> {
        let (name, raw) = self.waits.get(event_id)?;
        let channel = self.channels.get(name)?;
        channel.delivered.get(channel.slot_of(*raw)?).cloned()
    }

    /// Marks a wait cancelled, as its breadcrumb says (R3.59).
    pub(crate) fn cancel(&mut self, event_id: u64) {
        if let Some((channel, raw)) = self.channel_of(event_id) {
            channel.cancel(raw);
        }
    }

    /// A live wait was dropped: its slot goes, and a signal already in it goes with it, so that it
    /// is not shifted to another wait (R3.85).
    pub(crate) fn give_up(&mut self, event_id: u64) {
        let Some((channel, raw)) = self.channel_of(event_id) else { return };
        if let Some(slot) = channel.slot_of(raw)
            && slot < channel.delivered.len()
        {
            channel.delivered.remove(slot);
        }
        channel.cancel(raw);
    }

    fn channel_of(&mut self, event_id: u64) -> Option<(&mut Channel, usize)> {
        let (name, raw) = self.waits.get(event_id)?;
        Some((self.channels.get_mut(name)?, *raw))
    }
}

impl Channel {
    /// Index of a live wait among the delivered signals; `None` once cancelled.
    fn slot_of(&self, raw: usize) -> Option<usize> {
        match self.cancelled.binary_search(&raw) {
            Ok(_) => None,
            Err(cancelled_before) => Some(raw - cancelled_before),
        }
    }

    /// The live wait at a slot.
    fn wait_at(&self, slot: usize) -> Option<u64> {
        // As many are cancelled before it as stand no further back than the slot, not counting
        // themselves.
        let (mut low, mut high) = (0, self.cancelled.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.cancelled[middle] - middle <= slot { low = middle + 1 } else { high = middle }
        }
        self.registered.get(slot + low).copied()
    }

    fn cancel(&mut self, raw: usize) {
        if let Err(place) = self.cancelled.binary_search(&raw) {
            self.cancelled.insert(place, raw);
        }
    }
}

/// Second-generation waits (R2.60): matched by name and topic, by raw index only.
#[cfg(feature = "replay-version-test")]
mod topics {
    use std::collections::HashMap;

    type Address = (String, String);

    #[derive(Default)]
    pub(super) struct Topics {
        waits: HashMap<u64, (Address, usize)>,
        registered: HashMap<Address, usize>,
        delivered: HashMap<Address, Vec<String>>,
    }

    impl super::Signals {
        pub(crate) fn subscribe_topic(&mut self, event_id: u64, name: &str, topic: &str) {
            let address = (name.to_owned(), topic.to_owned());
            let raw = self.topics.registered.entry(address.clone()).or_default();
            self.topics.waits.insert(event_id, (address, *raw));
            *raw += 1;
        }

        /// The wait it is for, if there is one already.
        pub(crate) fn deliver_topic(&mut self, name: &str, topic: &str, data: &str) -> Option<u64> {
            let address = (name.to_owned(), topic.to_owned());
            let delivered = self.topics.delivered.entry(address.clone()).or_default();
            let place = (address, delivered.len());
            delivered.push(data.to_owned());
            self.topics.waits.iter().find(|(_, wait)| **wait == place).map(|(id, _)| *id)
        }

        pub(crate) fn take_topic(&self, event_id: u64) -> Option<String> {
            let (address, raw) = self.topics.waits.get(&event_id)?;
            self.topics.delivered.get(address)?.get(*raw).cloned()
        }
    }
}
