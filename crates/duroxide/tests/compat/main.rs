//! Programs in the shape of callers: every path, literal, pattern, signature and text that code
//! written against the public API relies on. Much of this is proved by compiling it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
// Callers' shapes, not ours.
#![allow(clippy::type_complexity, clippy::manual_async_fn, clippy::let_underscore_future)]

mod paths;
mod samples;
mod patterns;
mod traits;
mod texts;
mod signatures;
mod context_calls;
mod client_calls;
mod store_calls;
mod third_party;
mod decorator;
mod handlers;
mod futures;
mod by_hand;
mod engine;
mod features;
