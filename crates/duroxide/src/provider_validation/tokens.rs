//! A lock token is good for one lock: whatever else is called a token gets nowhere.

use std::collections::HashSet;

use super::ProviderFactory;
use super::lab::{Job, LONG, Lab, Promise, Turn, lab};
use super::words::*;
use crate::providers::{ExecutionMetadata, ProviderError};

const SECTION: &str = "committing-a-turn";
const SECTION_WORK: &str = "renewing-locks";

/// Tokens nobody gave are refused.
pub async fn made_up_tokens_are_refused_everywhere<F: ProviderFactory>(factory: &F) {
    let says = "a token that no fetch gave is refused by every call, and harms no lock";
    let lab = lab(factory, Promise { rule: "R8.40", says, section: SECTION }).await.patient();
    let (turn, job) = locked(&lab).await;
    for token in made_up(&turn.token) {
        useless_for_turns(&lab, &token, &["Invalid lock token"]).await;
    }
    for token in made_up(&job.token) {
        useless_for_work(&lab, &token).await;
    }
    still_good(&lab, &turn, &job).await;
}

/// A token of one queue is none of the other.
pub async fn tokens_of_the_other_queue_are_refused<F: ProviderFactory>(factory: &F) {
    let says = "an activity's token is none for turns, a turn's token none for activities";
    let lab = lab(factory, Promise { rule: "R8.40", says, section: SECTION }).await.patient();
    let (turn, job) = locked(&lab).await;
    useless_for_turns(&lab, &job.token, &[]).await;
    useless_for_work(&lab, &turn.token).await;
    still_good(&lab, &turn, &job).await;
}

/// A token ends with the commit or the answer it was for.
pub async fn spent_tokens_are_refused_everywhere<F: ProviderFactory>(factory: &F) {
    let says = "a token is spent by the commit or the answer it was given for";
    let lab = lab(factory, Promise { rule: "R8.56", says, section: SECTION }).await.patient();
    let (turn, job) = locked(&lab).await;
    still_good(&lab, &turn, &job).await;
    let (next_turn, next_job) = locked_again(&lab).await;
    useless_for_turns(&lab, &turn.token, &[]).await;
    useless_for_work(&lab, &job.token).await;
    lab.committed(&next_turn, commit().event(note(3))).await;
    lab.answered(&next_job, None).await;
}

/// A token ends when its lock is given back.
pub async fn given_back_tokens_are_refused_everywhere<F: ProviderFactory>(factory: &F) {
    let says = "a token is spent when its lock is given back";
    let lab = lab(factory, Promise { rule: "R8.65", says, section: SECTION }).await.patient();
    let (turn, job) = locked(&lab).await;
    lab.abandon(&turn).await;
    lab.give_back(&job, None).await;
    useless_for_turns(&lab, &turn.token, &[]).await;
    useless_for_work(&lab, &job.token).await;
    let (next_turn, next_job) = (lab.turn_of("a").await, lab.job().await);
    useless_for_turns(&lab, &turn.token, &[]).await;
    useless_for_work(&lab, &job.token).await;
    still_good(&lab, &next_turn, &next_job).await;
}

/// A token ends when somebody else takes over.
pub async fn outlived_tokens_are_refused_everywhere<F: ProviderFactory>(factory: &F) {
    let says = "a token is worth nothing once another fetch has taken what it locked";
    let lab = lab(factory, Promise { rule: "R8.67", says, section: SECTION }).await;
    lab.begin("a").await;
    lab.send(raise("a", "x")).await;
    lab.queue(activity("a", 2)).await;
    let (turn, job) = (lab.turn_of("a").await, lab.job().await);
    let patient = lab.patient();
    let (next_turn, next_job) = (patient.turn_soon().await, patient.job_soon().await);
    useless_for_turns(&lab, &turn.token, &[]).await;
    useless_for_work(&lab, &job.token).await;
    still_good(&lab, &next_turn, &next_job).await;
}

/// A token whose lock ran out commits nothing, though nobody else wants it.
pub async fn expired_tokens_neither_commit_nor_renew<F: ProviderFactory>(factory: &F) {
    let says = "after its end a lock is neither committed, answered nor renewed, only given back";
    let lab = lab(factory, Promise { rule: "R8.41", says, section: SECTION }).await;
    lab.begin("a").await;
    lab.send(raise("a", "x")).await;
    lab.queue(activity("a", 2)).await;
    let (turn, job) = (lab.turn_of("a").await, lab.job().await);
    lab.locks_run_out().await;
    lab.refused("ack_orchestration_item", ack(&lab, &turn.token).await, &[]);
    lab.refused("commit_turn", commit_turn(&lab, &turn.token).await, &[]);
    let renewed = lab.renew_orchestration_item_lock(&turn.token, LONG).await;
    lab.refused("renew_orchestration_item_lock", renewed, &[]);
    let answered = lab.ack_work_item(&job.token, Some(done("a", 2))).await;
    lab.refused("ack_work_item", answered, &[]);
    lab.refused("renew_work_item_lock", lab.renew_work_item_lock(&job.token, LONG).await, &[]);
    lab.same("the events", lab.event_ids("a").await, [1]);
    // R8.67: giving back is still possible, and means what it says.
    let given_back = lab.abandon_orchestration_item(&turn.token, Some(LONG), false).await;
    lab.ok("abandon_orchestration_item of an expired lock nobody took", given_back);
    lab.no_turn().await;
    lab.patient().job_soon().await;
}

/// Tokens end with the instance they are about.
pub async fn tokens_die_with_their_instance<F: ProviderFactory>(factory: &F) {
    let says = "the tokens of a deleted instance are worth nothing, and bring nothing back";
    let lab = lab(factory, Promise { rule: "R8.57", says, section: SECTION }).await.patient();
    let (turn, job) = locked(&lab).await;
    lab.delete_by_force("a").await;
    useless_for_turns(&lab, &turn.token, &[]).await;
    useless_for_work(&lab, &job.token).await;
    lab.gone("a").await;
    lab.begin("a").await; // a new one of the same name
    useless_for_turns(&lab, &turn.token, &[]).await;
    useless_for_work(&lab, &job.token).await;
    lab.same("the events of the new instance", lab.event_ids("a").await, [1]);
    lab.no_turn().await;
    lab.no_job().await;
}

/// A worker can ask which of its locks are gone, if the store can tell.
pub async fn lost_work_items_are_told<F: ProviderFactory>(factory: &F) {
    let says =
        "lost_work_items tells which tokens' activities are gone, given back, or somebody else's";
    let lab = lab(factory, Promise { rule: "R8.148", says, section: SECTION_WORK }).await.patient();
    lab.begin("a").await;
    for id in 2..=6 {
        lab.queue(activity("a", id)).await;
    }
    let mut jobs = Vec::new();
    for _ in 2..=6 {
        jobs.push(lab.job().await);
    }
    let tokens: Vec<&str> = jobs.iter().map(|job| job.token.as_str()).collect();
    let unknown = lab.ok("lost_work_items", lab.lost_work_items(&["no token"]).await);
    if unknown.is_empty() {
        let told = lab.ok("lost_work_items", lab.lost_work_items(&tokens).await);
        lab.same("what a store that cannot tell says", told, [""; 0]);
        return;
    }
    lab.same("a made-up token", unknown, ["no token"]);
    let told = lab.ok("lost_work_items", lab.lost_work_items(&tokens).await);
    lab.same("those lost while all are held", told, [""; 0]);
    lab.answered(&jobs[0], None).await;
    lab.send(raise("a", "x")).await;
    let turn = lab.turn_of("a").await;
    lab.committed(&turn, commit().event(note(2)).cancelling(identity("a", 3))).await;
    lab.give_back(&jobs[2], None).await;
    let mut told = lab.ok("lost_work_items", lab.lost_work_items(&tokens).await);
    told.sort_unstable();
    let mut lost = [tokens[0], tokens[1], tokens[2]];
    lost.sort_unstable();
    lab.same("those answered, cancelled and given back", told, lost);
    lab.delete_by_force("a").await;
    let told = lab.ok("lost_work_items", lab.lost_work_items(&tokens).await);
    lab.same("how many after the deletion of their instance", told.len(), tokens.len());
}

/// A worker learns by its token that its activity was cancelled.
pub async fn tokens_die_with_their_activity<F: ProviderFactory>(factory: &F) {
    let says = "the token of a cancelled activity is worth nothing";
    let lab = lab(factory, Promise { rule: "R8.52", says, section: SECTION }).await.patient();
    let (turn, job) = locked(&lab).await;
    lab.committed(&turn, commit().event(note(2)).cancelling(identity("a", 2))).await;
    useless_for_work(&lab, &job.token).await;
    lab.no_job().await;
    lab.no_turn().await;
}

/// No two fetches give the same token.
pub async fn every_fetch_gives_a_fresh_token<F: ProviderFactory>(factory: &F) {
    let says = "a token is given once, whatever the queue and however often something is fetched";
    let lab = lab(factory, Promise { rule: "R8.21", says, section: SECTION }).await.patient();
    lab.send(start("a")).await;
    lab.queue(activity("a", 2)).await;
    let mut seen = HashSet::new();
    for _ in 0..50 {
        let (turn, job) = (lab.turn_of("a").await, lab.job().await);
        lab.abandon(&turn).await;
        lab.give_back(&job, None).await;
        for token in [turn.token, job.token] {
            lab.expect(!token.is_empty(), "a token that is not empty", &token);
            lab.expect(seen.insert(token.clone()), "a token never seen before", &token);
        }
    }
}

/// A running instance with a locked turn and a locked activity.
async fn locked(lab: &Lab) -> (Turn, Job) {
    lab.begin("a").await;
    locked_again(lab).await
}

async fn locked_again(lab: &Lab) -> (Turn, Job) {
    lab.send(raise("a", "x")).await;
    lab.queue(activity("a", 2)).await;
    (lab.turn_of("a").await, lab.job().await)
}

/// Texts that look a little like this token.
fn made_up(token: &str) -> Vec<String> {
    let shorter: String = token.chars().skip(1).collect();
    let mut texts = vec![String::new(), " ".into(), "%".into(), "_".into(), "'".into()];
    texts.extend(["nonsense".into(), "x".repeat(10_000), shorter]);
    texts.extend([format!("{token} "), format!(" {token}"), format!("{token}%")]);
    texts.extend([token.to_uppercase(), token.to_lowercase()]);
    texts.retain(|text| text != token);
    texts
}

/// Every call that takes a turn's token refuses this one, and changes nothing.
async fn useless_for_turns(lab: &Lab, token: &str, words: &[&str]) {
    let of = |call: &str| format!("{call} with token {:?}", token.get(..40).unwrap_or(token));
    let before = lab.event_ids("a").await;
    lab.refused(&of("ack_orchestration_item"), ack(lab, token).await, words);
    lab.refused(&of("commit_turn"), commit_turn(lab, token).await, words);
    let renewed = lab.renew_orchestration_item_lock(token, LONG).await;
    lab.refused(&of("renew_orchestration_item_lock"), renewed, &[]);
    for (delay, ignore_attempt) in [(None, false), (Some(LONG), true)] {
        let abandoned = lab.abandon_orchestration_item(token, delay, ignore_attempt).await;
        lab.refused(&of("abandon_orchestration_item"), abandoned, &[]);
    }
    lab.same("the events", lab.event_ids("a").await, before);
}

/// Every call that takes an activity's token refuses this one.
async fn useless_for_work(lab: &Lab, token: &str) {
    let of = |call: &str| format!("{call} with token {:?}", token.get(..40).unwrap_or(token));
    for outcome in [None, Some(done("a", 2)), Some(failed("a", 2))] {
        let answered = lab.ack_work_item(token, outcome).await;
        lab.refused(&of("ack_work_item"), answered, &[]);
    }
    lab.refused(&of("renew_work_item_lock"), lab.renew_work_item_lock(token, LONG).await, &[]);
    for (delay, ignore_attempt) in [(None, false), (Some(LONG), true)] {
        let abandoned = lab.abandon_work_item(token, delay, ignore_attempt).await;
        lab.refused(&of("abandon_work_item"), abandoned, &[]);
    }
}

/// Both locks hold, can be renewed and lead to their ends; nothing else happened meanwhile.
async fn still_good(lab: &Lab, turn: &Turn, job: &Job) {
    lab.no_turn().await;
    lab.no_job().await;
    let renewed = lab.renew_orchestration_item_lock(&turn.token, LONG).await;
    lab.ok("renew_orchestration_item_lock", renewed);
    lab.ok("renew_work_item_lock", lab.renew_work_item_lock(&job.token, LONG).await);
    lab.committed(turn, commit().event(note(2))).await;
    lab.answered(job, None).await;
    lab.no_turn().await;
    lab.no_job().await;
}

async fn ack(lab: &Lab, token: &str) -> Result<(), ProviderError> {
    let (work, message) = (vec![activity("a", 99)], vec![start("b")]);
    let metadata = ExecutionMetadata::default();
    lab.ack_orchestration_item(token, 1, vec![note(99)], work, message, metadata, Vec::new()).await
}

async fn commit_turn(lab: &Lab, token: &str) -> Result<(), ProviderError> {
    let commit = commit().event(note(99)).work(activity("a", 99)).message(start("b"));
    lab.commit_turn(token, commit).await.map_err(|rejected| rejected.error)
}
