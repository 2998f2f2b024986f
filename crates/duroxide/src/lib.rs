//! Durable execution for Rust.

pub mod clock;
pub mod random;
pub mod providers;
pub mod runtime;
