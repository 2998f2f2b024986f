//! The calls a store may do better than by default: turns without history, parts of histories,
//! commits that come back, statuses and commits without looking.

mod commits;
mod fetches;
mod statuses;

pub use commits::*;
pub use fetches::*;
pub use statuses::*;
