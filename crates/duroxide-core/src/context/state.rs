//! What one execution knows. Each field owns one concept and its rules.

use std::panic::Location;
use std::task::Waker;

use super::Beginning;
use super::kv::Kv;
use super::place;
use super::queues::Queues;
use super::signals::Signals;
use super::tokens::{CompletionResult, Fate, Operation, Tokens};
use super::typed::Undecoded;
use crate::clock;
use crate::model::Action;
use crate::model::version::ReplayRules;

/// An action the code asked for, before history knows of it.
#[derive(Debug, Clone)]
pub(crate) struct Emitted {
    pub(crate) token: u64,
    pub(crate) action: Action,
    pub(crate) location: &'static Location<'static>,
}

pub(crate) struct ContextState {
    pub(crate) tokens: Tokens,
    pub(crate) signals: Signals,
    pub(crate) queues: Queues,
    pub(crate) kv: Kv,
    pub(crate) custom_status: Option<String>,
    pub(crate) polls: PollCount,
    /// The latest payload that could not be decoded, if that may be why code and history part.
    pub(crate) undecoded: Option<Undecoded>,
    /// Whether the code is given what an earlier turn was given, too.
    pub(crate) reads_stored: bool,
    emitted: Vec<Emitted>,
    /// Timers whose futures the code has dropped, by token; not those it dropped over stored events.
    dropped_timers: Vec<u64>,
    rules: ReplayRules,
    /// The turn's time; a context driven by hand reads the clock.
    now_ms: Option<u64>,
    /// The turn is over: futures dropped from here on were alive at its end (R3.103).
    frozen: bool,
}

/// What happened to durable futures during the current poll of the orchestration.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct PollCount {
    /// Futures that were polled and are still pending.
    pub(crate) pending: usize,
    /// Futures that returned their values.
    pub(crate) returned: usize,
    /// Dequeues that took a message.
    pub(crate) dequeued: usize,
}

/// What the end of a future leaves to be done outside the lock.
#[derive(Default)]
pub(crate) struct Dropped {
    /// The waker of the task that waited for it.
    pub(crate) kept: Option<Waker>,
    /// The waker of the dequeue that can read in its stead.
    pub(crate) woken: Option<Waker>,
}

impl ContextState {
    pub(super) fn new(beginning: Beginning) -> Self {
        let Beginning { rules, now_ms, kv_snapshot, custom_status } = beginning;
        Self {
            tokens: Tokens::default(),
            signals: Signals::default(),
            queues: Queues::new(rules.strict),
            kv: Kv::new(kv_snapshot),
            custom_status,
            polls: PollCount::default(),
            undecoded: None,
            reads_stored: false,
            emitted: Vec::new(),
            dropped_timers: Vec::new(),
            rules,
            now_ms,
            frozen: false,
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms.unwrap_or_else(clock::wall_clock_ms)
    }

    /// Whether errors of decoding name the payload. In older executions they did not, and what code
    /// made of their texts is in history.
    pub(super) fn names_payloads(&self) -> bool {
        self.rules.strict
    }

    pub(crate) fn emit(
        &mut self,
        operation: Operation,
        action: Action,
        location: &'static Location<'static>,
    ) -> u64 {
        place::note(location);
        let token = self.tokens.issue(operation);
        self.emitted.push(Emitted { token, action, location });
        token
    }

    /// Emitted actions not yet taken, for changes before the enclosing poll returns.
    pub(crate) fn emitted_mut(&mut self) -> &mut Vec<Emitted> {
        &mut self.emitted
    }

    pub(crate) fn take_emitted(&mut self) -> Vec<Emitted> {
        std::mem::take(&mut self.emitted)
    }

    /// Attaches a token to its schedule event.
    pub(crate) fn bind(&mut self, token: u64, event_id: u64) {
        self.tokens.bind(token, event_id);
        // What the code asked for since then is in history: it knew of the error when that was made.
        if self.undecoded.as_ref().is_some_and(|undecoded| undecoded.next_token <= token) {
            self.undecoded = None;
        }
    }

    /// Opens the slot of a bound wait.
    pub(crate) fn bind_wait(&mut self, event_id: u64, name: &str) {
        // R3.87: a wait dropped before it was bound still holds its slot until its breadcrumb.
        self.signals.subscribe(event_id, name);
    }

    /// Opens the place of a bound dequeue. The waker of the dequeue that can read now, to be woken.
    #[must_use = "a dequeue waits to be woken"]
    pub(crate) fn bind_dequeue(&mut self, event_id: u64, name: &str) -> Option<Waker> {
        let is_readable = self.queues.subscribe(event_id, name);
        // R3.154: dropped before it was bound, it reserves nothing.
        if self.rules.drops_count_at_once && self.tokens.fate_of(event_id) == Some(Fate::Dropped) {
            return self.cancel_dequeue(event_id);
        }
        is_readable.then(|| self.tokens.take_waker_of(event_id)).flatten()
    }

    /// Takes a dequeue out of its mailbox. The waker of the dequeue that can read in its stead.
    #[must_use = "a dequeue waits to be woken"]
    pub(crate) fn cancel_dequeue(&mut self, event_id: u64) -> Option<Waker> {
        let next = self.queues.cancel(event_id)?;
        self.tokens.take_waker_of(next)
    }

    /// What a future sees when polled, and the waker kept for it if that is its result, which is
    /// handed out once.
    pub(crate) fn poll_token(&mut self, token: u64) -> (Option<CompletionResult>, Option<Waker>) {
        match self.result_of(token) {
            Some(result) => {
                self.polls.returned += 1;
                (Some(result), self.tokens.finish(token, Fate::Returned))
            }
            None => {
                self.polls.pending += 1;
                (None, None)
            }
        }
    }

    fn result_of(&mut self, token: u64) -> Option<CompletionResult> {
        let (operation, event_id) = self.tokens.lookup(token)?;
        let event_id = event_id?;
        match operation {
            Operation::Wait => self.signals.take(event_id).map(CompletionResult::ExternalData),
            Operation::Dequeue => {
                let data = self.queues.take(event_id)?;
                self.polls.dequeued += 1;
                Some(CompletionResult::ExternalData(data))
            }
            #[cfg(feature = "replay-version-test")]
            Operation::TopicWait => {
                self.signals.take_topic(event_id).map(CompletionResult::ExternalData)
            }
            _ => self.tokens.take_result(token),
        }
    }

    /// A future was dropped before it returned its value: a decision to cancel (R3.100).
    pub(crate) fn drop_token(&mut self, token: u64) -> Dropped {
        if self.frozen {
            return Dropped { kept: self.tokens.take_waker(token), woken: None };
        }
        let kept = self.tokens.finish(token, Fate::Dropped);
        let mut woken = None;
        if !self.reads_stored && matches!(self.tokens.lookup(token), Some((Operation::Timer, _))) {
            self.dropped_timers.push(token);
        }
        if self.rules.drops_count_at_once {
            match self.tokens.lookup(token) {
                Some((Operation::Wait, Some(event_id))) => self.signals.give_up(event_id),
                Some((Operation::Dequeue, Some(event_id))) => woken = self.cancel_dequeue(event_id),
                _ => {}
            }
        }
        Dropped { kept, woken }
    }

    /// Takes the schedule events of timers that this turn has dropped and no turn before it (R3.104e).
    pub(crate) fn take_dropped_timers(&mut self) -> Vec<u64> {
        let tokens = std::mem::take(&mut self.dropped_timers).into_iter();
        tokens.filter_map(|token| self.tokens.lookup(token)?.1).collect()
    }

    /// The moment at which dropped dequeues stop counting under the old rules (R3.64). Under the new
    /// ones they have stopped before: at the drop, or when they were bound.
    pub(crate) fn cancel_dropped_dequeues(&mut self) {
        if self.rules.drops_count_at_once {
            return;
        }
        let dropped = self.tokens.dropped();
        for (_, event_id) in dropped.filter(|(operation, _)| *operation == Operation::Dequeue) {
            self.queues.cancel(event_id);
        }
    }

    /// Takes in a signal, if a wait for its name is open: whether, and the waker of that wait.
    pub(crate) fn deliver_signal(&mut self, name: &str, data: &str) -> (bool, Option<Waker>) {
        match self.signals.deliver(name, data) {
            Some(wait) => (true, self.tokens.take_waker_of(wait)),
            None => (false, None),
        }
    }

    /// Takes in a message. The waker of the dequeue that can read it.
    #[must_use = "a dequeue waits to be woken"]
    pub(crate) fn deliver_message(&mut self, name: &str, data: &str) -> Option<Waker> {
        let dequeue = self.queues.deliver(name, data)?;
        self.tokens.take_waker_of(dequeue)
    }

    /// Ends the turn for the futures: what is dropped from now on was alive until its end.
    pub(crate) fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Begins another turn of code that was kept since the last one.
    pub(crate) fn thaw(&mut self, now_ms: u64) {
        self.frozen = false;
        self.now_ms = Some(now_ms);
    }
}
