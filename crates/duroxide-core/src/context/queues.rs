//! Mailboxes (§3.8): messages wait until a dequeue reads them, each once, in order.

use std::collections::{HashMap, VecDeque};

use crate::id_map::IdMap;

pub(crate) struct Queues {
    mailboxes: HashMap<String, Mailbox>,
    /// Dequeue event id -> (queue, raw index).
    readers: IdMap<(String, usize)>,
    arrivals: u64,
    /// Which of the two rules of [`Mailbox::entitled`] applies.
    exact: bool,
}

#[derive(Default)]
struct Mailbox {
    messages: Vec<Message>,
    /// Indexes of unread messages, ascending.
    unread: VecDeque<usize>,
    /// Dequeues registered so far, by raw index: their event ids.
    registered: Vec<u64>,
    /// Raw indexes of cancelled dequeues, ascending.
    cancelled: Vec<usize>,
    /// Raw indexes of dequeues that are neither resolved nor cancelled, ascending.
    waiting: VecDeque<usize>,
}

struct Message {
    /// Order of arrival over all queues.
    arrival: u64,
    data: String,
    read: bool,
}

impl Queues {
    pub(crate) fn new(exact: bool) -> Self {
        Self { mailboxes: HashMap::new(), readers: IdMap::default(), arrivals: 0, exact }
    }

    /// Registers a dequeue. Whether there is a message for it.
    pub(crate) fn subscribe(&mut self, event_id: u64, name: &str) -> bool {
        let mailbox = self.mailboxes.entry(name.to_owned()).or_default();
        let raw = mailbox.registered.len();
        self.readers.insert(event_id, (name.to_owned(), raw));
        mailbox.registered.push(event_id);
        mailbox.waiting.push_back(raw);
        mailbox.waiting.len() <= mailbox.unread.len()
    }

    /// Messages are kept whether or not a dequeue waits (R3.151). The dequeue that can read it.
    pub(crate) fn deliver(&mut self, name: &str, data: &str) -> Option<u64> {
        let mailbox = self.mailboxes.entry(name.to_owned()).or_default();
        mailbox.unread.push_back(mailbox.messages.len());
        let message = Message { arrival: self.arrivals, data: data.to_owned(), read: false };
        mailbox.messages.push(message);
        self.arrivals += 1;
        mailbox.last_reader()
    }

    /// Reads the message a dequeue is entitled to.
    pub(crate) fn take(&mut self, event_id: u64) -> Option<String> {
        let exact = self.exact;
        let (mailbox, raw) = self.mailbox_of(event_id)?;
        let index = mailbox.entitled(raw, exact)?;
        let message = mailbox.messages.get_mut(index)?;
        message.read = true;
        // The inherited rule may hand a message out twice.
        let data = if exact { std::mem::take(&mut message.data) } else { message.data.clone() };
        remove_sorted(&mut mailbox.unread, index);
        remove_sorted(&mut mailbox.waiting, raw);
        Some(data)
    }

    /// A dequeue is given up; messages stay for the next one (R3.160). A resolved dequeue keeps the
    /// message it has read (R3.156). The dequeue that moves up to a message by that.
    pub(crate) fn cancel(&mut self, event_id: u64) -> Option<u64> {
        let (mailbox, raw) = self.mailbox_of(event_id)?;
        let place = remove_sorted(&mut mailbox.waiting, raw)?;
        if let Err(place) = mailbox.cancelled.binary_search(&raw) {
            mailbox.cancelled.insert(place, raw);
        }
        (place < mailbox.unread.len()).then(|| mailbox.last_reader()).flatten()
    }

    /// Messages that no dequeue has read, in order of arrival (R3.112).
    pub(crate) fn unread(&self) -> Vec<(String, String)> {
        let mut unread: Vec<(u64, &str, &str)> = Vec::new();
        for (name, mailbox) in &self.mailboxes {
            let messages = mailbox.messages.iter().filter(|message| !message.read);
            unread.extend(messages.map(|m| (m.arrival, name.as_str(), m.data.as_str())));
        }
        unread.sort_unstable();
        unread.into_iter().map(|(_, name, data)| (name.to_owned(), data.to_owned())).collect()
    }

    fn mailbox_of(&mut self, event_id: u64) -> Option<(&mut Mailbox, usize)> {
        let (name, raw) = self.readers.get(event_id)?;
        Some((self.mailboxes.get_mut(name)?, *raw))
    }
}

impl Mailbox {
    /// The dequeue that is entitled to the last unread message, by the exact rule.
    fn last_reader(&self) -> Option<u64> {
        let raw = self.waiting.get(self.unread.len().checked_sub(1)?)?;
        self.registered.get(*raw).copied()
    }

    /// The message a waiting dequeue may read.
    ///
    /// Exact: the k-th waiting dequeue gets the k-th unread message, so that nothing is read twice
    /// whatever was cancelled (L15). Inherited: the position is the number of earlier live dequeues,
    /// resolved or not (R3.150), which differs only after an older dequeue was cancelled behind a
    /// newer resolved one; executions of that time keep it (R3.158).
    fn entitled(&self, raw: usize, exact: bool) -> Option<usize> {
        let place = self.waiting.binary_search(&raw).ok()?;
        if exact {
            return self.unread.get(place).copied();
        }
        let cancelled_before = self.cancelled.partition_point(|cancelled| *cancelled < raw);
        let position = raw - cancelled_before;
        (position < self.messages.len()).then_some(position)
    }
}

/// Removes a value; where it stood.
fn remove_sorted(sorted: &mut VecDeque<usize>, value: usize) -> Option<usize> {
    let place = sorted.binary_search(&value).ok()?;
    sorted.remove(place);
    Some(place)
}
