//! What one execution knows. Each field owns one concept and its rules.

use std::panic::Location;

use super::Beginning;
use super::kv::Kv;
use super::queues::Queues;
use super::signals::Signals;
use super::tokens::{CompletionResult, Fate, Operation, Tokens};
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
    emitted: Vec<Emitted>,
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
    /// Dequeues that took a message.
    pub(crate) dequeued: usize,
    /// Dequeues with a place in a mailbox that were given up.
    pub(crate) places_freed: usize,
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
            emitted: Vec::new(),
            rules,
            now_ms,
            frozen: false,
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms.unwrap_or_else(clock::wall_clock_ms)
    }

    pub(crate) fn emit(
        &mut self,
        operation: Operation,
        action: Action,
        location: &'static Location<'static>,
    ) -> u64 {
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
    }

    /// Opens the slot of a bound wait.
    pub(crate) fn bind_wait(&mut self, event_id: u64, name: &str) {
        // R3.87: a wait dropped before it was bound still holds its slot until its breadcrumb.
        self.signals.subscribe(event_id, name);
    }

    /// Opens the place of a bound dequeue.
    pub(crate) fn bind_dequeue(&mut self, event_id: u64, name: &str) {
        self.queues.subscribe(event_id, name);
        // R3.154: dropped before it was bound, it reserves nothing.
        if self.rules.drops_count_at_once && self.tokens.fate_of(event_id) == Some(Fate::Dropped) {
            self.queues.cancel(event_id);
        }
    }

    /// What a future sees when polled. A result is handed out once.
    pub(crate) fn poll_token(&mut self, token: u64) -> Option<CompletionResult> {
        let result = self.result_of(token);
        match &result {
            Some(_) => self.tokens.finish(token, Fate::Returned),
            None => self.polls.pending += 1,
        }
        result
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
    pub(crate) fn drop_token(&mut self, token: u64) {
        if self.frozen {
            return;
        }
        self.tokens.finish(token, Fate::Dropped);
        if !self.rules.drops_count_at_once {
            return;
        }
        match self.tokens.lookup(token) {
            Some((Operation::Wait, Some(event_id))) => self.signals.give_up(event_id),
            Some((Operation::Dequeue, Some(event_id))) => {
                self.queues.cancel(event_id);
                self.polls.places_freed += 1;
            }
            _ => {}
        }
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
