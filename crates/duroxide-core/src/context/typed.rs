//! Typed payloads: which one it is that cannot be decoded, for the code and for people.

use std::any::type_name;

use serde::de::DeserializeOwned;

use super::{DurableFuture, OrchestrationContext};
use crate::model;

/// What people call the payloads of the two.
pub(super) const ACTIVITY_RESULT: &str = "result of activity";
pub(super) const CHILD_RESULT: &str = "result of sub-orchestration";

/// A payload that could not be decoded, while nothing the code did since has agreed with history.
#[derive(Debug, Clone)]
pub(crate) struct Undecoded {
    /// Which payload of what, what it ought to be, and what is wrong with it.
    pub(crate) text: String,
    /// Whether it was read from a history that was stored before: then it could be decoded once.
    pub(crate) on_replay: bool,
    /// The first token issued afterwards.
    pub(super) next_token: u64,
}

impl OrchestrationContext {
    /// The input of this orchestration, for handlers that decode it.
    #[doc(hidden)]
    pub fn decode_input<T: DeserializeOwned>(&self, input: &str) -> Result<T, String> {
        let name = &self.identity().orchestration_name;
        self.decode(("input of orchestration", name), None, input)
    }

    /// Decodes what came back for a token, or for none that is known. The error is what the code sees,
    /// so it holds nothing that another build would say differently; and not even that for executions
    /// of versions that had no name for it.
    pub(super) fn decode<T: DeserializeOwned>(
        &self,
        (what, name): (&str, &str),
        token: Option<u64>,
        payload: &str,
    ) -> Result<T, String> {
        model::decode(payload).map_err(|error| {
            let mut state = self.state();
            let bound = token.and_then(|token| state.tokens.lookup(token));
            let event = bound.and_then(|(_, event_id)| event_id);
            let event = event.map(|id| format!(" (event {id})")).unwrap_or_default();
            let (instance, expected) = (&self.identity().instance_id, type_name::<T>());
            let text = format!(
                "{what} '{name}'{event} of instance '{instance}' cannot be decoded as {expected}: {error}"
            );
            let next_token = state.tokens.upcoming();
            let on_replay = state.reads_stored;
            state.undecoded = Some(Undecoded { text, on_replay, next_token });
            match state.names_payloads() {
                true => format!("{what} '{name}'{event} cannot be decoded: {error}"),
                false => error,
            }
        })
    }
}

impl DurableFuture<Result<String, String>> {
    /// The result, decoded.
    pub(super) fn typed<T: DeserializeOwned + Send + 'static>(
        self,
        what: &'static str,
        name: String,
    ) -> DurableFuture<Result<T, String>> {
        let origin = self.origin();
        self.map(move |result| {
            let text = result?;
            match origin {
                Some((ctx, token)) => ctx.decode((what, &name), Some(token), &text),
                None => model::decode(&text),
            }
        })
    }
}

/// Decodes a typed payload that has no error channel (R2.95).
#[expect(clippy::panic, reason = "documented: there is no error channel to report it through")]
pub(super) fn decoded<T: DeserializeOwned>(
    (ctx, token): (&OrchestrationContext, Option<u64>),
    (what, name): (&str, &str),
    payload: &str,
) -> T {
    match ctx.decode((what, name), token, payload) {
        Ok(value) => value,
        Err(error) if ctx.state().names_payloads() => panic!("{error}"),
        Err(error) => panic!("{what} cannot be decoded: {error}"),
    }
}
