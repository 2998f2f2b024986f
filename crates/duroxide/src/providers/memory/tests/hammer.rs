//! Many producers and consumers on long polls: whoever misses a wake-up keeps this from ending.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;

use super::lab::*;
use crate::providers::{Provider, TagFilter};

const PRODUCERS: usize = 4;
const PER_PRODUCER: usize = 50;
const TOTAL: usize = PRODUCERS * PER_PRODUCER;

/// Longer than anybody waits here.
const POLL: Duration = Duration::from_secs(600);

/// Real time: shorter than a poll, so that a poll that was not woken is noticed.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("a wake-up was missed")
}

/// Counts down what is left to do.
#[derive(Clone)]
struct Left(Arc<AtomicUsize>);

impl Left {
    fn new(count: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(count)))
    }
    fn any(&self) -> bool {
        self.0.load(Ordering::SeqCst) != 0
    }
    /// Whether this was the last.
    fn one_less(&self) -> bool {
        self.0.fetch_sub(1, Ordering::SeqCst) == 1
    }
}

/// Starts instances from several tasks.
fn produce(lab: &Lab, tasks: &mut JoinSet<()>) {
    for producer in 0..PRODUCERS {
        let lab = lab.clone();
        tasks.spawn(async move {
            for number in 0..PER_PRODUCER {
                lab.send(start(&format!("p{producer}-{number}"))).await;
                if number % 7 == 0 {
                    tokio::task::yield_now().await;
                }
            }
        });
    }
}

/// Serves turns until none are left: each instance runs one activity and ends.
async fn serve_turns(lab: Lab, left: Left, all_done: Arc<tokio::sync::Notify>) {
    while left.any() {
        let fetched = tokio::select! {
            fetched = lab.fetch_turn(LOCK * 10, POLL, None) => fetched.unwrap(),
            () = all_done.notified() => None,
        };
        let Some(turn) = fetched else { continue };
        let instance = turn.item.instance.clone();
        if turn.last_event_id == 0 {
            let first = first_commit(&instance).work(activity(&instance, 2));
            lab.commit(&turn, first).await.unwrap();
        } else {
            assert_eq!(turn.item.messages, [done(&instance, 2)]);
            lab.commit(&turn, commit().ends("Completed", "out")).await.unwrap();
            if left.one_less() {
                all_done.notify_waiters();
            }
        }
    }
    all_done.notify_one();
}

/// Serves activities for ever.
async fn serve_work(lab: Lab) {
    loop {
        let fetched = lab.fetch_work_item(LOCK * 10, POLL, None, &TagFilter::Any).await.unwrap();
        if let Some((item, token, _)) = fetched {
            let duroxide_core::model::WorkItem::ActivityExecute { instance, id, .. } = &item else {
                panic!("not an activity: {item:?}");
            };
            lab.ack_work_item(&token, Some(done(instance, *id))).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r8_32_nothing_is_missed_between_producers_and_consumers() {
    for _ in 0..50 {
        let lab = lab();
        let (left, all_done) = (Left::new(TOTAL), Arc::new(tokio::sync::Notify::new()));
        let (mut servers, mut workers) = (JoinSet::new(), JoinSet::new());
        for _ in 0..6 {
            servers.spawn(serve_turns(lab.clone(), left.clone(), Arc::clone(&all_done)));
            workers.spawn(serve_work(lab.clone()));
        }
        produce(&lab, &mut servers);
        in_time(servers.join_all()).await;
        workers.shutdown().await;
        let snapshot = lab.snapshot();
        assert_eq!(snapshot.instances.len(), TOTAL);
        assert!(snapshot.orchestrator_queue.is_empty() && snapshot.worker_queue.is_empty());
    }
}

/// Consumers that come and go: polls are dropped at random points all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r8_33_dropped_polls_swallow_nothing() {
    for round in 0..50_u64 {
        let lab = lab();
        let left = Left::new(TOTAL);
        let mut tasks = JoinSet::new();
        for consumer in 0..8_u64 {
            let (lab, left) = (lab.clone(), left.clone());
            tasks.spawn(async move {
                let mut turn = round + consumer;
                while left.any() {
                    turn += 1;
                    let impatience = Duration::from_micros(turn % 5 * 150);
                    let poll = lab.fetch_turn(LOCK * 10, POLL, None);
                    let Ok(fetched) = tokio::time::timeout(impatience, poll).await else {
                        continue;
                    };
                    let fetched = fetched.unwrap().unwrap();
                    let first = first_commit(&fetched.item.instance);
                    lab.commit(&fetched, first.ends("Completed", "")).await.unwrap();
                    left.one_less();
                }
            });
        }
        produce(&lab, &mut tasks);
        in_time(tasks.join_all()).await;
    }
}

/// Consumers with different tags and owners: a call never ends with one who cannot use it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r8_32_picky_polls_pass_calls_on() {
    for _ in 0..50 {
        let lab = lab();
        let (left, all_done) = (Left::new(TOTAL), Arc::new(tokio::sync::Notify::new()));
        let (mut producers, mut workers) = (JoinSet::new(), JoinSet::new());
        for (number, tag) in ["a", "b", "c", "a", "b", "c"].into_iter().enumerate() {
            let (lab, left, all_done) = (lab.clone(), left.clone(), Arc::clone(&all_done));
            workers.spawn(async move {
                let (owner, tags) = (lease(&format!("w{number}")), TagFilter::tags([tag]));
                loop {
                    let poll = lab.fetch_work_item(LOCK * 10, POLL, Some(&owner), &tags);
                    let (_, token, _) = poll.await.unwrap().unwrap();
                    lab.ack_work_item(&token, None).await.unwrap();
                    if left.one_less() {
                        all_done.notify_one();
                    }
                }
            });
        }
        for producer in 0..PRODUCERS {
            let lab = lab.clone();
            producers.spawn(async move {
                for number in 0..PER_PRODUCER {
                    let tag = ["a", "b", "c"][number % 3];
                    lab.queue(tagged((producer * PER_PRODUCER + number) as u64, tag)).await;
                }
            });
        }
        in_time(all_done.notified()).await;
        workers.shutdown().await;
    }
}

/// Paused time makes every missed wake-up visible: it would cost (virtual) seconds.
#[tokio::test(start_paused = true)]
async fn r8_32_no_virtual_time_passes_while_there_is_work() {
    let lab = lab();
    let (left, all_done) = (Left::new(TOTAL), Arc::new(tokio::sync::Notify::new()));
    let began = tokio::time::Instant::now();
    let (mut servers, mut workers) = (JoinSet::new(), JoinSet::new());
    for _ in 0..3 {
        servers.spawn(serve_turns(lab.clone(), left.clone(), Arc::clone(&all_done)));
        workers.spawn(serve_work(lab.clone()));
    }
    produce(&lab, &mut servers);
    servers.join_all().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

/// Fetching from a crowded store, without a stopwatch: that it ends at all says the cost does not
/// grow with the crowd (a look at every sleeper would make 5 000 fetches look at 10⁸ rows).
#[tokio::test(start_paused = true)]
async fn fetches_do_not_look_at_those_who_sleep() {
    let lab = lab();
    for number in 0..50_000 {
        lab.send_later(raise(&format!("sleeper-{number}"), "x"), 3_600_000).await;
        lab.queue(tagged(number, "nobody takes this")).await;
    }
    let mut served = HashSet::new();
    for number in 0..5_000 {
        lab.send(start(&format!("i{number}"))).await;
        lab.queue(activity("a", number)).await;
        served.insert(lab.turn().await.item.instance);
        assert_eq!(lab.job().await.id(), number);
    }
    assert_eq!(served.len(), 5_000);
}
