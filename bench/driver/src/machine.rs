//! What the figures were measured on, without saying where, and who else was busy.

use std::fs;
use std::time::Instant;

use crate::Failure;
use crate::processes::family_cpu;

/// Processor time used so far, in ticks of a hundredth of a second.
pub(crate) struct Work {
    at: Instant,
    all: f64,
    /// Used by processes we have started and seen end, and by the server.
    ours: f64,
}

/// Cores, processor and memory, in one line.
pub(crate) fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned());
    let memory = field("/proc/meminfo", "MemTotal");
    let kib = memory.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    let gib = kib.unwrap_or(0.0) / 1024.0 / 1024.0;
    format!("{cores} cores of {model}, {gib:.0} GiB of memory")
}

impl Work {
    pub(crate) fn now(server: Option<u32>) -> Result<Self, Failure> {
        let all = fs::read_to_string("/proc/stat")?;
        let all: Vec<f64> = numbers(all.lines().next().unwrap_or_default()).collect();
        // user nice system idle iowait irq softirq steal: all but the two that are idle.
        let busy = all.iter().take(8).sum::<f64>() - all.iter().skip(3).take(2).sum::<f64>();
        let own = fs::read_to_string("/proc/self/stat")?;
        let after_name = own.rsplit(')').next().unwrap_or_default();
        // utime stime cutime cstime.
        let ours: f64 = numbers(after_name).skip(10).take(4).sum();
        let server = server.map_or(0.0, |pid| family_cpu(pid).as_secs_f64() * 100.0);
        let ours = ours + server;
        Ok(Self { at: Instant::now(), all: busy, ours })
    }

    /// Percent of the machine that was used by nobody of ours.
    pub(crate) fn of_others_since(&self, before: &Self) -> f64 {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let ticks = self.at.duration_since(before.at).as_secs_f64() * 100.0 * cores as f64;
        let others = (self.all - before.all) - (self.ours - before.ours);
        (others / ticks.max(1.0) * 100.0).max(0.0)
    }
}

fn numbers(text: &str) -> impl Iterator<Item = f64> {
    text.split_whitespace().filter_map(|word| word.parse().ok())
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
