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

/// The receiving end of a channel nobody sends to.
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
    // Somebody who gives up on the instance is told what he asked for (R3.70).
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
