//! Waits for something that is not durable (R3.131, R3.170).

use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use expect_test::expect;

use super::*;

const STARTED: &str = r#"1 started O v1.0.0 """#;

#[test]
fn r3_170_r3_131_a_wait_for_nothing_durable_is_told() {
    check(
        STARTED,
        "",
        |_, _| async { std::future::pending().await },
        expect![[r#"
            continue
            waits for something that is not durable
        "#]],
    );
}

/// The receiving end of a channel without a sender.
struct NeverSent(Arc<Mutex<Option<Waker>>>);

impl Future for NeverSent {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        *self.0.lock().unwrap() = Some(cx.waker().clone());
        Poll::Pending
    }
}

#[test]
fn r3_170_after_durable_work_too() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        "#,
        r#"activity-completed 2 "a""#,
        |ctx, _| async move {
            ctx.schedule_activity("A", "").await?;
            let _held = ctx.schedule_timer(Duration::from_secs(1));
            NeverSent(Arc::default()).await;
            Ok(String::new())
        },
        expect![[r#"
            continue
              3 activity-completed 2 "a"
              4 timer 1s
            actions: timer 4
            waits for something that is not durable
        "#]],
    );
}

#[test]
fn r3_170_beside_durable_work_it_is_none() {
    check(
        STARTED,
        "",
        |ctx, _| async move {
            let timer = ctx.schedule_timer(Duration::from_secs(1));
            ctx.select2(std::future::pending::<()>(), timer).await;
            Ok(String::new())
        },
        expect![[r#"
            continue
              2 timer 1s
            actions: timer 2
        "#]],
    );
    // Nor is the future of continue-as-new, which never resolves.
    check(
        STARTED,
        "",
        |ctx, _| async move { ctx.continue_as_new("").await },
        expect![[r#"
            continue-as-new ""
            actions: continue-as-new
        "#]],
    );
}

#[test]
fn r3_170_a_combinator_that_waits_for_wakers_is_told() {
    // Polls its child once and then only when woken, as unordered sets do.
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        "#,
        r#"activity-completed 2 "a""#,
        |ctx, _| async move {
            let (mut activity, mut polled) = (ctx.schedule_activity("A", ""), false);
            std::future::poll_fn(move |cx| match std::mem::replace(&mut polled, true) {
                false => Pin::new(&mut activity).poll(cx),
                true => Poll::Pending,
            })
            .await
        },
        expect![[r#"
            continue
              3 activity-completed 2 "a"
            waits for something that is not durable
        "#]],
    );
}

#[test]
fn r3_170_it_can_be_made_a_failure() {
    let foreign = |_: OrchestrationContext, _: String| std::future::pending();
    check(
        "foreign-wait-fails\n1 started O v1.0.0 \"\"",
        "",
        foreign,
        expect![[r#"
            failed nondeterminism: orchestration waits for something that is not durable; only await what the context returns (schedule_timer instead of sleep, activities instead of I/O, schedule_wait or dequeue_event instead of channels)
            waits for something that is not durable
        "#]],
    );
    check_turn(
        "foreign-wait-fails",
        "start O in",
        foreign,
        expect![[r#"
            ended: failed
              1 started O v1.0.0 "in"
              2 failed nondeterminism: orchestration waits for something that is not durable; only await what the context returns (schedule_timer instead of sleep, activities instead of I/O, schedule_wait or dequeue_event instead of channels)
            waits for something that is not durable
        "#]],
    );
    // A client that cancels such an instance finds it cancelled, as it asked for (R3.70).
    check_turn(
        "foreign-wait-fails",
        "start O in\ncancel enough",
        foreign,
        expect![[r#"
            ended: failed
              1 started O v1.0.0 "in"
              2 cancel-requested "enough"
              3 failed canceled: enough
            waits for something that is not durable
        "#]],
    );
}

/// Waits for something foreign beside an activity and a signal; the waker it left behind.
fn beside_an_activity(wakers: &Arc<Mutex<Option<Waker>>>) -> Code {
    let wakers = wakers.clone();
    code(move |ctx: OrchestrationContext, _| {
        let foreign = NeverSent(wakers.clone());
        async move {
            let (work, wait) = (ctx.schedule_activity("A", ""), ctx.schedule_wait("Go"));
            let (_, work, _) = ctx.join3(foreign, work, wait).await;
            work
        }
    })
}

/// The first turn with such code, and the next, before which something happens.
fn turns_around(settings: &str, between: impl FnOnce(Waker)) -> (TurnOutcome, TurnOutcome) {
    let wakers = Arc::default();
    let handler = beside_an_activity(&wakers);
    let (first, kept) = run_turn_and_keep(turn(&Story::read(settings), "start O in", handler));
    between(wakers.lock().unwrap().take().unwrap());
    let (second, _) = kept.unwrap().resume(Resumption {
        messages: notation::messages(r#"activity-completed 2 "a""#, 1),
        now_ms: 1_000_000,
        system_calls: None,
    });
    (first, second)
}

#[test]
fn r3_170_a_wake_from_outside_a_turn_is_told_by_the_next() {
    let (first, second) = turns_around("", |_| {});
    assert!(!first.waits_for_foreign && !second.waits_for_foreign, "it has not been woken");
    let (first, second) = turns_around("", Waker::wake);
    assert!(!first.waits_for_foreign, "it might be woken by what it does itself");
    assert!(second.waits_for_foreign);
    assert_eq!(second.status, TurnStatus::Running);
    let (_, failed) = turns_around("foreign-wait-fails", Waker::wake);
    assert!(matches!(failed.status, TurnStatus::Failed(_)), "{failed:?}");
}

#[test]
fn r3_5_a_wake_from_another_thread_polls_nothing() {
    // While the turn runs: the wake comes before the poll returns.
    static POLLS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let woken_elsewhere = |ctx: OrchestrationContext, _| async move {
        let foreign = std::future::poll_fn(|cx| {
            POLLS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let waker = cx.waker();
            std::thread::scope(|threads| threads.spawn(|| waker.wake_by_ref()).join().unwrap());
            Poll::<Result<String, String>>::Pending
        });
        let work = Box::pin(ctx.schedule_activity("A", ""));
        let foreign: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(foreign);
        ctx.join(vec![foreign, work]).await.pop().unwrap()
    };
    check(
        STARTED,
        "",
        woken_elsewhere,
        expect![[r#"
            continue
              2 activity A ""
            actions: activity 2
            waits for something that is not durable
        "#]],
    );
    assert_eq!(POLLS.load(std::sync::atomic::Ordering::Relaxed), 2, "live and replayed");
}

#[test]
fn r3_170_a_durable_future_polled_by_another_task_is_told() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let lends = code(move |ctx: OrchestrationContext, _| {
        sender.send(ctx.schedule_activity("lent", "")).unwrap();
        async move { ctx.schedule_activity("A", "").await }
    });
    let (first, kept) = run_turn_and_keep(turn(&Story::read(""), "start O in", lends));
    assert!(!first.waits_for_foreign);
    let lent = receiver.recv().unwrap();
    let task = Waker::from(Arc::new(Nobody));
    assert!(std::pin::pin!(lent).poll(&mut Context::from_waker(&task)).is_pending());
    let next = Resumption { messages: Vec::new(), now_ms: 1_000_000, system_calls: None };
    assert!(kept.unwrap().resume(next).0.waits_for_foreign);
}

struct Nobody;

impl std::task::Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}
