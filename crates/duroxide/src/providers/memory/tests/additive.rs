//! The additive methods (R8.130 – R8.137, L23).

use std::time::Duration;

use super::lab::*;
use crate::clock::{Clock, TokioClock};
use crate::providers::{Provider, ProviderAdmin};
use crate::random::Random;
use duroxide_core::model::{ErrorDetails, Event, EventKind, OrchestrationStatus};

#[tokio::test(start_paused = true)]
async fn r8_130_a_turn_without_history_says_how_long_it_is() {
    let lab = lab();
    lab.send(start("a")).await;
    let turn = lab.fetch_turn(LOCK, AT_ONCE, None).await.unwrap().unwrap();
    assert_eq!((turn.last_event_id, turn.history_included), (0, true), "nothing is everything");
    lab.commit(&turn, first_commit("a").event(set(2, "k", "v")).ends("ContinuedAsNew", "x"))
        .await
        .unwrap();
    lab.step("a", commit().in_execution(2).event(started("a")).event(note(2))).await;
    lab.send(raise("a", "x")).await;
    let turn = lab.fetch_turn(LOCK, AT_ONCE, None).await.unwrap().unwrap();
    assert_eq!((turn.last_event_id, turn.history_included), (2, false));
    assert!(turn.item.history.is_empty());
    assert_eq!((turn.item.execution_id, turn.attempt_count), (2, 1));
    assert_eq!(turn.item.messages, [raise("a", "x")]);
    assert_eq!(turn.item.kv_snapshot["k"].value, "v");
}

#[tokio::test(start_paused = true)]
async fn r8_131_history_from_an_id_on() {
    let lab = lab();
    lab.begin_as("a", [2, 3, 5].into_iter().fold(first_commit("a"), |c, id| c.event(note(id))))
        .await;
    for (from, limit, expected) in [
        (0, None, vec![1, 2, 3, 5]),
        (3, None, vec![3, 5]),
        (4, None, vec![5]),
        (2, Some(2), vec![2, 3]),
        (6, None, vec![]),
        (1, Some(0), vec![]),
    ] {
        let events = lab.read_history_from("a", 1, from, limit).await.unwrap();
        let ids: Vec<u64> = events.iter().map(Event::event_id).collect();
        assert_eq!(ids, expected, "from {from}, {limit:?}");
    }
    assert!(lab.read_history_from("a", 2, 1, None).await.unwrap().is_empty());
    assert!(lab.read_history_from("nobody", 1, 1, None).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn r8_132_a_refused_commit_comes_back() {
    let lab = lab();
    lab.send(start("a")).await;
    let turn = lab.turn().await;
    let first = first_commit("a").work(activity("a", 2));
    let rejected = lab.commit_turn("lock_x", first).await.unwrap_err();
    assert!(rejected.error.message.contains("Invalid lock token"));
    assert_eq!(
        (rejected.error.operation.as_str(), rejected.error.retryable),
        ("commit_turn", false)
    );
    assert_eq!(rejected.commit.worker_items, [activity("a", 2)]);
    lab.commit_turn(&turn.lock_token, *rejected.commit).await.unwrap();
    assert_eq!(lab.job().await.id(), 2);
}

#[tokio::test(start_paused = true)]
async fn r8_133_status_without_history() {
    let lab = lab();
    lab.send(start("a")).await;
    assert_eq!(lab.read_status("a").await.unwrap(), OrchestrationStatus::NotFound); // R6.24
    let turn = lab.turn().await;
    lab.commit(&turn, first_commit("a").event(show(2, Some("busy")))).await.unwrap();
    let (custom_status, custom_status_version) = (Some("busy".to_owned()), 1);
    let running = OrchestrationStatus::Running {
        custom_status: custom_status.clone(),
        custom_status_version,
    };
    assert_eq!(lab.read_status("a").await.unwrap(), running);

    let continued = EventKind::OrchestrationContinuedAsNew { input: "x".into() };
    lab.step("a", commit().event(event(3, continued)).ends("ContinuedAsNew", "x")).await;
    assert_eq!(lab.read_status("a").await.unwrap(), running, "R6.22");
    let completed = EventKind::OrchestrationCompleted { output: "42".into() };
    let last = commit().in_execution(2).event(started("a")).event(event(2, completed));
    lab.step("a", last.event(note(3))).await;
    let output = "42".to_owned();
    let expected = OrchestrationStatus::Completed { output, custom_status, custom_status_version };
    assert_eq!(lab.read_status("a").await.unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn r8_133_agrees_with_the_history() {
    let failed = |id, why: &str| {
        event(id, EventKind::OrchestrationFailed { details: ErrorDetails::cancelled(why) })
    };
    let completed = |id| event(id, EventKind::OrchestrationCompleted { output: "x".into() });
    for history in [
        vec![],
        vec![note(1)],
        vec![started("a"), note(2)],
        vec![started("a"), completed(2), failed(3, "both")],
        vec![started("a"), failed(5, "later id"), completed(2)],
    ] {
        let lab = lab();
        lab.append_with_execution("a", 1, history).await.unwrap();
        let stored = lab.read("a").await.unwrap();
        let expected = OrchestrationStatus::from_history(&stored, (None, 0));
        assert_eq!(lab.read_status("a").await.unwrap(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn r8_134_a_commit_ends_the_wait() {
    let lab = lab();
    let unknown = lab.wait_for_commit("a", 0, AT_ONCE).await.unwrap();
    let waiter = tokio::spawn({
        let lab = lab.clone();
        async move { lab.wait_for_commit("a", unknown, LONG).await.unwrap() }
    });
    let began = tokio::time::Instant::now();
    tokio::task::yield_now().await;
    lab.begin("a").await;
    let seen = waiter.await.unwrap();
    assert!(seen != unknown && began.elapsed() == AT_ONCE);
    assert_eq!(lab.wait_for_commit("a", unknown, LONG).await, Some(seen), "no wait: it is news");
    assert_eq!(began.elapsed(), AT_ONCE);
    assert_eq!(lab.wait_for_commit("a", seen, Duration::from_secs(3)).await, Some(seen));
    assert_eq!(began.elapsed(), Duration::from_secs(3), "no news");
    lab.delete_instance("a", true).await.unwrap();
    assert_ne!(lab.wait_for_commit("a", seen, LONG).await, Some(seen), "gone is news too");
    assert_eq!(lab.with(|inner, _| inner.commit_watch.watched()), 0);
}

#[tokio::test(start_paused = true)]
async fn r8_134_waiters_for_other_instances_sleep_on() {
    let lab = lab();
    lab.begin("other").await;
    let mut waiters = tokio::task::JoinSet::new();
    for number in 0..10_000 {
        let lab = lab.clone();
        waiters.spawn(async move {
            lab.wait_for_commit(&format!("i{number}"), 0, LONG).await;
            number
        });
    }
    while lab.with(|inner, _| inner.commit_watch.watched()) < 10_000 {
        tokio::task::yield_now().await;
    }
    lab.begin("i7777").await;
    lab.step("other", commit()).await;
    assert_eq!(waiters.join_next().await.unwrap().unwrap(), 7_777);
    tokio::task::yield_now().await;
    assert!(waiters.try_join_next().is_none());
    assert_eq!(lab.with(|inner, _| inner.commit_watch.watched()), 9_999);
    waiters.shutdown().await;
    assert_eq!(lab.with(|inner, _| inner.commit_watch.watched()), 0, "dropped waits leave nothing");
}

#[tokio::test(start_paused = true)]
async fn r8_135_l23_the_store_s_own_clock_decides() {
    let clock = TokioClock::ahead_by(Duration::from_secs(3600));
    let options = super::super::MemoryOptions {
        clock: std::sync::Arc::new(clock),
        random: Random::seeded(7),
        ..Default::default()
    };
    let lab = Lab(std::sync::Arc::new(super::super::MemoryProvider::with_options(options)));
    assert_eq!(lab.store_time_ms(), Some(clock.now_ms()));
    let due = lab.now() + 100;
    lab.begin_as("a", first_commit("a").message(timer_fired("a", due))).await;
    lab.no_turn().await;
    pass(100).await;
    lab.turn().await;
    assert_eq!(lab.get_instance_info("a").await.unwrap().created_at, due - 100);
}
