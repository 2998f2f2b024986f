//! Durable execution for Rust.

pub mod clock;
pub mod random;
pub mod client;
pub mod providers;

pub use client::{Client, ClientError};
