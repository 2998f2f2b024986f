//! Long polls (R8.32, R8.33).

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::lab::*;
use crate::providers::{Provider, TagFilter};

/// A poll for turns in the background.
fn turn_poll(lab: &Lab) -> JoinHandle<Option<String>> {
    let lab = lab.clone();
    tokio::spawn(async move {
        let turn = lab.fetch_turn(LOCK, LONG, None).await.unwrap();
        turn.map(|turn| turn.item.instance)
    })
}

/// A poll for activities in the background.
fn work_poll(lab: &Lab, owner: Option<&str>, tags: TagFilter) -> JoinHandle<Option<u64>> {
    let (lab, session) = (lab.clone(), owner.map(lease));
    tokio::spawn(async move {
        let fetched = lab.fetch_work_item(LOCK, LONG, session.as_ref(), &tags).await.unwrap();
        fetched.map(|(item, token, attempt)| Job { item, token, attempt }.id())
    })
}

/// Lets background tasks run until they wait, without letting time pass.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r8_32_no_poll_timeout_no_wait() {
    let (lab, began) = (lab(), Instant::now());
    lab.no_turn().await;
    lab.no_job().await;
    assert_eq!(began.elapsed(), AT_ONCE);
}

#[tokio::test(start_paused = true)]
async fn r8_32_a_poll_waits_as_long_as_it_was_told_and_no_longer() {
    let (lab, began) = (lab(), Instant::now());
    let second = Duration::from_secs(1);
    assert!(lab.fetch_orchestration_item(LOCK, second, None).await.unwrap().is_none());
    assert_eq!(began.elapsed(), second);
    let tags = TagFilter::Any;
    assert!(lab.fetch_work_item(LOCK, second, Some(&lease("w")), &tags).await.unwrap().is_none());
    assert_eq!(began.elapsed(), second * 2);
    let none = TagFilter::None;
    assert!(lab.fetch_work_item(LOCK, second, None, &none).await.unwrap().is_none());
    assert_eq!(began.elapsed(), second * 3);
}

#[tokio::test(start_paused = true)]
async fn r8_32_what_is_there_comes_at_once() {
    let (lab, began) = (lab(), Instant::now());
    lab.send(start("a")).await;
    lab.queue(activity("a", 2)).await;
    assert_eq!(turn_poll(&lab).await.unwrap().as_deref(), Some("a"));
    assert_eq!(work_poll(&lab, None, TagFilter::Any).await.unwrap(), Some(2));
    assert_eq!(began.elapsed(), AT_ONCE);
}

#[tokio::test(start_paused = true)]
async fn r8_32_a_turn_poll_ends_the_moment_there_is_work() {
    let lab = lab();
    lab.begin("a").await;
    lab.begin("b").await;
    let began = Instant::now();

    let poll = turn_poll(&lab); // Enqueue.
    settle().await;
    lab.send(raise("a", "x")).await;
    assert_eq!(poll.await.unwrap().as_deref(), Some("a"));
    assert_eq!(began.elapsed(), AT_ONCE);
    pass(LOCK_MS).await;
    let turn = lab.turn().await;

    let poll = turn_poll(&lab); // Another instance's commit.
    settle().await;
    lab.commit(&turn, commit().message(raise("b", "x"))).await.unwrap();
    assert_eq!(poll.await.unwrap().as_deref(), Some("b"));

    let poll = turn_poll(&lab); // Lock expiry.
    settle().await;
    pass(LOCK_MS - 1).await;
    settle().await;
    assert!(!poll.is_finished());
    pass(1).await;
    assert_eq!(poll.await.unwrap().as_deref(), Some("b"));
    pass(LOCK_MS).await;

    let turn = lab.turn().await;
    let poll = turn_poll(&lab); // Abandon.
    settle().await;
    lab.abandon(&turn).await;
    assert_eq!(poll.await.unwrap().as_deref(), Some("b"));
    assert_eq!(began.elapsed(), LOCK * 3);
}

#[tokio::test(start_paused = true)]
async fn r8_32_delayed_messages_end_polls_in_time() {
    let lab = lab();
    lab.begin("a").await;
    lab.begin("b").await;
    let polls = [turn_poll(&lab), turn_poll(&lab)];
    settle().await;
    let began = Instant::now();
    lab.send_later(raise("a", "x"), 700).await;
    lab.send_later(raise("b", "x"), 300).await; // Earlier than what is already watched for.
    let [first, second] = polls;
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert_eq!(began.elapsed(), Duration::from_millis(700));
    let mut got = [first.unwrap(), second.unwrap()];
    got.sort();
    assert_eq!(got, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn r8_32_a_worker_poll_ends_the_moment_there_is_work() {
    let lab = lab();
    lab.begin("a").await;
    let began = Instant::now();
    let poll = work_poll(&lab, None, TagFilter::DefaultOnly); // Enqueue.
    settle().await;
    lab.queue(activity("a", 2)).await;
    assert_eq!(poll.await.unwrap(), Some(2));

    let poll = work_poll(&lab, None, TagFilter::DefaultOnly); // Commit.
    settle().await;
    lab.step("a", commit().work(activity("a", 3))).await;
    assert_eq!(poll.await.unwrap(), Some(3));
    assert_eq!(began.elapsed(), AT_ONCE);

    let poll = work_poll(&lab, None, TagFilter::DefaultOnly); // Lock expiry.
    settle().await;
    assert_eq!(poll.await.unwrap(), Some(2));
    assert_eq!(began.elapsed(), LOCK);

    let job = lab.job().await; // 3
    let poll = work_poll(&lab, None, TagFilter::DefaultOnly); // Abandon, later.
    settle().await;
    lab.abandon_work_item(&job.token, Some(Duration::from_millis(50)), false).await.unwrap();
    assert_eq!(poll.await.unwrap(), Some(3));
    assert_eq!(began.elapsed(), LOCK + Duration::from_millis(50));
}

#[tokio::test(start_paused = true)]
async fn r8_32_r8_83_the_end_of_a_lease_ends_the_polls_of_others() {
    let lab = lab();
    lab.queue(in_session(2, "s")).await;
    let job = lab.job_for("w1").await.unwrap();
    lab.renew_work_item_lock(&job.token, LOCK * 10).await.unwrap();
    lab.queue(in_session(3, "s")).await;
    lab.queue(in_session(4, "s")).await;
    let _timekeeper = work_poll(&lab, None, TagFilter::tags(["cpu"])); // Cannot take them itself.
    settle().await;
    let theirs = work_poll(&lab, Some("w2"), TagFilter::DefaultOnly);
    let also_theirs = work_poll(&lab, Some("w2"), TagFilter::DefaultOnly);
    let began = Instant::now();
    settle().await;
    pass(LOCK_MS - 1).await;
    settle().await;
    assert!(!theirs.is_finished() && !also_theirs.is_finished());
    pass(1).await;
    let mut got = [theirs.await.unwrap(), also_theirs.await.unwrap()];
    got.sort();
    assert_eq!(got, [Some(3), Some(4)], "the rows behind the first are found, too");
    assert_eq!(began.elapsed(), LOCK);
}

#[tokio::test(start_paused = true)]
async fn r8_32_one_item_wakes_one_poll_that_can_take_it() {
    let lab = lab();
    let others: Vec<_> = (0..5).map(|_| work_poll(&lab, None, TagFilter::tags(["cpu"]))).collect();
    let gpu = work_poll(&lab, None, TagFilter::tags(["gpu"]));
    settle().await;
    lab.queue(tagged(2, "gpu")).await;
    assert_eq!(gpu.await.unwrap(), Some(2));
    lab.queue(tagged(3, "tpu")).await; // For nobody: nobody stirs.
    settle().await;
    assert!(others.iter().all(|poll| !poll.is_finished()));
    for id in 4..9 {
        lab.queue(tagged(id, "cpu")).await;
    }
    let mut got = Vec::new();
    for other in others {
        got.push(other.await.unwrap().unwrap());
    }
    got.sort_unstable();
    assert_eq!(got, [4, 5, 6, 7, 8]);
}

#[tokio::test(start_paused = true)]
async fn r8_33_a_dropped_poll_passes_its_call_on() {
    let (lab, began) = (lab(), Instant::now());
    let patient = turn_poll(&lab);
    settle().await;
    let mut impatient = Vec::new();
    for _ in 0..3 {
        impatient.push(turn_poll(&lab));
        settle().await;
    }
    lab.send(start("a")).await; // Calls one of the impatient, who will never run again.
    impatient.iter().for_each(JoinHandle::abort);
    assert_eq!(patient.await.unwrap().as_deref(), Some("a"));
    assert_eq!(began.elapsed(), AT_ONCE);
    let snapshot = lab.snapshot();
    assert!(snapshot.orchestrator_queue.iter().all(|m| m.attempts == 1), "nothing half done");
}

#[tokio::test(start_paused = true)]
async fn r8_33_when_the_timekeeper_is_dropped_another_watches() {
    let lab = lab();
    lab.begin("a").await;
    lab.send_later(raise("a", "x"), 500).await;
    let polls: Vec<_> = (0..3).map(|_| turn_poll(&lab)).collect();
    settle().await;
    let began = Instant::now();
    for poll in &polls[..2] {
        poll.abort();
        settle().await;
    }
    let [_, _, last] = <[_; 3]>::try_from(polls).unwrap();
    assert_eq!(last.await.unwrap().as_deref(), Some("a"));
    assert_eq!(began.elapsed(), Duration::from_millis(500));
}

#[tokio::test(start_paused = true)]
async fn r8_33_a_poll_called_for_one_thing_that_takes_another_passes_it_on() {
    let lab = lab();
    lab.queue(tagged(2, "b")).await;
    let old = lab.job_tagged(&TagFilter::Any).await.unwrap();
    let began = Instant::now();
    let _timekeeper = work_poll(&lab, None, TagFilter::tags(["cpu"])); // Takes no part.
    settle().await;
    let any = work_poll(&lab, None, TagFilter::Any);
    let only_a = work_poll(&lab, None, TagFilter::tags(["a"]));
    settle().await;
    lab.queue(tagged(3, "a")).await; // Calls `any`, the first who can take it,
    lab.abandon_work_item(&old.token, None, false).await.unwrap(); // who then finds the older 2.
    assert_eq!((any.await.unwrap(), only_a.await.unwrap()), (Some(2), Some(3)));
    assert_eq!(began.elapsed(), AT_ONCE);
}
