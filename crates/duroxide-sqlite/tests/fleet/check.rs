//! What must be true when everything is over: read from the tables and the journal, not through the
//! library, except for the invariants it offers to check itself.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use duroxide::providers::invariants::check_invariants;
use duroxide_sqlite::SqliteProvider;
use rusqlite::Connection;

use crate::attend::tried_starts;
use crate::journal::{Line, now_ms};
use crate::support::stranger;

/// An activity: instance, execution, label.
type Activity = (String, u64, String);

/// Length of an activity's lease in a fleet, less what may pass between taking it and beginning.
const LEASE_MS: u64 = 1_500;

/// Everything that is wrong with a store nobody has open, and with what was journaled about it.
pub(crate) fn problems(folder: &Path, lines: &[Line]) -> Vec<String> {
    let mut problems = leftovers(folder);
    let database = folder.join("store.db");
    let c = stranger(&database);
    problems.extend(damage(&c));
    problems.extend(unfinished(&c));
    problems.extend(wrong_ends(&c, lines));
    problems.extend(unearned_results(&c, lines));
    problems.extend(early_timers(&c));
    problems.extend(repeats(&c, lines).into_iter().filter_map(|repeat| repeat.problem));
    problems.extend(lines.iter().filter(|l| l.says(&["ERR"])).map(|l| l.words.join(" ")));
    drop(c);
    problems.extend(broken_invariants(&database));
    problems
}

/// Fails with all problems, if there are any.
pub(crate) fn assert_sound(folder: &Path, lines: &[Line], what: &str) {
    let problems = problems(folder, lines);
    let some: Vec<_> = problems.iter().take(20).collect();
    assert!(problems.is_empty(), "{what}: {} problems, such as {some:#?}", problems.len());
}

/// Rows that say something is still to be done: not at rest while there are any.
pub(crate) fn open_work(c: &Connection) -> i64 {
    count(
        c,
        "SELECT (SELECT count(*) FROM work) + (SELECT count(*) FROM messages)
         + (SELECT count(*) FROM mailboxes)
         + (SELECT count(*) FROM executions WHERE status = 'Running')",
    )
}

/// Activities that ran more often than they were scheduled.
pub(crate) struct Repeat {
    /// Why that should not have been, if so.
    problem: Option<String>,
    /// From the death of its holder to the next run.
    pub(crate) recovery_ms: Option<u64>,
}

/// All runs but the last of activities that ran too often.
pub(crate) fn repeats(c: &Connection, lines: &[Line]) -> Vec<Repeat> {
    let mut scheduled: HashMap<Activity, usize> = HashMap::new();
    for activity in activities(c, "ActivityScheduled", "h.event", "NULL") {
        *scheduled.entry(activity.0).or_default() += 1;
    }
    let mut runs: HashMap<Activity, Vec<&Line>> = HashMap::new();
    for line in lines.iter().filter(|line| line.says(&["S"])) {
        runs.entry(activity_of(line)).or_default().push(line);
    }
    let is_fault = |line: &&Line| ["KILL", "STOP", "CONT"].contains(&line.word(0));
    let faults: Vec<&Line> = lines.iter().filter(is_fault).collect();
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
    // A process that is stopped may hold the file, and keep everybody from renewing.
    let before = run.at_ms.saturating_sub(2 * LEASE_MS);
    let stopped = faults
        .iter()
        .any(|line| !line.says(&["KILL"]) && (before..=next.at_ms).contains(&line.at_ms));
    (stopped || run.at_ms + LEASE_MS <= next.at_ms).then_some(None)
}

/// Files that ought to be gone with those who had the store open.
fn leftovers(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names
        .filter(|name| name.starts_with("store.db-"))
        .map(|name| format!("{name} is left behind"))
        .collect()
}

fn damage(c: &Connection) -> Vec<String> {
    let mut statement = c.prepare("PRAGMA integrity_check").unwrap();
    let lines = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    lines.map(Result::unwrap).filter(|line| line != "ok").collect()
}

fn unfinished(c: &Connection) -> Vec<String> {
    let counts = [
        ("activities queued", "SELECT count(*) FROM work"),
        ("messages", "SELECT count(*) FROM messages"),
        ("mailboxes", "SELECT count(*) FROM mailboxes"),
        ("dead letters", "SELECT count(*) FROM dead_letters"),
        ("owners", "SELECT count(*) FROM nodes"),
        ("running executions", "SELECT count(*) FROM executions WHERE status = 'Running'"),
    ];
    let mut problems: Vec<String> = counts
        .iter()
        .filter_map(|(what, sql)| Some((what, count(c, sql))).filter(|(_, count)| *count != 0))
        .map(|(what, count)| format!("{count} {what} left"))
        .collect();
    let late = "SELECT count(*) FROM hidden WHERE visible_at < ?1";
    let late: i64 = c.query_row(late, [now_ms() as i64 - 1_000], |row| row.get(0)).unwrap();
    if late != 0 {
        problems.push(format!("{late} messages are due and not delivered"));
    }
    let leased = "SELECT count(*) FROM sessions WHERE until > ?1";
    let leased: i64 = c.query_row(leased, [now_ms() as i64], |row| row.get(0)).unwrap();
    if leased != 0 {
        problems.push(format!("{leased} sessions are leased by nobody"));
    }
    problems
}

/// Every start that anybody tried ended as it should: all were tried again until acknowledged.
fn wrong_ends(c: &Connection, lines: &[Line]) -> Vec<String> {
    let mut statement = c
        .prepare(
            "SELECT e.status, e.output FROM instances i
             JOIN executions e ON e.instance = i.key AND e.number = i.execution WHERE i.id = ?1",
        )
        .unwrap();
    let deleted: HashSet<&str> =
        lines.iter().filter(|l| l.says(&["OK", "delete"])).map(|l| l.word(2)).collect();
    let mut problems = Vec::new();
    for (id, program) in tried_starts(lines) {
        let row = statement.query_row([&id], |row| Ok((row.get(0)?, row.get(1)?)));
        let found: Option<(String, Option<String>)> = row.ok();
        let expected = match program.expected() {
            _ if deleted.contains(id.as_str()) => None,
            Some(output) => Some(("Completed".to_owned(), Some(output.to_string()))),
            None => Some(("Failed".to_owned(), Some("canceled: enough".to_owned()))),
        };
        if found != expected {
            problems.push(format!("{id} is {found:?}, not {expected:?}"));
        }
    }
    problems
}

/// Results in histories are results of runs, each of one run of its own activity.
fn unearned_results(c: &Connection, lines: &[Line]) -> Vec<String> {
    let ended: HashSet<(Activity, &str)> = lines
        .iter()
        .filter(|line| line.says(&["E"]))
        .map(|line| (activity_of(line), line.word(4)))
        .collect();
    let completed = activities(
        c,
        "ActivityCompleted",
        "h.source",
        "json_extract(json_extract(h.body, '$.result'), '$.run')",
    );
    let mut problems = Vec::new();
    for (activity, run) in completed {
        let run = run.unwrap_or_default();
        if !ended.contains(&(activity.clone(), run.as_str())) {
            problems.push(format!("{activity:?} has a result of run {run}, which never ended"));
        }
    }
    problems
}

fn early_timers(c: &Connection) -> Vec<String> {
    let early = "SELECT count(*) FROM history WHERE json_extract(body, '$.type') = 'TimerFired'
                 AND at < json_extract(body, '$.fire_at_ms')";
    let early = count(c, early);
    if early == 0 { Vec::new() } else { vec![format!("{early} timers fired early")] }
}

fn broken_invariants(database: &Path) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let url = format!("sqlite:{}", database.display());
        let store = SqliteProvider::new(&url, None).await.unwrap();
        check_invariants(&store).await.err().unwrap_or_default()
    })
}

/// Activities by an event about them, and something the event says.
fn activities(
    c: &Connection,
    event: &str,
    schedule: &str,
    column: &str,
) -> Vec<(Activity, Option<String>)> {
    let sql = format!(
        "SELECT i.id, h.execution, json_extract(json_extract(s.body, '$.input'), '$.label'), {column}
         FROM history h JOIN instances i ON i.key = h.instance
         JOIN history s ON s.instance = h.instance AND s.execution = h.execution
         AND s.event = {schedule} WHERE json_extract(h.body, '$.type') = ?1"
    );
    let mut statement = c.prepare(&sql).unwrap();
    let rows = statement.query_map([event], |row| {
        let execution: i64 = row.get(1)?;
        Ok(((row.get(0)?, execution as u64, row.get(2)?), row.get(3)?))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

fn activity_of(line: &Line) -> Activity {
    (line.word(1).to_owned(), line.word(2).parse().unwrap(), line.word(3).to_owned())
}

fn count(c: &Connection, sql: &str) -> i64 {
    c.query_row(sql, [], |row| row.get(0)).unwrap()
}
