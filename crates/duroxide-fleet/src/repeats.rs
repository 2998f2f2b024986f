//! Activities that ran more often than they were scheduled, and whether there was a reason.

use std::collections::HashMap;

use crate::journal::Line;
use crate::store::{Event, Tables};

/// An activity: instance, execution, label.
pub(crate) type Activity = (String, u64, String);

/// Length of the shortest lease of an activity in a fleet, less what may pass between taking it and beginning.
const LEASE_MS: u64 = 1_500;
/// Faults after which a run may be repeated; the process is named by `KILL` only. A `FAULT` lasts until
/// the next `OVER`, if one follows.
const FAULTS: [&str; 5] = ["KILL", "STOP", "CONT", "FAULT", "OVER"];

/// Activities that ran more often than they were scheduled.
pub(crate) struct Repeat {
    /// Why that should not have been, if so.
    pub(crate) problem: Option<String>,
    /// From the death of its holder to the next run.
    pub(crate) recovery_ms: Option<u64>,
}

/// All runs but the last of activities that ran too often.
pub(crate) fn repeats(tables: &Tables, lines: &[Line]) -> Vec<Repeat> {
    let mut scheduled: HashMap<Activity, usize> = HashMap::new();
    for (activity, _) in activities(tables, "ActivityScheduled") {
        *scheduled.entry(activity).or_default() += 1;
    }
    let mut runs: HashMap<Activity, Vec<&Line>> = HashMap::new();
    for line in lines.iter().filter(|line| line.says(&["S"])) {
        runs.entry(activity_of(line)).or_default().push(line);
    }
    let faults: Vec<&Line> = lines.iter().filter(|line| FAULTS.contains(&line.word(0))).collect();
    let mut found = Vec::new();
    for (activity, runs) in runs {
        let Some(scheduled) = scheduled.get(&activity) else {
            // Instances may be gone; that is checked elsewhere.
            continue;
        };
        let interrupted =
            runs.windows(2).filter_map(|pair| interruption(&faults, pair[0], pair[1]));
        let interrupted: Vec<Option<u64>> = interrupted.collect();
        let extra = runs.len().saturating_sub(*scheduled);
        if interrupted.len() < extra {
            let interrupted = interrupted.len();
            let problem = format!(
                "{activity:?} ran {} times, scheduled {scheduled}, interrupted {interrupted}: {runs:?}",
                runs.len()
            );
            found.push(Repeat { problem: Some(problem), recovery_ms: None });
        } else {
            let repeats = interrupted.into_iter().take(extra);
            found.extend(repeats.map(|recovery_ms| Repeat { problem: None, recovery_ms }));
        }
    }
    found
}

/// Why a run had to be repeated, if there is a reason; with the time since the holder's death.
fn interruption(faults: &[&Line], run: &Line, next: &Line) -> Option<Option<u64>> {
    let holder = run.process.to_string();
    let killed = faults.iter().find(|line| line.says(&["KILL", &holder]));
    if let Some(killed) = killed.filter(|killed| killed.at_ms <= next.at_ms) {
        return Some(Some(next.at_ms - killed.at_ms));
    }
    // A process that is stopped may hold what others wait for, and keep all of them from renewing.
    let before = run.at_ms.saturating_sub(2 * LEASE_MS);
    let is_near = |line: &&&Line| before <= line.at_ms && line.at_ms <= next.at_ms;
    let stopped = faults.iter().filter(is_near).any(|line| !line.says(&["KILL"]));
    let lasts = faults.windows(2).any(|pair| {
        let is_one = pair[0].says(&["FAULT"]) && pair[1].says(&["OVER"]);
        is_one && pair[0].at_ms <= next.at_ms && before <= pair[1].at_ms
    });
    (stopped || lasts || run.at_ms + LEASE_MS <= next.at_ms).then_some(None)
}

/// Activities with an event about each.
pub(crate) fn activities<'a>(tables: &'a Tables, kind: &str) -> Vec<(Activity, &'a Event)> {
    let by_place = tables.by_place();
    let about = tables.events.iter().filter(|event| event.body["type"] == kind);
    let with_schedule = about.map(|event| {
        let place = event.source.unwrap_or(event.event);
        let schedule = by_place[&(event.instance.as_str(), event.execution, place)];
        let order = schedule.body["input"].as_str().unwrap_or_default();
        let order: serde_json::Value = serde_json::from_str(order).unwrap_or_default();
        let label = order["label"].as_str().unwrap_or_default().to_owned();
        ((event.instance.clone(), event.execution, label), event)
    });
    with_schedule.collect()
}

pub(crate) fn activity_of(line: &Line) -> Activity {
    (line.word(1).to_owned(), line.word(2).parse().unwrap(), line.word(3).to_owned())
}
