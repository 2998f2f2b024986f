//! Leaves out steps of a sequence as long as the stores still differ.

use super::Maker;
use super::report::DifferentialReport;
use super::run::{Found, Looks, Steps, run_sequence};

/// A shorter sequence that shows a difference, if there is one among so many tries.
pub(super) async fn shrink(
    maker: &impl Maker,
    whole: Steps<'_>,
    (looks, tries_max): (Looks, usize),
    found: Box<Found>,
) -> Box<Found> {
    let looks = Looks { every: 1, ..looks };
    let mut best = found;
    let mut steps = whole.dice[..best.steps].to_vec();
    let mut tries = 0;
    let mut chunk = steps.len();
    while chunk > 0 {
        let mut at = 0;
        while at < steps.len() && tries < tries_max {
            let mut fewer = steps.clone();
            // The first try leaves out nothing: looking more often, it ends earlier.
            if tries > 0 {
                fewer.drain(at..(at + chunk).min(steps.len()));
            }
            tries += 1;
            let mut report = DifferentialReport::default();
            match run_sequence(maker, Steps { dice: &fewer, ..whole }, looks, &mut report).await {
                Err(found) => {
                    fewer.truncate(found.steps);
                    (steps, best) = (fewer, found);
                }
                Ok(()) => at += chunk,
            }
        }
        chunk /= 2;
    }
    best
}
