//! Driving a context without an engine: hidden helpers for tools and tests (R4.100).

use std::task::Waker;

use super::{CompletionResult, OrchestrationContext};
use crate::model::Action;

#[doc(hidden)]
impl OrchestrationContext {
    /// Takes the actions emitted so far, with their tokens.
    pub fn drain_emitted_actions(&self) -> Vec<(u64, Action)> {
        let emitted = self.state().take_emitted();
        emitted.into_iter().map(|emitted| (emitted.token, emitted.action)).collect()
    }

    /// The actions emitted so far, with their tokens.
    pub fn get_emitted_actions(&self) -> Vec<(u64, Action)> {
        let mut state = self.state();
        state.emitted_mut().iter().map(|e| (e.token, e.action.clone())).collect()
    }

    /// Attaches a token to a schedule event.
    pub fn bind_token(&self, token: u64, event_id: u64) {
        self.state().bind(token, event_id);
    }

    /// Delivers the result of a schedule event.
    pub fn deliver_result(&self, event_id: u64, result: CompletionResult) {
        let waker = self.state().tokens.deliver(event_id, result);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Registers a positional wait.
    pub fn bind_external_subscription(&self, event_id: u64, name: &str) {
        self.state().bind_wait(event_id, name);
    }

    /// Delivers an external event.
    pub fn deliver_external_event(&self, name: String, data: String) {
        let (_, waker) = self.state().deliver_signal(&name, &data);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Registers a dequeue.
    pub fn bind_queue_subscription(&self, event_id: u64, name: &str) {
        let waker = self.state().bind_dequeue(event_id, name);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Delivers a queue message.
    pub fn deliver_queue_message(&self, name: String, data: String) {
        let waker = self.state().deliver_message(&name, &data);
        waker.into_iter().for_each(Waker::wake);
    }
}
