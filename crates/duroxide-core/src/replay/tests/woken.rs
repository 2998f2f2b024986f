//! What is polled when: wakers, joins, and what other libraries put between durable futures (R3.5,
//! R3.124, R3.130). Every case is also replayed after each turn, cold, and run again by code that is
//! kept.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::channel::mpsc;
use futures::future::{FutureExt as _, join_all, select_all};
use futures::stream::{FuturesUnordered, StreamExt as _, iter};

use super::*;

/// Lives a life: each turn gets the answers to what the turns before asked for, one a turn, the last
/// asked first. Cold and warm turns must come to the same. What it returned.
fn lived<F, Fut>(handler: F) -> String
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    let handler = code(handler);
    let mut story = Story::read("foreign-wait-fails");
    let mut open = Vec::new();
    let mut messages = "start O in".to_owned();
    let mut kept: Option<Suspended> = None;
    for _ in 0..10_000 {
        let (outcome, next) = run_turn_and_keep(turn(&story, &messages, handler.clone()));
        if let Some(kept) = kept.take() {
            let warm = kept.resume(Resumption {
                messages: notation::messages(&messages, 1),
                now_ms: story.settings.now_ms,
                system_calls: None,
            });
            assert_eq!(format!("{:?}", warm.0), format!("{outcome:?}"), "warm against cold");
        }
        kept = next;
        match &outcome.status {
            TurnStatus::Completed(output) => return output.clone(),
            TurnStatus::Running => {}
            other => panic!("{other:?}"),
        }
        open.extend(outcome.activities.iter().filter_map(|work| match work {
            WorkItem::ActivityExecute { id, input, .. } => Some((*id, input.clone())),
            _ => None,
        }));
        story.events.extend(outcome.events);
        let (id, input) = open.pop().unwrap_or_else(|| panic!("hangs after {:#?}", story.events));
        messages = format!("activity-completed {id} \"{input}\"");
    }
    panic!("no end")
}

fn work(ctx: &OrchestrationContext, n: usize) -> impl Future<Output = usize> + Send + use<> {
    ctx.schedule_activity("A", n.to_string()).map(|result| result.unwrap().parse().unwrap())
}

#[test]
fn r3_124_a_join_polls_who_was_woken() {
    static POLLS: AtomicUsize = AtomicUsize::new(0);
    let counted = |ctx: &OrchestrationContext, n| {
        let mut work = Box::pin(work(ctx, n));
        std::future::poll_fn(move |cx| {
            POLLS.fetch_add(1, Ordering::Relaxed);
            work.as_mut().poll(cx)
        })
    };
    let mut history = "1 started O v1.0.0 \"\"\n".to_owned();
    (0..500).for_each(|n| history += &format!("{} activity A \"{n}\"\n", n + 2));
    (0..500)
        .for_each(|n| history += &format!("{} activity-completed {} \"{n}\"\n", n + 502, n + 2));
    let joins = code(move |ctx: OrchestrationContext, _| async move {
        let all = ctx.join((0..500).map(|n| counted(&ctx, n)).collect()).await;
        assert!(all.iter().copied().eq(0..500));
        Ok(all.len().to_string())
    });
    let (_, result) = run_engine(&Story::read(&history), "", joins);
    assert_eq!(notation::result(&result), "completed \"500\"");
    assert_eq!(POLLS.load(Ordering::Relaxed), 1000, "each once to ask, once to read");
}

#[test]
fn r3_124_a_join_in_older_executions_polls_all_branches() {
    static POLLS: AtomicUsize = AtomicUsize::new(0);
    let joins = |ctx: OrchestrationContext, _| async move {
        let idle = std::future::poll_fn(|_| {
            POLLS.fetch_add(1, Ordering::Relaxed);
            std::task::Poll::<usize>::Pending
        });
        let works = work(&ctx, 0);
        ctx.join(vec![idle.boxed(), works.boxed()]).await;
        Ok(String::new())
    };
    let history = "1 started O v1.0.0 \"\"\n2 activity A \"0\"\n3 activity-completed 2 \"0\"";
    run_engine(&Story::read(&format!("stamp 0.1.32\n{history}")), "", code(joins));
    assert_eq!(POLLS.swap(0, Ordering::Relaxed), 2);
    run_engine(&Story::read(history), "", code(joins));
    assert_eq!(POLLS.load(Ordering::Relaxed), 1);
}

#[test]
fn r3_130_combinators_that_rely_on_wakers_work_beside_durable_futures() {
    let together = lived(|ctx, _| async move {
        let _deadline = ctx.schedule_timer(Duration::from_secs(60));
        let all = join_all((0..40).map(|n| work(&ctx, n))).await;
        let (first, _, rest) = select_all((0..40).map(|n| work(&ctx, n).boxed())).await;
        drop(rest);
        Ok(format!("{} {first}", all.iter().sum::<usize>()))
    });
    assert_eq!(together, "780 39");
    let unordered = lived(|ctx, _| async move {
        let set: FuturesUnordered<_> = (0..40).map(|n| work(&ctx, n)).collect();
        let deadline = ctx.schedule_timer(Duration::from_secs(60));
        let all = ctx.select2(set.collect::<Vec<_>>(), deadline).await;
        Ok(format!("{all:?}"))
    });
    let last_asked_first: Vec<usize> = (0..40).rev().collect();
    assert_eq!(unordered, format!("First({last_asked_first:?})"));
    let streams = lived(|ctx, _| async move {
        let in_order = iter(0..20).map(|n| work(&ctx, n)).buffered(3).collect::<Vec<_>>();
        let as_they_come = iter(20..40).map(|n| work(&ctx, n)).buffer_unordered(3);
        let (one, other) = ctx.join2(in_order, as_they_come.collect::<Vec<_>>()).await;
        assert!(one.iter().copied().eq(0..20));
        Ok(format!("{other:?}"))
    });
    assert!(streams.starts_with("[22, "), "{streams}");
    let shared = lived(|ctx, _| async move {
        let shared = work(&ctx, 7).shared();
        let all = ctx.join(vec![shared.clone(), shared.clone(), shared]).await;
        Ok(format!("{all:?}"))
    });
    assert_eq!(shared, "[7, 7, 7]");
}

#[test]
fn r3_130_branches_may_talk_to_one_another() {
    let piped = lived(|ctx, _| async move {
        let (sender, mut receiver) = mpsc::channel(1);
        let producers: Vec<_> = (0..5)
            .map(|n| {
                let (mut sender, ctx) = (sender.clone(), ctx.clone());
                async move {
                    for step in 0..3 {
                        let page = work(&ctx, n * 10 + step).await;
                        futures::SinkExt::send(&mut sender, page).await.unwrap();
                    }
                }
            })
            .collect();
        drop(sender);
        let consumer = async {
            let mut stored = Vec::new();
            while let Some(page) = receiver.next().await {
                stored.push(work(&ctx, 100 + page).await);
            }
            stored
        };
        let (mut stored, _) = ctx.join2(consumer, ctx.join(producers)).await;
        stored.sort_unstable();
        Ok(format!("{stored:?}"))
    });
    assert_eq!(
        piped,
        "[100, 101, 102, 110, 111, 112, 120, 121, 122, 130, 131, 132, 140, 141, 142]"
    );
    let locked = lived(|ctx, _| async move {
        let ledger = futures::lock::Mutex::new(Vec::new());
        let entries = (0..20).map(|n| {
            let (ctx, ledger) = (&ctx, &ledger);
            async move {
                let mut ledger = ledger.lock().await;
                let entry = work(ctx, n).await;
                ledger.push(entry);
            }
        });
        ctx.join(entries.collect()).await;
        let mut ledger = ledger.into_inner();
        ledger.sort_unstable();
        Ok(format!("{ledger:?}"))
    });
    assert_eq!(locked, format!("{:?}", (0..20).collect::<Vec<_>>()));
}
