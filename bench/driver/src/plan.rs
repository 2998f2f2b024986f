//! Which cases there are, for how long each is measured, and which of its figures matter.

use crate::Failure;

/// One case of one workload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// The first is the one that settings are tuned for.
    pub(crate) figures: &'static [Figure],
    /// Seconds in a quick and in a full run.
    seconds: (f64, f64),
    /// Part of a quick run.
    quick: bool,
    /// Part of a quick run if its workload is named.
    quick_if_named: bool,
    /// The stores it can be measured on.
    stores: &'static [&'static str],
    /// Whether the reference can be measured at all in reasonable time.
    pub(crate) reference: bool,
    /// The case whose best settings are used here; none: settings make no sense.
    pub(crate) tuned_by: Option<&'static str>,
}

/// Something a case measures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figure {
    /// Name in a run's JSON.
    pub(crate) key: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    Higher,
    Lower,
}

const PER_SECOND: &[Figure] = &[higher("per_second", "instances/s")];
const LATENCY: &[Figure] = &[lower("p50_ms", "ms, p50"), lower("p99_ms", "ms, p99")];
const STEP: &[Figure] = &[lower("ms_per_step", "ms per step")];
const TOTAL: &[Figure] = &[lower("total_ms", "ms in all")];
const LATE: &[Figure] =
    &[lower("p50_late_ms", "ms late, p50"), lower("p99_late_ms", "ms late, p99")];
const ITERATION: &[Figure] = &[lower("ms_per_iteration", "ms per execution")];
const IDLE: &[Figure] = &[
    lower("cpu_percent", "% of a core"),
    lower("written_bytes_per_second", "bytes written/s"),
    lower("sleeps_per_second", "wake-ups/s"),
    lower("transactions_per_second", "transactions/s"),
];
const SLEEPERS: &[Figure] = &[
    lower("rss_bytes_per_late_instance", "bytes of memory each, second half"),
    lower("rss_bytes_per_instance", "bytes of memory each, all"),
];

const STALL: &[Figure] = &[lower("p50_ms", "ms, p50"), lower("max_ms", "ms, longest")];
const FLOODED: &[Figure] = &[
    lower("p50_ms", "ms, p50"),
    lower("max_ms", "ms, longest"),
    lower("fetch_other_ms", "ms, fetch of another"),
    lower("fetch_flooded_ms", "ms, fetch of the flooded one"),
];
const REMOVAL: &[Figure] = &[
    lower("max_ms", "ms, longest hello"),
    lower("commit_max_ms", "ms, longest commit"),
    lower("total_ms", "ms in all"),
    higher("share_percent", "% of the hellos before"),
];
const SNAPSHOT: &[Figure] = &[
    lower("p50_ms", "ms, p50"),
    lower("max_ms", "ms, longest"),
    lower("poll_ms", "ms, empty poll"),
    lower("fetch_ms", "ms, fetch"),
    lower("log_mib", "MiB of log"),
];
const READERS: &[Figure] = &[
    lower("log_mib", "MiB of log at most"),
    higher("per_second", "instances/s"),
    lower("max_ms", "ms, longest"),
];

const ALL: &[&str] = &["sqlite", "postgres", "memory"];
const ON_DISK: &[&str] = &["sqlite", "postgres"];
const SQLITE: &[&str] = &["sqlite"];

/// All cases, in the order in which they are run.
pub(crate) const CASES: &[Case] = &[
    case("w1-throughput", "W1 hello, as many as can be", PER_SECOND, (3.0, 10.0)),
    case("w1-latency", "W1 hello, one at a time", LATENCY, (3.0, 10.0)),
    case("w2-chain:10", "W2 chain of 10", STEP, (2.0, 5.0)),
    case("w2-chain:100", "W2 chain of 100", STEP, (2.0, 8.0)),
    case("w2-chain:1000", "W2 chain of 1000", STEP, (4.0, 30.0)),
    case("w3-fan-out:10", "W3 fan-out of 10", TOTAL, (2.0, 5.0)),
    case("w3-fan-out:100", "W3 fan-out of 100", TOTAL, (2.0, 5.0)),
    case("w3-fan-out:1000", "W3 fan-out of 1000", TOTAL, (4.0, 15.0)),
    full_only(ours_only("w3-fan-out:100000", "W3 fan-out of 100 000", TOTAL, (30.0, 30.0))),
    case("w4-stress", "W4 five activities, 50 in flight", PER_SECOND, (3.0, 10.0)),
    case("w5-children", "W5 ten children each", PER_SECOND, (3.0, 10.0)),
    case("w6-timers:1000", "W6 1000 timers of 1 s", LATE, (5.0, 5.0)),
    case("w7-raise", "W7 raise to resume", LATENCY, (3.0, 10.0)),
    case("w8-continue", "W8 continue-as-new", ITERATION, (4.0, 10.0)),
    untuned("w9-idle", "W9 idle", IDLE, (5.0, 20.0)),
    case("w10-payload", "W10 payloads of 64 KiB", PER_SECOND, (3.0, 10.0)),
    tuned_as("w11-backlog:1000", "W11 backlog of 1 000", PER_SECOND, (20.0, 30.0)),
    tuned_as("w11-backlog:10000", "W11 backlog of 10 000", PER_SECOND, (20.0, 60.0)),
    full_only(tuned_as("w11-backlog:100000", "W11 backlog of 100 000", PER_SECOND, (60.0, 120.0))),
    on(SQLITE, ours_only("s1-crowd:0", "Hello in an empty file", PER_SECOND, (3.0, 10.0))),
    on(
        SQLITE,
        ours_only(
            "s1-crowd:1000000",
            "Hello among a million finished, 100 000 sleeping",
            PER_SECOND,
            (3.0, 10.0),
        ),
    ),
    growth("g1-flooded:1", "G1 1 MiB queued for one", FLOODED, 3.0),
    growth("g1-flooded:64", "G1 64 MiB queued for one", FLOODED, 3.0),
    growth("g2-prune:1000", "G2 1 000 executions pruned", REMOVAL, 2.0),
    growth("g2-prune:50000", "G2 50 000 executions pruned", REMOVAL, 2.0),
    on(ON_DISK, growth("g3-snapshot:5000", "G3 5 000 after a snapshot", SNAPSHOT, 4.0)),
    on(ON_DISK, growth("g3-snapshot:50000", "G3 50 000 after a snapshot", SNAPSHOT, 4.0)),
    growth("g4-sessions:1000", "G4 1 000 for others' sessions", STALL, 3.0),
    growth("g4-sessions:50000", "G4 50 000 for others' sessions", STALL, 3.0),
    on(SQLITE, growth("g5-readers:1", "G5 one reader", READERS, 10.0)),
    on(SQLITE, growth("g5-readers:4", "G5 four readers", READERS, 10.0)),
    growth("g6-delete:1000", "G6 1 000 instances deleted", REMOVAL, 2.0),
    growth("g6-delete:100000", "G6 100 000 instances deleted", REMOVAL, 2.0),
    untuned("m1-sleepers:100000", "Memory of sleeping instances", SLEEPERS, (8.0, 60.0)),
];

/// The store's cases whose names begin with one of the words; all of the mode if there are none.
pub(crate) fn select(words: &[String], full: bool, store: &str) -> Result<Vec<Case>, Failure> {
    for word in words {
        if !CASES.iter().any(|case| case.name.starts_with(word.as_str())) {
            let names: Vec<_> = CASES.iter().map(|case| case.name).collect();
            return Err(format!("no workload {word}; there are {}", names.join(", ")).into());
        }
    }
    let named = |case: &Case| words.iter().any(|word| matches_word(case.name, word));
    let wanted = |case: &&Case| {
        if words.is_empty() {
            full || case.quick
        } else {
            named(case) && (full || case.quick || case.quick_if_named || exact(case, words))
        }
    };
    let possible = |case: &&Case| case.stores.contains(&store);
    let cases: Vec<_> = CASES.iter().filter(possible).filter(wanted).copied().collect();
    if cases.is_empty() {
        return Err(format!("{} cannot be measured on {store}", words.join(", ")).into());
    }
    Ok(cases)
}

impl Case {
    pub(crate) fn seconds(&self, full: bool) -> f64 {
        if full { self.seconds.1 } else { self.seconds.0 }
    }
}

/// `w1` is the workload W1, not W10.
fn matches_word(name: &str, word: &str) -> bool {
    let rest = name.strip_prefix(word);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn exact(case: &Case, words: &[String]) -> bool {
    words.iter().any(|word| word == case.name)
}

const fn case(
    name: &'static str,
    title: &'static str,
    figures: &'static [Figure],
    seconds: (f64, f64),
) -> Case {
    Case {
        name,
        title,
        figures,
        seconds,
        quick: true,
        quick_if_named: true,
        stores: ALL,
        reference: true,
        tuned_by: Some(name),
    }
}

const fn tuned_as(
    name: &'static str,
    title: &'static str,
    figures: &'static [Figure],
    seconds: (f64, f64),
) -> Case {
    Case { tuned_by: Some("w11-backlog:1000"), ..case(name, title, figures, seconds) }
}

const fn untuned(
    name: &'static str,
    title: &'static str,
    figures: &'static [Figure],
    seconds: (f64, f64),
) -> Case {
    Case { tuned_by: None, ..case(name, title, figures, seconds) }
}

const fn ours_only(
    name: &'static str,
    title: &'static str,
    figures: &'static [Figure],
    seconds: (f64, f64),
) -> Case {
    Case { reference: false, ..untuned(name, title, figures, seconds) }
}

/// A hello beside something large. Filling the store takes longer than measuring.
const fn growth(
    name: &'static str,
    title: &'static str,
    figures: &'static [Figure],
    seconds: f64,
) -> Case {
    Case { quick: false, ..ours_only(name, title, figures, (seconds, seconds)) }
}

const fn on(stores: &'static [&'static str], case: Case) -> Case {
    Case { stores, ..case }
}

const fn full_only(case: Case) -> Case {
    Case { quick: false, quick_if_named: false, ..case }
}

const fn higher(key: &'static str, unit: &'static str) -> Figure {
    Figure { key, unit, better: Better::Higher }
}

const fn lower(key: &'static str, unit: &'static str) -> Figure {
    Figure { key, unit, better: Better::Lower }
}

#[cfg(test)]
mod tests {
    use super::select;

    fn names(words: &[&str], full: bool) -> Vec<&'static str> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        select(&words, full, "sqlite").unwrap().iter().map(|case| case.name).collect()
    }

    #[test]
    fn a_word_names_a_workload() {
        assert_eq!(names(&["w1"], false), ["w1-throughput", "w1-latency"]);
        assert_eq!(names(&["w2-chain:10"], false), ["w2-chain:10"]);
        assert_eq!(names(&["w11"], false).len(), 2);
        assert_eq!(names(&["w11"], true).len(), 3);
        assert_eq!(names(&["w11-backlog:100000"], false).len(), 1);
        assert!(select(&["w77".to_owned()], false, "sqlite").is_err());
    }

    #[test]
    fn growth_is_measured_when_named_and_where_it_can_be() {
        assert_eq!(names(&["g4"], false), ["g4-sessions:1000", "g4-sessions:50000"]);
        assert!(names(&[], false).iter().all(|name| !name.starts_with('g')));
        let words = ["g5".to_owned()];
        assert!(select(&words, false, "postgres").is_err());
        assert_eq!(select(&words, false, "sqlite").unwrap().len(), 2);
    }
}
