//! Processor time of a process and its children, as Linux tells it. The driver includes this file as
//! well.

use std::fs;
use std::time::Duration;

/// The kernel counts in hundredths of a second here, whatever its own clock does.
const TICK: Duration = Duration::from_millis(10);

/// User and system time of a process, of its children, and of those it has seen end.
pub(crate) fn family_cpu(parent: u32) -> Duration {
    let ended = ticks(parent, 4);
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    TICK * (ended + children.map(|child| ticks(child, 2)).sum::<u32>())
}

/// `utime stime cutime cstime`, or the first of them.
fn ticks(process: u32, fields: usize) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name comes second, in parentheses, and may hold anything.
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let numbers = after_name.split_whitespace().skip(11).take(fields);
    numbers.filter_map(|number| number.parse::<u32>().ok()).sum()
}
