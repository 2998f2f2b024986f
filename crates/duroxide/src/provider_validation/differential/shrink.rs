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
    let mut best = found;
    let mut steps = whole.dice[..best.steps].to_vec();
    // Looking all the time, the difference is seen earlier; after that a look at the end will do.
    if 0 < tries_max
        && let Err(found) = differ(maker, whole, &steps, Looks { every: 1, ..looks }).await
    {
        steps.truncate(found.steps);
        best = found;
    }
    let looks = Looks { every: usize::MAX, ..looks };
    let mut tries = 0;
    let mut chunk = steps.len().div_ceil(2);
    let mut left_out = false;
    let mut at = 0;
    while 0 < chunk && tries < tries_max {
        if steps.len() <= at {
            // Once more with chunks of this size if that was worth it, then with smaller ones.
            at = 0;
            chunk = if left_out { chunk.min(steps.len()) } else { chunk / 2 };
            left_out = false;
            continue;
        }
        let mut fewer = steps.clone();
        fewer.drain(at..(at + chunk).min(steps.len()));
        tries += 1;
        match differ(maker, whole, &fewer, looks).await {
            Err(found) => {
                fewer.truncate(found.steps);
                (steps, best, left_out) = (fewer, found, true);
            }
            Ok(()) => at += chunk,
        }
    }
    best
}

async fn differ(
    maker: &impl Maker,
    whole: Steps<'_>,
    dice: &[u64],
    looks: Looks,
) -> Result<(), Box<Found>> {
    let mut report = DifferentialReport::default();
    run_sequence(maker, Steps { dice, ..whole }, looks, &mut report).await
}
