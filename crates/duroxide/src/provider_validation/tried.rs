//! Whose lock ended without its holder is handed out alone, and behind what was fetchable then: so
//! that a process that is ended again and again uses up nobody's attempts but its own.

use std::time::Duration;

use tokio::time::timeout;

use super::ProviderFactory;
use super::lab::{AT_ONCE, Job, Lab, Promise, lab};
use super::words::*;
use crate::providers::{FetchedTurn, TagFilter};

const TURNS: &str = "fetching-a-turn";
const WORK: &str = "the-worker-queue";
/// Longer than any check waits.
const POLL: Duration = Duration::from_secs(300);

/// Turns whose locks ended come alone, also after they were given back for a while.
pub async fn a_tried_turn_comes_alone<F: ProviderFactory>(factory: &F) {
    let says = "fetch_turns hands out a turn by itself if a lock ended without commit or give-back";
    let lab = lab(factory, Promise { rule: "R8.146", says, section: TURNS }).await;
    for name in ["a", "b", "c", "d"] {
        lab.send(start(name)).await;
    }
    let [_, _] = [lab.turn_of("a").await, lab.turn_of("b").await];
    lab.locks_run_out().await;
    let lab = lab.patient();
    let fetched = all_turns(&lab).await;
    let [a, b] = ["a", "b"].map(|name| token_of(&fetched, name));
    alone(&lab, &fetched, &[("c", 1), ("d", 1), ("a", 2), ("b", 2)]);
    for token in [&a, &b].into_iter().flatten() {
        let later = lab.abandon_orchestration_item(token, Some(lab.patience / 8), false).await;
        lab.ok("abandon_orchestration_item", later);
    }
    // Once they are to be seen again.
    tokio::time::sleep(lab.patience / 4).await;
    alone(&lab, &all_turns(&lab).await, &[("a", 3), ("b", 3)]);
}

/// Activities whose locks ended come alone, also after they were given back.
pub async fn a_tried_activity_comes_alone<F: ProviderFactory>(factory: &F) {
    let says = "fetch_work_items hands out an activity by itself if a lock ended without an answer";
    let lab = lab(factory, Promise { rule: "R8.146", says, section: WORK }).await;
    for id in 2..7 {
        lab.queue(activity("a", id)).await;
    }
    let [_, _, _] = [lab.job().await, lab.job().await, lab.job().await];
    lab.locks_run_out().await;
    let lab = lab.patient();
    let fetched = all_jobs(&lab).await;
    alone_at_work(&lab, &fetched, &[(5, 1), (6, 1), (2, 2), (3, 2), (4, 2)]);
    for job in fetched.iter().flatten().filter(|job| job.id() < 4) {
        lab.give_back(job, None).await;
    }
    lab.queue(activity("a", 7)).await;
    alone_at_work(&lab, &all_jobs(&lab).await, &[(2, 3), (3, 3), (7, 1)]);
}

/// Turns that were given back come together, as they did before.
pub async fn given_back_turns_come_together<F: ProviderFactory>(factory: &F) {
    let says = "turns that were given back come as many at once as before, attempts counted or not";
    let lab = lab(factory, Promise { rule: "R8.146", says, section: TURNS }).await.patient();
    for name in ["a", "b", "c", "d"] {
        lab.send(start(name)).await;
    }
    let mut sizes = Vec::new();
    for attempt in 1..4 {
        let fetched = all_turns(&lab).await;
        sizes.push(fetched.iter().map(Vec::len).collect::<Vec<_>>());
        for turn in fetched.iter().flatten() {
            lab.same("the attempt", turn.attempt_count, attempt);
            lab.abandon_with(&turn.lock_token, false).await;
        }
    }
    let first = sizes[0].clone();
    lab.same("how many came at a time", sizes, [first.clone(), first.clone(), first]);
}

/// Activities that were given back come together, as they did before.
pub async fn given_back_activities_come_together<F: ProviderFactory>(factory: &F) {
    let says = "activities that were given back come as many at once as before";
    let lab = lab(factory, Promise { rule: "R8.146", says, section: WORK }).await.patient();
    for id in 2..6 {
        lab.queue(activity("a", id)).await;
    }
    let mut sizes = Vec::new();
    for attempt in 1..4 {
        let fetched = all_jobs(&lab).await;
        sizes.push(fetched.iter().map(Vec::len).collect::<Vec<_>>());
        for job in fetched.iter().flatten() {
            lab.same("the attempt", job.attempt, attempt);
            lab.give_back(job, None).await;
        }
    }
    let first = sizes[0].clone();
    lab.same("how many came at a time", sizes, [first.clone(), first.clone(), first]);
}

/// Turns whose locks ran out are behind the others, with their messages as they were.
pub async fn a_turn_whose_lock_ended_goes_behind<F: ProviderFactory>(factory: &F) {
    let says = "a turn whose lock ended without a commit goes behind all that can be fetched then";
    let lab = lab(factory, Promise { rule: "R8.146", says, section: TURNS }).await;
    for name in ["a", "b", "c", "d"] {
        lab.send(start(name)).await;
    }
    for name in ["a", "b"] {
        lab.turn_of(name).await;
        lab.send(raise(name, "late")).await;
    }
    lab.locks_run_out().await;
    let lab = lab.patient();
    for (name, attempt) in [("c", 1), ("d", 1), ("a", 2)] {
        let turn = lab.turn_of(name).await;
        lab.same("the attempt", turn.attempt, attempt);
        if name == "a" {
            lab.batch(&turn, [start("a"), raise("a", "late")]);
        }
    }
    lab.send(start("e")).await; // came when "b" had its place
    let turn = lab.turn_of("b").await;
    lab.batch(&turn, [start("b"), raise("b", "late")]);
    lab.same("the attempt", turn.attempt, 2);
    lab.committed(&turn, first_commit("b")).await;
    lab.send(raise("b", "x")).await;
    lab.turn_of("e").await;
    let turn = lab.turn_of("b").await;
    lab.batch(&turn, [raise("b", "x")]);
    lab.same("the attempt", turn.attempt, 1);
}

/// Activities whose locks ran out are behind the others, also for the owner of their session.
pub async fn an_activity_whose_lock_ended_goes_behind<F: ProviderFactory>(factory: &F) {
    let says = "an activity whose lock ended goes behind all that can be fetched then";
    let lab = lab(factory, Promise { rule: "R8.146", says, section: WORK }).await;
    for item in [activity("a", 2), tagged(3, "x"), activity("a", 4), tagged(5, "x")] {
        lab.queue(item).await;
    }
    for item in [in_session(6, "s"), in_session(7, "s")] {
        lab.queue(item).await;
    }
    let tags = TagFilter::default_and(["x"]);
    for id in [2, 3] {
        lab.same("the activity", job_with(&lab, &tags).await, (id, 1));
    }
    lab.locks_run_out().await;
    let lab = lab.patient();
    for expected in [(4, 1), (5, 1), (2, 2)] {
        lab.same("the activity", job_with(&lab, &tags).await, expected);
    }
    lab.queue(activity("a", 8)).await; // came when the tagged one had its place
    for expected in [(3, 2), (8, 1)] {
        lab.same("the activity", job_with(&lab, &tags).await, expected);
    }
    let bound = lab.job_for("w").await.map(|job| job.id());
    lab.same("the activity of the session", bound, Some(6));
}

/// What is given back keeps its place, also if its lock ran out before.
pub async fn what_is_given_back_keeps_its_place<F: ProviderFactory>(factory: &F) {
    let says = "what was given back is where it was, before what came later";
    let lab = lab(factory, Promise { rule: "R8.146", says, section: TURNS }).await;
    for name in ["a", "b"] {
        lab.send(start(name)).await;
    }
    for id in [2, 3] {
        lab.queue(activity("a", id)).await;
    }
    let (turn, job) = (lab.turn_of("a").await, lab.job().await);
    lab.locks_run_out().await;
    lab.abandon(&turn).await;
    lab.give_back(&job, None).await;
    let lab = lab.patient();
    for attempt in 2..4 {
        let (turn, job) = (lab.turn_of("a").await, lab.job().await);
        lab.same("the attempts", (turn.attempt, job.id(), job.attempt), (attempt, 2, attempt));
        lab.abandon(&turn).await;
        lab.give_back(&job, None).await;
    }
}

/// Moving does not change who may give a turn or an activity back.
pub async fn what_was_moved_can_still_be_given_back<F: ProviderFactory>(factory: &F) {
    let says = "whose lock ran out may give back until somebody else has it, wherever it stands";
    let lab = lab(factory, Promise { rule: "R8.146", says, section: TURNS }).await;
    for name in ["a", "b"] {
        lab.send(start(name)).await;
    }
    for id in [2, 3] {
        lab.queue(activity("a", id)).await;
    }
    let (turn, job) = (lab.turn_of("a").await, lab.job().await);
    lab.locks_run_out().await;
    let lab = lab.patient();
    lab.turn_of("b").await;
    lab.same("the activity that comes first", lab.job().await.id(), 3);
    lab.abandon_with(&turn.token, true).await;
    let given_back = lab.abandon_work_item(&job.token, None, true).await;
    lab.ok("abandon_work_item", given_back);
    lab.send(start("c")).await;
    lab.queue(activity("a", 4)).await;
    let (turn, job) = (lab.turn_of("a").await, lab.job().await);
    lab.same("the attempts", (turn.attempt, job.id(), job.attempt), (1, 2, 1));
}

/// What a fetch leaves behind, since it comes alone, is for the next one that waits.
pub async fn what_is_left_behind_finds_who_waits<F: ProviderFactory>(factory: &F) {
    let says = "an item that one fetch passes over reaches another one that waits, at once";
    let promise = Promise { rule: "R8.146", says, section: "long-polls" };
    let lab = lab(factory, promise).await;
    lab.send(start("tried")).await;
    lab.turn_of("tried").await;
    lab.send(start("fresh")).await;
    lab.locks_run_out().await;
    let lab = lab.patient();
    let soon = lab.patience / 4;
    let (fresh, turn) = (lab.turn_of("fresh").await, lab.turn_of("tried").await);
    // Before the other one, and visible with it.
    let later = lab.abandon_orchestration_item(&fresh.token, Some(soon), true).await;
    lab.ok("abandon_orchestration_item", later);
    let later = lab.abandon_orchestration_item(&turn.token, Some(soon), false).await;
    lab.ok("abandon_orchestration_item", later);
    let wait = || timeout(lab.patience, lab.fetch_turns(lab.lock, POLL, None, 10));
    let (one, other) = tokio::join!(wait(), wait());
    let mut names = Vec::new();
    for turns in [one, other] {
        match turns {
            Ok(turns) => names
                .extend(lab.ok("fetch_turns", turns).into_iter().map(|turn| turn.item.instance)),
            Err(_) => lab.broken("both who wait to be served", names),
        }
    }
    names.sort();
    lab.same("the instances", names, ["fresh", "tried"]);
}

/// While a turn is held, others are fetched and committed, by those who wait as well.
pub async fn a_held_turn_holds_up_nobody<F: ProviderFactory>(factory: &F) {
    let says = "while one instance is locked and gets messages, others are served and committed";
    let promise = Promise { rule: "R8.34", says, section: TURNS };
    let lab = lab(factory, promise).await.patient();
    lab.send(start("held")).await;
    let held = lab.turn_of("held").await;
    for number in 0..10 {
        lab.send(raise("held", "more")).await;
        let name = format!("i{number}");
        let wait = timeout(lab.patience, lab.fetch_turns(lab.lock, POLL, None, 10));
        let (turns, ()) = tokio::join!(wait, lab.send(start(&name)));
        let Ok(turns) = turns else { lab.broken("the turn of another instance", "a wait") };
        let turns = lab.ok("fetch_turns", turns);
        let names: Vec<&str> = turns.iter().map(|turn| turn.item.instance.as_str()).collect();
        lab.same("the instances", names, [name.as_str()]);
        for turn in turns {
            let committed = lab.commit_turn(&turn.lock_token, first_commit(&name)).await;
            lab.expect(committed.is_ok(), "a commit beside the held turn", committed);
        }
    }
    lab.committed(&held, first_commit("held")).await;
    lab.same("the messages that came", lab.turn_of("held").await.item.messages.len(), 10);
}

/// Whatever there is, as many at a time as the store gives.
async fn all_turns(lab: &Lab) -> Vec<Vec<FetchedTurn>> {
    let mut all = Vec::new();
    loop {
        let turns = lab.ok("fetch_turns", lab.fetch_turns(lab.lock, AT_ONCE, None, 10).await);
        if turns.is_empty() {
            return all;
        }
        all.push(turns);
    }
}

async fn all_jobs(lab: &Lab) -> Vec<Vec<Job>> {
    let (mut all, tags) = (Vec::new(), TagFilter::DefaultOnly);
    loop {
        let fetched = lab.fetch_work_items(lab.lock, AT_ONCE, None, &tags, 10).await;
        let fetched = lab.ok("fetch_work_items", fetched).into_iter();
        let jobs: Vec<Job> =
            fetched.map(|(item, token, attempt)| Job { item, token, attempt }).collect();
        if jobs.is_empty() {
            return all;
        }
        all.push(jobs);
    }
}

/// These came in this order with these attempts, the tried ones each in a fetch of its own.
#[track_caller]
fn alone(lab: &Lab, fetched: &[Vec<FetchedTurn>], expected: &[(&str, u32)]) {
    let shared = fetched.iter().find(|f| 1 < f.len() && f.iter().any(|t| 1 < t.attempt_count));
    lab.expect(shared.is_none(), "a turn that was tried before to come alone", shared);
    let all = fetched.iter().flatten();
    let all: Vec<_> = all.map(|turn| (turn.item.instance.as_str(), turn.attempt_count)).collect();
    lab.same("the turns, with their attempts", all, expected);
}

/// The token of this instance's turn.
fn token_of(fetched: &[Vec<FetchedTurn>], instance: &str) -> Option<String> {
    let turn = fetched.iter().flatten().find(|turn| turn.item.instance == instance);
    turn.map(|turn| turn.lock_token.clone())
}

#[track_caller]
fn alone_at_work(lab: &Lab, fetched: &[Vec<Job>], expected: &[(u64, u32)]) {
    let shared = fetched.iter().find(|f| 1 < f.len() && f.iter().any(|job| 1 < job.attempt));
    lab.expect(shared.is_none(), "an activity that was tried before to come alone", shared);
    let all: Vec<_> = fetched.iter().flatten().map(|job| (job.id(), job.attempt)).collect();
    lab.same("the activities, with their attempts", all, expected);
}

async fn job_with(lab: &Lab, tags: &TagFilter) -> (u64, u32) {
    match lab.job_tagged(tags).await {
        Some(job) => (job.id(), job.attempt),
        None => lab.broken("an activity to fetch", "nothing"),
    }
}
