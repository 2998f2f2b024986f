//! What cannot be delivered or read is kept to be looked at, and hurts nobody.

use super::lab::{Lab, Promise, lab, lab_on};
use super::words::*;
use super::{ProviderFactory, Skip};
use crate::providers::DeadLetter;

const SECTION: &str = "unknown-instances";
const NOT_LISTED: Skip = Some("the provider lists no dead letters");
const NOT_TOLD: Skip = Some("the factory has no store with a retention of its own");
const NOT_DAMAGED: Skip = Some("the factory cannot damage queued rows");
/// How far the store's clock may be from ours.
const CLOCKS_DIFFER_MS: u64 = 1000;

/// Queue messages for nobody can be looked at.
pub async fn queue_messages_for_nobody_are_listed<F: ProviderFactory>(factory: &F) -> Skip {
    let says = "queue messages for nobody are listed once: instance, text, reason, time";
    let lab = lab(factory, Promise { rule: "R8.137", says, section: SECTION }).await.patient();
    if !lists_letters(&lab).await {
        return NOT_LISTED;
    }
    let before = lab.now_ms();
    let sent = [("ghost", "first words"), ("ghost", "second words"), ("other", "third words")];
    for (instance, words) in sent {
        lab.send(queue_message(instance, words)).await;
    }
    lab.no_turn().await;
    lab.no_turn().await;
    let times = before - CLOCKS_DIFFER_MS..=lab.now_ms() + CLOCKS_DIFFER_MS;
    lab.same("the number of dead letters", letters(&lab).await.len(), sent.len());
    for (instance, words) in sent {
        let letter = letter_saying(&lab, words).await;
        lab.same("the instance", letter.instance.as_deref(), Some(instance));
        lab.expect(!letter.reason.is_empty(), "a reason", &letter);
        lab.expect(times.contains(&letter.at_ms), &format!("a time in {times:?}"), &letter);
    }
    None
}

/// What was delivered, or waits, is no dead letter.
pub async fn what_can_be_delivered_is_not_listed<F: ProviderFactory>(factory: &F) -> Skip {
    let says = "messages that were delivered, or wait for a start, are no dead letters";
    let lab = lab(factory, Promise { rule: "R8.137", says, section: SECTION }).await.patient();
    if !lists_letters(&lab).await {
        return NOT_LISTED;
    }
    lab.begin("a").await;
    lab.send(raise("ghost", "x")).await;
    lab.send(queue_message("a", "y")).await;
    let turn = lab.turn_of("a").await;
    lab.committed(&turn, commit()).await;
    lab.no_turn().await;
    lab.same("the dead letters", letters(&lab).await, []);
    None
}

/// A message does not wait for its instance for ever.
pub async fn messages_nobody_came_for_are_given_up<F: ProviderFactory>(factory: &F) -> Skip {
    let says = "messages for nobody become dead letters after the time the store was told";
    let promise = Promise { rule: "R8.29", says, section: SECTION };
    let Some(store) = factory.create_with_orphan_retention(factory.lock_timeout()).await else {
        return NOT_TOLD;
    };
    let lab = lab_on(store, factory, promise).patient();
    lab.send(raise("a", "too early")).await;
    let given_up = || async {
        lab.no_turn().await;
        letters(&lab).await.pop()
    };
    let letter = lab.soon("the message to be given up", given_up).await;
    lab.same("the instance", letter.instance.as_deref(), Some("a"));
    lab.expect(letter.payload.contains("too early"), "the message in the letter", &letter);
    lab.send(raise("a", "in time")).await;
    lab.send(start("a")).await;
    lab.batch(&lab.turn_of("a").await, [raise("a", "in time"), start("a")]);
    lab.same("the number of dead letters", letters(&lab).await.len(), 1);
    None
}

/// Messages that cannot be read keep none behind them waiting.
pub async fn unreadable_messages_hold_up_nobody<F: ProviderFactory>(factory: &F) -> Skip {
    let says = "a message that cannot be read is put aside, and the rest of its batch is served";
    let lab = lab(factory, Promise { rule: "R8.30", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.begin("b").await;
    lab.send(raise("a", "unreadable")).await;
    if !factory.corrupt_queued_messages("a").await {
        return NOT_DAMAGED;
    }
    lab.send(raise("a", "readable")).await;
    lab.send(raise("b", "x")).await;
    let turn = lab.turn_of("a").await;
    lab.batch(&turn, [raise("a", "readable")]);
    lab.committed(&turn, commit().event(note(2))).await;
    lab.batch(&lab.turn_of("b").await, [raise("b", "x")]);
    lab.no_turn().await;
    buried(&lab, "a", 1).await;
    None
}

/// A turn of nothing but unreadable messages is no turn.
pub async fn unreadable_messages_alone_are_no_turn<F: ProviderFactory>(factory: &F) -> Skip {
    let says = "an instance with nothing but unreadable messages is not served, and hurts nobody";
    let lab = lab(factory, Promise { rule: "R8.98", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.send(raise("a", "unreadable")).await;
    lab.send(start("c")).await; // unreadable, too: it never becomes an instance
    if !factory.corrupt_queued_messages("a").await || !factory.corrupt_queued_messages("c").await {
        return NOT_DAMAGED;
    }
    lab.no_turn().await;
    lab.begin("b").await;
    lab.step("a", commit().event(note(2))).await;
    lab.no_turn().await;
    buried(&lab, "a", 1).await;
    buried(&lab, "c", 1).await;
    None
}

/// Activities that cannot be read keep none behind them waiting.
pub async fn unreadable_work_holds_up_nobody<F: ProviderFactory>(factory: &F) -> Skip {
    let says = "an activity that cannot be read is put aside, and those behind it are served";
    let lab = lab(factory, Promise { rule: "R8.78", says, section: SECTION }).await.patient();
    lab.queue(activity("a", 2)).await;
    lab.queue(activity("a", 3)).await;
    if !factory.corrupt_queued_work("a").await {
        return NOT_DAMAGED;
    }
    lab.queue(activity("a", 4)).await;
    lab.queue(activity("b", 5)).await;
    lab.same("the first readable activity", lab.job().await.item, activity("a", 4));
    lab.same("the next", lab.job().await.item, activity("b", 5));
    lab.no_job().await;
    buried(&lab, "a", 2).await;
    None
}

const PROBE: &str = "probe";

/// Whether the store lists dead letters at all, which it need not.
async fn lists_letters(lab: &Lab) -> bool {
    lab.send(queue_message(PROBE, "probe")).await;
    lab.no_turn().await;
    let Some(admin) = lab.as_management_capability() else { return false };
    !lab.ok("list_dead_letters", admin.list_dead_letters().await).is_empty()
}

/// All dead letters but that of the probe.
async fn letters(lab: &Lab) -> Vec<DeadLetter> {
    let mut letters = lab.ok("list_dead_letters", lab.admin().list_dead_letters().await);
    letters.retain(|letter| letter.instance.as_deref() != Some(PROBE));
    letters
}

/// The one letter with these words.
async fn letter_saying(lab: &Lab, words: &str) -> DeadLetter {
    let mut letters = letters(lab).await;
    letters.retain(|letter| letter.payload.contains(words));
    match letters.pop() {
        Some(letter) if letters.is_empty() => letter,
        _ => lab.broken(&format!("one letter that says {words:?}"), letters),
    }
}

/// If the store lists dead letters, so many of them are of this instance, or of unreadable origin.
async fn buried(lab: &Lab, instance: &str, expected: usize) {
    if !lists_letters(lab).await {
        return;
    }
    let mut letters = letters(lab).await;
    letters.retain(|letter| letter.instance.as_deref().is_none_or(|id| id == instance));
    let reasons = letters.iter().all(|letter| !letter.reason.is_empty());
    let found = expected <= letters.len() && reasons;
    lab.expect(found, &format!("{expected} dead letters of {instance:?}, with reasons"), letters);
}
