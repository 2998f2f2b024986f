//! Tokens: each scheduling call gets the next number, which links its future to its action before
//! the action has an event id (R1.9, R3.12).

use std::task::Waker;

use crate::id_map::IdMap;

/// What a token stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Activity,
    Timer,
    Wait,
    Dequeue,
    Child,
    /// Second-generation wait (R2.60).
    #[cfg(feature = "replay-version-test")]
    TopicWait,
    /// Status, key-value, detached start, continue-as-new, refused child: nothing is awaited.
    Note,
}

/// What became of a future.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Open,
    Returned,
    Dropped,
}

/// A delivered result.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub enum CompletionResult {
    /// An activity returned `Ok`.
    ActivityOk(String),
    /// An activity failed.
    ActivityErr(String),
    /// A timer fired.
    TimerFired,
    /// A child returned `Ok`.
    SubOrchOk(String),
    /// A child failed.
    SubOrchErr(String),
    /// An event or queue message arrived.
    ExternalData(String),
}

#[derive(Default)]
pub(crate) struct Tokens {
    /// Token n is at n - 1.
    slots: Vec<Slot>,
    by_event: IdMap<u64>,
    /// Tokens whose futures were dropped since [`Tokens::take_dropped`] was last called.
    dropped: Vec<u64>,
    /// How many futures have a waker.
    awaited: usize,
}

struct Slot {
    operation: Operation,
    event_id: Option<u64>,
    result: Option<CompletionResult>,
    fate: Fate,
    /// What to wake when there is a result.
    waker: Option<Waker>,
}

impl Tokens {
    pub(crate) fn issue(&mut self, operation: Operation) -> u64 {
        let fate = if operation == Operation::Note { Fate::Returned } else { Fate::Open };
        self.slots.push(Slot { operation, event_id: None, result: None, fate, waker: None });
        self.slots.len() as u64
    }

    /// The number that [`issue`](Self::issue) would give next.
    pub(crate) fn upcoming(&self) -> u64 {
        self.slots.len() as u64 + 1
    }

    pub(crate) fn bind(&mut self, token: u64, event_id: u64) {
        if let Some(slot) = self.slot_mut(token) {
            slot.event_id = Some(event_id);
            self.by_event.insert(event_id, token);
        }
    }

    pub(crate) fn lookup(&self, token: u64) -> Option<(Operation, Option<u64>)> {
        let slot = self.slot(token)?;
        Some((slot.operation, slot.event_id))
    }

    pub(crate) fn fate_of(&self, event_id: u64) -> Option<Fate> {
        let token = self.by_event.get(event_id)?;
        self.slot(*token).map(|slot| slot.fate)
    }

    /// Stores a result for the future of a schedule event, which may have ended. The waker of the
    /// task that waits for it, to be woken.
    #[must_use = "a task waits to be woken"]
    pub(crate) fn deliver(&mut self, event_id: u64, result: CompletionResult) -> Option<Waker> {
        let token = self.by_event.get(event_id).copied()?;
        let slot = self.slot_mut(token)?;
        // A result that no future can read any more would only take up memory.
        if slot.fate != Fate::Open || !suits(slot.operation, &result) {
            return None;
        }
        slot.result = Some(result);
        self.take_waker(token)
    }

    /// Whether this waker is the one that will be woken.
    pub(crate) fn keeps_waker(&self, token: u64, waker: &Waker) -> bool {
        let kept = self.slot(token).and_then(|slot| slot.waker.as_ref());
        kept.is_some_and(|kept| kept.will_wake(waker))
    }

    /// Keeps a waker; the one before.
    pub(crate) fn keep_waker(&mut self, token: u64, waker: Waker) -> Option<Waker> {
        let Some(slot) = self.slot_mut(token) else { return Some(waker) };
        if slot.fate != Fate::Open {
            return Some(waker);
        }
        let before = slot.waker.replace(waker);
        self.awaited += usize::from(before.is_none());
        before
    }

    /// The waker of the task that waits for the future of a schedule event, to be woken.
    pub(crate) fn take_waker_of(&mut self, event_id: u64) -> Option<Waker> {
        let token = self.by_event.get(event_id).copied()?;
        self.take_waker(token)
    }

    pub(crate) fn take_waker(&mut self, token: u64) -> Option<Waker> {
        let waker = self.slot_mut(token)?.waker.take();
        self.awaited -= usize::from(waker.is_some());
        waker
    }

    /// Whether any event could wake the code.
    pub(crate) fn is_any_awaited(&self) -> bool {
        0 < self.awaited
    }

    pub(crate) fn take_result(&mut self, token: u64) -> Option<CompletionResult> {
        self.slot_mut(token)?.result.take()
    }

    /// Ends a future; the first end counts. The waker of the task that waited for it.
    pub(crate) fn finish(&mut self, token: u64, fate: Fate) -> Option<Waker> {
        let slot = self.slot_mut(token)?;
        if slot.fate != Fate::Open {
            return None;
        }
        slot.fate = fate;
        slot.result = None;
        if fate == Fate::Dropped {
            self.dropped.push(token);
        }
        self.take_waker(token)
    }

    /// Schedule events whose futures were dropped and not taken yet.
    pub(crate) fn dropped(&self) -> impl Iterator<Item = (Operation, u64)> {
        let slots = self.dropped.iter().filter_map(|token| self.slot(*token));
        slots.filter_map(|slot| Some((slot.operation, slot.event_id?)))
    }

    /// Takes them, ascending: each is reported once, so that a turn does not pay for the drops of all
    /// turns before it.
    pub(crate) fn take_dropped(&mut self) -> Vec<(Operation, u64)> {
        let mut dropped: Vec<(Operation, u64)> = self.dropped().collect();
        self.dropped.clear();
        dropped.sort_unstable_by_key(|(_, event_id)| *event_id);
        dropped
    }

    fn slot(&self, token: u64) -> Option<&Slot> {
        self.slots.get(usize::try_from(token).ok()?.checked_sub(1)?)
    }

    fn slot_mut(&mut self, token: u64) -> Option<&mut Slot> {
        self.slots.get_mut(usize::try_from(token).ok()?.checked_sub(1)?)
    }
}

/// A result of the wrong kind is never observed (R3.54).
fn suits(operation: Operation, result: &CompletionResult) -> bool {
    use CompletionResult::{
        ActivityErr, ActivityOk, ExternalData, SubOrchErr, SubOrchOk, TimerFired,
    };
    matches!(
        (operation, result),
        (Operation::Activity, ActivityOk(_) | ActivityErr(_))
            | (Operation::Timer, TimerFired)
            | (Operation::Child, SubOrchOk(_) | SubOrchErr(_))
            | (Operation::Wait | Operation::Dequeue, ExternalData(_))
    )
}
