//! What we mean to reach, and whether we do.

use crate::plan::CASES;
use crate::results::{OTHERS_PERCENT, Results};
use crate::variant::{OURS, REFERENCE};

/// A target and what was measured.
pub(crate) struct Verdict {
    pub(crate) text: String,
    pub(crate) value: f64,
    pub(crate) met: bool,
    /// Others were busy meanwhile, so it says little.
    pub(crate) rough: bool,
}

struct Target {
    case: &'static str,
    figure: &'static str,
    rule: Rule,
}

/// What ours is held against.
#[derive(Clone, Copy)]
enum Rule {
    /// At least this many times the reference's best.
    TimesBest(f64),
    /// At least this many times the reference's defaults.
    TimesDefaults(f64),
    /// At most this many one-row commits with fsync.
    RawCommits(f64),
    /// At least this share of the bare loop.
    ShareOfBareLoop(f64),
    /// At most this, in the figure's unit.
    AtMost(f64),
    /// At least this, in the figure's unit.
    AtLeast(f64),
    /// At most this share of the server's processor time per instance of the reference's best.
    ServerShare(f64),
    /// At most this many times the same figure of another case.
    AtMostTimesCase(f64, &'static str),
    /// At least this share of the same figure of another case.
    ShareOfCase(f64, &'static str),
}

use Rule::{
    AtLeast, AtMost, AtMostTimesCase, RawCommits, ServerShare, ShareOfBareLoop, ShareOfCase,
    TimesBest, TimesDefaults,
};

/// The longest that a hello may wait for something it has nothing to do with.
const STALL_MS: f64 = 1000.0;

const TARGETS: &[Target] = &[
    target("w1-throughput", "per_second", TimesBest(30.0)),
    target("w1-throughput", "per_second", ShareOfBareLoop(0.2)),
    target("w1-latency", "p50_ms", RawCommits(10.0)),
    target("w1-latency", "p50_ms", TimesBest(4.0)),
    target("w1-latency", "p50_ms", TimesDefaults(50.0)),
    target("w2-chain:100", "ms_per_step", RawCommits(4.0)),
    target("w2-chain:1000", "ms_per_step", AtMostTimesCase(1.2, "w2-chain:10")),
    target("w2-chain:100", "ms_per_step", TimesBest(8.0)),
    target("w2-chain:1000", "ms_per_step", TimesBest(15.0)),
    target("w2-chain:100", "ms_per_step", TimesDefaults(100.0)),
    target("w3-fan-out:1000", "total_ms", TimesBest(30.0)),
    target("w4-stress", "per_second", TimesBest(30.0)),
    target("w5-children", "per_second", TimesBest(30.0)),
    target("w6-timers:1000", "p50_late_ms", AtMost(5.0)),
    target("w6-timers:1000", "p99_late_ms", AtMost(25.0)),
    target("w7-raise", "p50_ms", RawCommits(6.0)),
    target("w8-continue", "ms_per_iteration", RawCommits(5.0)),
    target("w9-idle", "cpu_percent", AtMost(0.2)),
    target("w9-idle", "written_bytes_per_second", AtMost(0.0)),
    target("w10-payload", "per_second", TimesBest(10.0)),
    target("w11-backlog:100000", "per_second", ShareOfCase(0.8, "w11-backlog:1000")),
    target("s1-crowd:1000000", "per_second", ShareOfCase(0.9, "s1-crowd:0")),
    target("m1-sleepers:100000", "rss_bytes_per_late_instance", AtMost(1024.0)),
    target("g1-flooded:64", "p50_ms", AtMostTimesCase(1.5, "g1-flooded:1")),
    target("g2-prune:50000", "max_ms", AtMost(STALL_MS)),
    target("g3-snapshot:50000", "p50_ms", AtMostTimesCase(1.5, "g3-snapshot:5000")),
    target("g3-snapshot:50000", "max_ms", AtMost(STALL_MS)),
    target("g4-sessions:50000", "p50_ms", AtMostTimesCase(1.5, "g4-sessions:1000")),
    target("g5-readers:4", "log_mib", AtMost(130.0)),
    target("g6-delete:100000", "max_ms", AtMost(STALL_MS)),
];

/// The absolute ones are what another library for Rust does on such a server.
const POSTGRES: &[Target] = &[
    target("w1-throughput", "per_second", TimesBest(15.0)),
    target("w1-throughput", "per_second", AtLeast(730.0)),
    target("w1-throughput", "per_second", ServerShare(0.1)),
    target("w1-latency", "p50_ms", RawCommits(12.0)),
    target("w1-latency", "p50_ms", AtMost(2.9)),
    target("w2-chain:100", "ms_per_step", TimesDefaults(30.0)),
    target("w2-chain:100", "ms_per_step", AtMost(0.88)),
    target("w2-chain:1000", "ms_per_step", AtMostTimesCase(1.2, "w2-chain:10")),
    target("w4-stress", "per_second", TimesBest(15.0)),
    target("w6-timers:1000", "p50_late_ms", AtMost(5.0)),
    target("w9-idle", "transactions_per_second", AtMost(2.0)),
    target("w11-backlog:100000", "per_second", ShareOfCase(0.8, "w11-backlog:1000")),
    target("g1-flooded:64", "p50_ms", AtMostTimesCase(1.5, "g1-flooded:1")),
    target("g2-prune:50000", "max_ms", AtMost(STALL_MS)),
    target("g3-snapshot:50000", "p50_ms", AtMostTimesCase(1.5, "g3-snapshot:5000")),
    target("g3-snapshot:50000", "max_ms", AtMost(STALL_MS)),
    target("g4-sessions:50000", "p50_ms", AtMostTimesCase(1.5, "g4-sessions:1000")),
    target("g6-delete:100000", "max_ms", AtMost(STALL_MS)),
];

/// Every target for which there are figures.
pub(crate) fn check(results: &Results) -> Vec<Verdict> {
    let targets = if results.store == "postgres" { POSTGRES } else { TARGETS };
    targets.iter().filter_map(|target| target.check(results)).collect()
}

const fn target(case: &'static str, figure: &'static str, rule: Rule) -> Target {
    Target { case, figure, rule }
}

impl Target {
    fn check(&self, results: &Results) -> Option<Verdict> {
        let case = CASES.iter().find(|case| case.name == self.case)?;
        let figure = *case.figures.iter().find(|figure| figure.key == self.figure)?;
        let measured = results.cases.iter().find(|results| results.case.name == self.case)?;
        let ours = measured.median(OURS, self.figure)?;
        let elsewhere = |case| results.median(case, OURS, self.figure);
        let (value, limit, is_floor, what) = match self.rule {
            TimesBest(times) => {
                let best = measured.best_reference(figure)?;
                let value = measured.times(figure, OURS, best)?;
                (value, times, true, "times the reference at its best".to_owned())
            }
            TimesDefaults(times) => {
                let value = measured.times(figure, OURS, REFERENCE)?;
                (value, times, true, "times the reference's defaults".to_owned())
            }
            RawCommits(commits) => {
                let value = ours / measured.raw.median("commit_p50_ms")?;
                (value, commits, false, "raw commits".to_owned())
            }
            ShareOfBareLoop(share) => {
                let value = ours / measured.raw.median("instances_per_second")?;
                (value, share, true, "of the bare loop".to_owned())
            }
            AtLeast(limit) => (ours, limit, true, figure.unit.to_owned()),
            ServerShare(share) => {
                let best = measured.summary(measured.best_reference(figure)?)?;
                let ours = measured.summary(OURS)?.server_cpu_ms_per_instance()?;
                let value = ours / best.server_cpu_ms_per_instance()?;
                (value, share, false, "of the reference's server CPU".to_owned())
            }
            AtMost(limit) => (ours, limit, false, figure.unit.to_owned()),
            AtMostTimesCase(times, other) => {
                (ours / elsewhere(other)?, times, false, format!("times {other}"))
            }
            ShareOfCase(share, other) => {
                (ours / elsewhere(other)?, share, true, format!("of {other}"))
            }
        };
        let words = if is_floor { "at least" } else { "at most" };
        let text = format!("{}: {words} {limit} {what}", case.title);
        let met = if is_floor { value >= limit } else { value <= limit };
        let rough = measured.others_percent() > OTHERS_PERCENT;
        Some(Verdict { text, value, met, rough })
    }
}
