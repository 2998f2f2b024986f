//! Fetching turns (R8.20 – R8.27, R8.34).

use std::collections::HashSet;

use super::lab::*;
use crate::providers::Provider;
use duroxide_core::model::{Event, WorkItem};

#[tokio::test(start_paused = true)]
async fn r8_20_the_oldest_visible_message_decides() {
    let lab = lab();
    for instance in ["a", "b", "c"] {
        lab.begin(instance).await;
    }
    lab.send_later(raise("c", "first but hidden"), 10).await;
    lab.send(raise("b", "2")).await;
    lab.send(raise("a", "3")).await;
    lab.send(raise("b", "4")).await;
    assert_eq!(lab.turn().await.item.messages, [raise("b", "2"), raise("b", "4")]);
    pass(10).await;
    assert_eq!(lab.turn().await.item.instance, "c", "visible now, and older than a's");
    assert_eq!(lab.turn().await.item.instance, "a");
    lab.no_turn().await; // R8.27
}

#[tokio::test(start_paused = true)]
async fn r8_21_each_lock_has_its_own_token() {
    let lab = lab();
    let mut tokens = HashSet::new();
    for instance in ["a", "b", "c"] {
        lab.send(start(instance)).await;
        let turn = lab.turn().await;
        assert!(turn.lock_token.starts_with("lock_"));
        tokens.insert(turn.lock_token);
    }
    lab.begin("d").await;
    lab.send(raise("d", "x")).await;
    for _ in 0..3 {
        let turn = lab.turn().await;
        lab.abandon(&turn).await;
        tokens.insert(turn.lock_token);
    }
    assert_eq!(tokens.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn r8_21_all_visible_messages_in_queue_order() {
    let lab = lab();
    lab.begin("a").await;
    for name in ["1", "2", "3"] {
        lab.send(raise("a", name)).await;
    }
    lab.send_later(raise("a", "hidden"), 10).await;
    let expected = ["1", "2", "3"].map(|name| raise("a", name));
    assert_eq!(lab.turn().await.item.messages, expected);
}

#[tokio::test(start_paused = true)]
async fn r8_21_messages_of_an_expired_lock_come_again_with_newer_ones() {
    let lab = lab();
    lab.begin("a").await;
    lab.send(raise("a", "1")).await;
    lab.turn().await;
    lab.send(raise("a", "2")).await;
    pass(LOCK_MS).await;
    assert_eq!(lab.turn().await.item.messages, [raise("a", "1"), raise("a", "2")]);
}

#[tokio::test(start_paused = true)]
async fn r8_23_messages_during_a_lock_wait_for_the_next_turn() {
    let lab = lab();
    lab.begin("a").await;
    lab.send(raise("a", "1")).await;
    lab.send_later(raise("a", "becomes visible meanwhile"), 10).await;
    let turn = lab.turn().await;
    lab.send(done("a", 2)).await;
    pass(10).await;
    lab.no_turn().await;
    lab.commit(&turn, commit()).await.unwrap(); // R8.42: consumes the first one only.
    let next = lab.turn().await;
    assert_eq!(next.item.messages, [raise("a", "becomes visible meanwhile"), done("a", 2)]);
}

#[tokio::test(start_paused = true)]
async fn r8_24_an_existing_instance_describes_itself() {
    let lab = lab();
    lab.looping("a", 2).await;
    lab.send(raise("a", "x")).await;
    let item = lab.turn().await.item;
    assert_eq!((item.orchestration_name.as_str(), item.version.as_str()), ("Orch", "1.0.0"));
    assert_eq!((item.execution_id, item.history.len()), (2, 1), "the current execution's history");
}

#[tokio::test(start_paused = true)]
async fn r8_25_a_start_describes_a_new_instance() {
    let lab = lab();
    let mut unversioned = start("a");
    if let WorkItem::StartOrchestration { version, .. } = &mut unversioned {
        *version = None;
    }
    lab.send(unversioned).await;
    let item = lab.turn().await.item;
    assert_eq!((item.orchestration_name.as_str(), item.version.as_str()), ("Orch", "unknown"));
    assert_eq!((item.execution_id, item.history.is_empty()), (1, true));

    lab.send(continue_as_new("b")).await;
    let item = lab.turn().await.item;
    assert_eq!((item.orchestration_name.as_str(), item.version.as_str()), ("Orch", "unknown"));
    lab.send(start("c")).await;
    assert_eq!(lab.turn().await.item.version, "1.0.0");
}

#[tokio::test(start_paused = true)]
async fn r8_25_without_a_row_the_start_event_describes_the_instance() {
    let lab = lab();
    lab.append_with_execution("a", 1, vec![started("a"), note(2)]).await.unwrap();
    lab.send(raise("a", "x")).await;
    let item = lab.turn().await.item;
    assert_eq!((item.orchestration_name.as_str(), item.version.as_str()), ("Orch", "1.0.0"));
    assert_eq!(item.history.iter().map(Event::event_id).collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn r8_34_r1_13_one_instance_one_turn_at_a_time() {
    let lab = lab();
    for instance in ["a", "b"] {
        lab.send(start(instance)).await;
        lab.send(raise(instance, "x")).await;
    }
    let first = lab.turn().await;
    assert_eq!((first.item.instance.as_str(), first.item.messages.len()), ("a", 2));
    assert_eq!(lab.turn().await.item.instance, "b", "another instance is not held up");
    lab.no_turn().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r8_34_r1_13_concurrent_fetchers_share_instances_out() {
    let lab = lab();
    for number in 0..100 {
        lab.send(start(&format!("i{number}"))).await;
    }
    let fetchers = (0..8).map(|_| {
        let lab = lab.clone();
        tokio::spawn(async move {
            let mut mine = Vec::new();
            while let Some(turn) = lab.try_turn(None).await {
                mine.push(turn.item.instance);
                tokio::task::yield_now().await;
            }
            mine
        })
    });
    let mut all = Vec::new();
    for fetcher in fetchers.collect::<Vec<_>>() {
        all.extend(fetcher.await.unwrap());
    }
    assert_eq!((all.len(), all.iter().collect::<HashSet<_>>().len()), (100, 100));
}
