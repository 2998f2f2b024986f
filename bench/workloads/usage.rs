//! What the process has used so far: processor time, wake-ups, memory, writes.

use std::fs;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use super::Failure;

/// Counters of this process since it began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// User and system time of all threads.
    pub(crate) cpu: Duration,
    /// How often a thread went to sleep of its own accord.
    pub(crate) sleeps: i64,
    /// Bytes caused to be written to storage.
    pub(crate) written_bytes: u64,
    /// Calls of write and its kin, sockets and pipes included.
    pub(crate) write_calls: u64,
}

impl Usage {
    /// Reads the counters.
    pub(crate) fn now() -> Result<Self, Failure> {
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
        Ok(Self {
            cpu: duration(usage.user_time()) + duration(usage.system_time()),
            sleeps: usage.voluntary_context_switches(),
            written_bytes: field(&io, "write_bytes:"),
            write_calls: field(&io, "syscw:"),
        })
    }
}

/// Memory in use now, in bytes.
pub(crate) fn resident_bytes() -> u64 {
    status("VmRSS:")
}

/// The most memory that was ever in use, in bytes.
pub(crate) fn peak_resident_bytes() -> u64 {
    status("VmHWM:")
}

fn status(name: &str) -> u64 {
    field(&fs::read_to_string("/proc/self/status").unwrap_or_default(), name) * 1024
}

fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn duration(time: TimeVal) -> Duration {
    let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
