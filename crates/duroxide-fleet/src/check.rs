//! What must be true when everything is over: read from the tables and the journal, not through the
//! library, except for the invariants it offers to check itself.

use std::collections::HashSet;
use std::path::Path;

use duroxide::providers::invariants::check_invariants;

use crate::attend::tried_starts;
use crate::journal::Line;
use crate::repeats::{Activity, activities, activity_of, repeats};
use crate::roles::Stage;
use crate::store::{End, Tables};

/// Everything that is wrong with a store no process has open, and with what was journaled about it.
pub fn problems(stage: &Stage) -> Vec<String> {
    let lines = stage.journal.read();
    let tables = stage.kind.read(&stage.folder);
    let mut problems = bad_words(&stage.folder);
    problems.extend(wrong_ends(&tables, &lines));
    problems.extend(unearned_results(&tables, &lines));
    problems.extend(early_timers(&tables));
    problems.extend(repeats(&tables, &lines).into_iter().filter_map(|repeat| repeat.problem));
    problems.extend(lines.iter().filter(|l| l.says(&["ERR"])).map(|l| l.words.join(" ")));
    problems.extend(tables.leftovers);
    problems.extend(broken_invariants(stage));
    problems
}

/// Fails with all problems, if there are any.
pub fn assert_sound(stage: &Stage, what: &str) {
    let problems = problems(stage);
    let some: Vec<_> = problems.iter().take(20).collect();
    assert!(problems.is_empty(), "{what}: {} problems, such as {some:#?}", problems.len());
}

/// Lines of logs that no process should have written, whatever was done to the others.
fn bad_words(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let logs = files.filter(|file| file.extension().is_some_and(|end| end == "log"));
    let text: String = logs.map(|log| std::fs::read_to_string(log).unwrap()).collect();
    let is_bad = |line: &&str| {
        let bad = ["panicked", " ERROR ", "another process holds"];
        // A process that was stopped for too long finds that its turn went to another.
        bad.iter().any(|words| line.contains(words)) && !line.contains("Invalid lock token")
    };
    text.lines().filter(is_bad).map(str::to_owned).collect()
}

/// Every start that a client tried ended as it should: all were tried again until acknowledged.
fn wrong_ends(tables: &Tables, lines: &[Line]) -> Vec<String> {
    let deleted: HashSet<&str> =
        lines.iter().filter(|l| l.says(&["OK", "delete"])).map(|l| l.word(2)).collect();
    let end = |status: &str, output: String| {
        let (status, output) = (status.to_owned(), Some(output));
        Some(End { status, output })
    };
    let mut problems = Vec::new();
    for (id, program) in tried_starts(lines) {
        let found = tables.ends.get(&id).cloned();
        let expected = match program.expected() {
            _ if deleted.contains(id.as_str()) => None,
            Some(output) => end("Completed", output.to_string()),
            None => end("Failed", "canceled: enough".to_owned()),
        };
        if found != expected {
            let story = story_of(tables, lines, &id);
            problems.push(format!("{id} is {found:?}, not {expected:?}; its story: {story:#?}"));
        }
    }
    problems
}

/// What is known of an instance: its events, and what was journaled of it, in the order of time.
fn story_of(tables: &Tables, lines: &[Line], id: &str) -> Vec<String> {
    let events = tables.events.iter().filter(|event| event.instance == id).map(|event| {
        let (execution, number, body) = (event.execution, event.event, &event.body);
        (event.at_ms, format!("{} event {execution}.{number} {body}", event.at_ms))
    });
    let faults = ["FAULT", "OVER", "KILL", "STOP", "CONT"];
    let told =
        |line: &&Line| line.words.iter().any(|word| word == id) || faults.contains(&line.word(0));
    let told = lines.iter().filter(told).map(|line| {
        (line.at_ms, format!("{} process {} {}", line.at_ms, line.process, line.words.join(" ")))
    });
    let mut story: Vec<(u64, String)> = events.chain(told).collect();
    story.sort_by_key(|(at_ms, _)| *at_ms);
    story.into_iter().map(|(_, line)| line).collect()
}

/// Results in histories are results of runs, each of one run of its own activity.
fn unearned_results(tables: &Tables, lines: &[Line]) -> Vec<String> {
    let ended: HashSet<(Activity, &str)> = lines
        .iter()
        .filter(|line| line.says(&["E"]))
        .map(|line| (activity_of(line), line.word(4)))
        .collect();
    let mut problems = Vec::new();
    for (activity, event) in activities(tables, "ActivityCompleted") {
        let result = event.body["result"].as_str().unwrap_or_default();
        let result: serde_json::Value = serde_json::from_str(result).unwrap_or_default();
        let run = result["run"].as_str().unwrap_or_default();
        if !ended.contains(&(activity.clone(), run)) {
            problems.push(format!("{activity:?} has a result of run {run}, which never ended"));
        }
    }
    problems
}

fn early_timers(tables: &Tables) -> Vec<String> {
    let early = tables.lateness_ms().into_iter().filter(|late| *late < 0).count();
    if early == 0 { Vec::new() } else { vec![format!("{early} timers fired early")] }
}

fn broken_invariants(stage: &Stage) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = stage.store().await;
        check_invariants(&*store).await.err().unwrap_or_default()
    })
}
