//! Leaves out steps of a sequence as long as the stores still differ.

use super::Maker;
use super::report::DifferentialReport;
use super::run::{Found, Looks, run_sequence};

/// How many shorter sequences are tried.
const TRIES_MAX: usize = 400;

/// A shorter sequence that shows a difference, if there is one.
pub(super) async fn shrink(
    maker: &impl Maker,
    steps: &[u64],
    looks: Looks,
    found: Box<Found>,
) -> Box<Found> {
    let looks = Looks { every: 1, ..looks };
    let mut best = found;
    let mut steps = steps[..best.steps].to_vec();
    let mut tries = 0;
    let mut chunk = steps.len();
    while chunk > 0 {
        let mut at = 0;
        while at < steps.len() && tries < TRIES_MAX {
            let mut fewer = steps.clone();
            // The first try leaves out nothing: looking more often, it ends earlier.
            if tries > 0 {
                fewer.drain(at..(at + chunk).min(steps.len()));
            }
            tries += 1;
            let mut report = DifferentialReport::default();
            match run_sequence(maker, &fewer, looks, &mut report).await {
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
