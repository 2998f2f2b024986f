//! The runtime: fetches turns and activities, runs them, commits what they did.

pub mod observability;
