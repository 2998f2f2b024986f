//! What a store keeps decides who wins a race, also when another node replays it later: whole
//! stories with real runtimes on the store, and cold replays of what it has stored.

mod scene;
mod starts;
mod handover;
mod races;
mod stamps;

pub use handover::*;
pub use races::*;
pub use stamps::*;
pub use starts::*;
