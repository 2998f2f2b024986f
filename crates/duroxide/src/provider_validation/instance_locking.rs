//! Whoever fetches a turn has its instance to itself, with the messages that were there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::Instant;

use super::ProviderFactory;
use super::lab::{AT_ONCE, Lab, Promise, Turn, lab};
use super::words::*;

const SECTION: &str = "fetching-a-turn";

/// A locked instance is nobody else's until the lock runs out.
pub async fn test_exclusive_instance_lock<F: ProviderFactory>(factory: &F) {
    let says = "a locked instance is not fetched again before its lock runs out";
    let lab = lab(factory, Promise { rule: "R8.20", says, section: SECTION }).await;
    lab.send(start("a")).await;
    let held = lab.patient().turn_of("a").await;
    lab.no_turn().await;
    lab.send(raise("a", "x")).await;
    lab.no_turn().await; // new messages do not open the lock
    lab.abandon(&held).await;
    let began = Instant::now();
    let lapsing = lab.turn_of("a").await;
    let next = lab.turn_soon().await;
    lab.not_before(lab.lock, began, "the lock");
    lab.same("the instance", &next.item.instance, "a");
    lab.same("the messages", &next.item.messages, &lapsing.item.messages);
}

/// No two fetches give the same token.
pub async fn test_lock_token_uniqueness<F: ProviderFactory>(factory: &F) {
    let says = "every fetch gives a lock token of its own";
    let lab = lab(factory, Promise { rule: "R8.21", says, section: SECTION }).await.patient();
    let mut tokens = BTreeSet::new();
    for instance in ["a", "b", "c", "d"] {
        lab.send(start(instance)).await;
        tokens.insert(lab.turn_of(instance).await.token);
    }
    lab.send(start("e")).await;
    let given_back = lab.turn_of("e").await;
    lab.abandon(&given_back).await;
    tokens.insert(lab.turn_of("e").await.token);
    tokens.insert(given_back.token); // not given out twice for one instance, either
    lab.same("the number of different tokens of six fetches", tokens.len(), 6);
}

/// A token that nobody got opens nothing.
pub async fn test_invalid_lock_token_rejection<F: ProviderFactory>(factory: &F) {
    let says = "an unknown lock token can neither commit nor abandon, and changes nothing";
    let lab = lab(factory, Promise { rule: "R8.40", says, section: SECTION }).await.patient();
    lab.send(start("a")).await;
    let turn = lab.turn_of("a").await;
    let bogus = bogus(&turn);
    let all = first_commit("a").work(activity("a", 2)).message(start("b"));
    let committed = lab.commit(&bogus, all).await;
    lab.refused("ack_orchestration_item", committed, &["Invalid lock token"]);
    let abandoned = lab.abandon_orchestration_item(&bogus.token, None, false).await;
    lab.refused("abandon_orchestration_item", abandoned, &[]);
    let renewed = lab.renew_orchestration_item_lock(&bogus.token, lab.lock).await;
    lab.refused("renew_orchestration_item_lock", renewed, &[]);
    lab.same("the events", lab.event_ids("a").await, Vec::<u64>::new());
    lab.no_job().await;
    lab.no_turn().await; // "b" was not queued, and "a" is still locked
    lab.committed(&turn, first_commit("a")).await;
}

/// Fetchers at the same moment get different instances, and all of them.
pub async fn test_concurrent_instance_fetching<F: ProviderFactory>(factory: &F) {
    let says = "fetchers at the same moment get each instance once, and no instance is left out";
    let lab = lab(factory, Promise { rule: "R8.34", says, section: SECTION }).await.patient();
    let names: Vec<String> = (0..10).map(|number| format!("a{number}")).collect();
    for name in &names {
        lab.send(start(name)).await;
    }
    let fetch_one = |lab: Lab| async move {
        let turn = lab.soon("a turn for each fetcher", || try_among_many(&lab)).await;
        turn.item.instance
    };
    let mut fetched = lab.crowd(10, fetch_one).await;
    fetched.sort();
    lab.same("the instances that ten fetchers got", fetched, names);
    lab.no_turn().await;
}

/// Messages that come under a lock wait and then are in one batch with the others.
pub async fn test_completions_arriving_during_lock_blocked<F: ProviderFactory>(factory: &F) {
    let says = "messages that come under a lock wait for the next fetch, which gives all in order";
    let lab = lab(factory, Promise { rule: "R8.23", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.send(raise("a", "before")).await;
    let turn = lab.turn_of("a").await;
    lab.batch(&turn, [raise("a", "before")]);
    lab.send(done("a", 2)).await;
    lab.send(done("a", 3)).await;
    lab.no_turn().await;
    lab.abandon(&turn).await;
    let all = [raise("a", "before"), done("a", 2), done("a", 3)];
    lab.batch(&lab.turn_of("a").await, all);
}

/// The lock of one instance is nothing to another.
pub async fn test_cross_instance_lock_isolation<F: ProviderFactory>(factory: &F) {
    let says = "a locked instance keeps no other instance from being fetched and committed";
    let lab = lab(factory, Promise { rule: "R8.34", says, section: SECTION }).await.patient();
    lab.send(start("a")).await;
    lab.send(start("b")).await;
    let a = lab.turn_of("a").await;
    lab.send(raise("a", "x")).await; // older than what is to come for "b"
    let b = lab.turn_of("b").await;
    lab.committed(&b, first_commit("b")).await;
    lab.send(raise("b", "y")).await;
    let b = lab.turn_of("b").await;
    lab.abandon(&b).await;
    lab.committed(&a, first_commit("a")).await; // its lock survived all that
    lab.same("the events of a", lab.event_ids("a").await, [1]);
    lab.same("the events of b", lab.event_ids("b").await, [1]);
}

/// A commit removes what its fetch gave, and no more.
pub async fn test_message_tagging_during_lock<F: ProviderFactory>(factory: &F) {
    let says = "a commit removes the messages its fetch gave, and no others";
    let lab = lab(factory, Promise { rule: "R8.42", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.begin("b").await;
    lab.send(raise("a", "1")).await;
    let turn = lab.turn_of("a").await;
    lab.batch(&turn, [raise("a", "1")]);
    lab.send(raise("a", "2")).await;
    lab.send(raise("b", "3")).await;
    lab.committed(&turn, commit().event(note(2))).await;
    lab.batch(&lab.turn_of("a").await, [raise("a", "2")]);
    lab.batch(&lab.turn_of("b").await, [raise("b", "3")]);
}

/// Messages that were not fetched survive the commit, in their order.
pub async fn test_ack_only_affects_locked_messages<F: ProviderFactory>(factory: &F) {
    let says = "messages that came or became visible under the lock survive the commit, in order";
    let lab = lab(factory, Promise { rule: "R8.42", says, section: SECTION }).await;
    lab.begin("a").await;
    // Queued before the others, yet not visible when they are fetched.
    lab.send_later(raise("a", "hidden"), lab.patience / 2).await;
    lab.send(raise("a", "1")).await;
    lab.send(raise("a", "2")).await;
    let turn = lab.patient().turn_of("a").await;
    lab.batch(&turn, [raise("a", "1"), raise("a", "2")]);
    lab.send(raise("a", "3")).await;
    lab.send(raise("a", "4")).await;
    lab.committed(&turn, commit().event(note(2))).await;
    let late = lab.patient().turn_of("a").await;
    lab.batch(&late, [raise("a", "3"), raise("a", "4")]);
    lab.committed(&late, commit().event(note(3))).await;
    lab.batch(&lab.turn_soon().await, [raise("a", "hidden")]);
}

/// One of many fetchers gets the only instance.
pub async fn test_multi_threaded_lock_contention<F: ProviderFactory>(factory: &F) {
    let says = "of many fetchers at the same moment one gets the only instance";
    let lab = lab(factory, Promise { rule: "R8.34", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    for round in 0..10 {
        lab.send(raise("a", "x")).await;
        let fetched = lab.crowd(8, |lab| async move { try_among_many(&lab).await }).await;
        let winners: Vec<Turn> = fetched.into_iter().flatten().collect();
        let [winner] = winners.as_slice() else { lab.broken("one winner", winners) };
        lab.committed(winner, commit().event(note(round + 2))).await;
    }
}

/// Many workers do every turn once.
pub async fn test_multi_threaded_no_duplicate_processing<F: ProviderFactory>(factory: &F) {
    let says = "many workers on many instances do each turn once";
    let lab = lab(factory, Promise { rule: "R8.34", says, section: SECTION }).await.patient();
    let names: Vec<String> = (10..40).map(|number| format!("a{number}")).collect();
    for name in &names {
        lab.send(start(name)).await;
    }
    let (served, all) = (Arc::new(AtomicUsize::new(0)), names.len());
    let work = move |lab: Lab| {
        let served = Arc::clone(&served);
        async move {
            let mut mine = Vec::new();
            while let Some(turn) = next_of(&lab, &served, all).await {
                let name = turn.item.instance.clone();
                let commit = || lab.commit(&turn, first_commit(&name));
                lab.through("ack_orchestration_item", commit).await;
                served.fetch_add(1, Ordering::SeqCst);
                mine.push(name);
            }
            mine
        }
    };
    let done = lab.crowd(8, work).await;
    let mut times = BTreeMap::<String, usize>::new();
    done.into_iter().flatten().for_each(|name| *times.entry(name).or_default() += 1);
    let once: BTreeMap<String, usize> = names.into_iter().map(|name| (name, 1)).collect();
    lab.same("how often each instance was served", times, once);
    lab.no_turn().await;
}

/// One of those who wait takes over from a worker that died.
pub async fn test_multi_threaded_lock_expiration_recovery<F: ProviderFactory>(factory: &F) {
    let says = "when a lock runs out, one of those who wait for the instance gets it";
    let lab = lab(factory, Promise { rule: "R8.20", says, section: SECTION }).await;
    lab.send(start("a")).await;
    let began = Instant::now();
    let dead = lab.turn_of("a").await;
    let served = Arc::new(AtomicUsize::new(0));
    let wait = move |lab: Lab| {
        let served = Arc::clone(&served);
        async move {
            let turn = next_of(&lab, &served, 1).await;
            served.fetch_add(usize::from(turn.is_some()), Ordering::SeqCst);
            turn
        }
    };
    let fetched = lab.patient().crowd(5, wait).await;
    lab.not_before(lab.lock, began, "the lock");
    let heirs: Vec<Turn> = fetched.into_iter().flatten().collect();
    let [heir] = heirs.as_slice() else { lab.broken("one heir", heirs) };
    lab.expect(heir.token != dead.token, "a new token", &heir.token);
    lab.refused("the dead worker's commit", lab.commit(&dead, first_commit("a")).await, &[]);
    lab.committed(heir, first_commit("a")).await;
}

/// The same turn with a token that nobody gave.
fn bogus(turn: &Turn) -> Turn {
    let (item, token) = (turn.item.clone(), format!("not {}", turn.token));
    Turn { item, token, attempt: turn.attempt }
}

/// A turn, if there is one, while others fetch, too.
async fn try_among_many(lab: &Lab) -> Option<Turn> {
    let fetch = || lab.fetch_orchestration_item(lab.lock, AT_ONCE, None);
    let fetched = lab.through("fetch_orchestration_item", fetch).await;
    fetched.map(|(item, token, attempt)| Turn { item, token, attempt })
}

/// A turn; none once all have been served.
async fn next_of(lab: &Lab, served: &AtomicUsize, all: usize) -> Option<Turn> {
    let look = || async {
        match try_among_many(lab).await {
            Some(turn) => Some(Some(turn)),
            None => (all <= served.load(Ordering::SeqCst)).then_some(None),
        }
    };
    lab.soon("another turn, or all turns done", look).await
}
