//! Whether the result is right: the outputs, and how often the world was really asked.

use crate::Failure;
use crate::journal::{Line, Mark};

const OUTPUTS: [(&str, &str); 2] = [
    ("book", "paid, approved by Ada, sent"),
    ("piano", "refunded, back on the shelf, because no courier carries a piano"),
];

/// How often an activity began, took effect, and failed. The rest was cut off.
const COUNTS: [(&str, &str, [usize; 3]); 12] = [
    ("book", "Reserve", [1, 1, 0]),
    // Busy, cut off by the first kill, paid.
    ("book", "Charge", [3, 1, 1]),
    ("book", "Pack", [1, 1, 0]),
    ("book", "Send", [1, 1, 0]),
    ("book", "Refund", [0, 0, 0]),
    ("book", "Release", [0, 0, 0]),
    ("piano", "Reserve", [1, 1, 0]),
    // Busy, paid.
    ("piano", "Charge", [2, 1, 1]),
    ("piano", "Pack", [1, 1, 0]),
    ("piano", "Send", [1, 0, 1]),
    ("piano", "Refund", [1, 1, 0]),
    ("piano", "Release", [1, 1, 0]),
];

/// Steps whose results later workers found in history.
const REPLAYS: [(usize, &str, &str); 5] = [
    (2, "book", "Reserve"),
    (3, "book", "Reserve"),
    (3, "book", "Charge"),
    (3, "piano", "Reserve"),
    (3, "piano", "Charge"),
];

/// Compares what happened with what should have; the error names every difference.
pub(crate) fn check(lines: &[Line], outputs: &[(&str, String)]) -> Result<(), Failure> {
    let mut wrong = Vec::new();
    for (order, expected) in OUTPUTS {
        let found = outputs.iter().find(|output| output.0 == order).map(|output| &output.1);
        if found.is_none_or(|found| found != expected) {
            wrong.push(format!("{order}: the output is {found:?}, not {expected:?}"));
        }
    }
    for (order, step, expected) in COUNTS {
        let found = [Mark::Began, Mark::Ran, Mark::Failed]
            .map(|mark| lines.iter().filter(|line| line.is(mark, step, order)).count());
        if found != expected {
            wrong.push(format!("{order}: {step} began, ran, failed {found:?}, not {expected:?}"));
        }
    }
    for (worker, order, step) in REPLAYS {
        let mut here = lines.iter().filter(|line| line.worker == worker);
        if !here.any(|line| line.is(Mark::Replayed, step, order)) {
            wrong.push(format!("{order}: {step} was not replayed by worker {worker}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ").into()) }
}
