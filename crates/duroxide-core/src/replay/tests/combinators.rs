//! Durable futures and combinators (§3.13, §4.14).

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use expect_test::expect;

use super::*;
use crate::context::{DurableFuture, Either2, Either3};

const SECOND: Duration = Duration::from_secs(1);

const A_AND_B: &str = r#"
    1 started O v1.0.0 ""
    2 activity A ""
    3 activity B ""
"#;

const A_THEN_B: &str = r#"
    activity-completed 2 "a"
    activity-completed 3 "b"
"#;

const B_THEN_A: &str = r#"
    activity-completed 3 "b"
    activity-completed 2 "a"
"#;

#[test]
fn r3_120_a_durable_future_is_a_plain_future() {
    async fn nested(future: DurableFuture<Result<String, String>>) -> Result<String, String> {
        Ok(format!("nested {}", future.await?))
    }
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 activity B ""
        4 activity C ""
        5 activity D ""
        "#,
        r#"
        activity-completed 2 "a"
        activity-completed 3 "b"
        activity-completed 4 "c"
        activity-completed 5 "d"
        "#,
        |ctx, _| async move {
            let [a, b, mut c, d] = ["A", "B", "C", "D"].map(|name| ctx.schedule_activity(name, ""));
            let direct = a.await?;
            let boxed: Pin<Box<dyn Future<Output = Result<String, String>> + Send>> = Box::pin(b);
            let boxed = boxed.await?;
            let borrowed = (&mut c).await?;
            Ok(format!("{direct} {boxed} {borrowed} {}", nested(d).await?))
        },
        expect![[r#"
            completed "a b c nested d"
              6 activity-completed 2 "a"
              7 activity-completed 3 "b"
              8 activity-completed 4 "c"
              9 activity-completed 5 "d"
        "#]],
    );
}

#[test]
fn r3_121_r4_98_futures_are_send() {
    fn assert_send<T: Send>(_: &T) {}
    let ctx = bare_context();
    assert_send(&ctx.schedule_activity("A", ""));
    assert_send(&ctx.schedule_timer(SECOND).map(|()| Vec::<String>::new()));
    assert_send(&ctx.new_guid());
    assert_send(&ctx.utc_now());
    assert_send(&ctx.join(vec![ctx.schedule_wait("Go")]));
    assert_send(&ctx.select2(ctx.dequeue_event("q"), ctx.schedule_timer(SECOND)));
}

#[test]
fn r3_122_map_changes_the_value_not_the_operation() {
    check(
        A_AND_B,
        r#"activity-completed 2 "a""#,
        |ctx, _| async move {
            let a = ctx.schedule_activity("A", "").map(|result| result.map(|text| text + "!"));
            let b = ctx.schedule_activity("B", "").map(|result| result.is_ok());
            let a = a.await?;
            drop(b); // Cancels B.
            ctx.schedule_activity(a, "").await
        },
        expect![[r#"
            continue
              4 activity-completed 2 "a"
              5 activity a! ""
              6 activity-cancelled 3 dropped_future
            actions: activity 5
            cancelled activities: 3
        "#]],
    );
}

#[test]
fn r3_123_r4_13_r4_14_tags_belong_to_activities() {
    let started = r#"1 started O v1.0.0 """#;
    check(
        started,
        "",
        |ctx, _| async move {
            let plain = ctx.schedule_activity("A", "").with_tag("first").with_tag("last");
            let mapped = ctx.schedule_activity("B", "").map(|result| result).with_tag("mapped");
            let session = ctx.schedule_activity_on_session("C", "", "s").with_tag("both");
            ctx.join(vec![plain, mapped, session]).await;
            Ok(String::new())
        },
        expect![[r#"
            continue
              2 activity A "" tag="last"
              3 activity B "" tag="mapped"
              4 activity C "" on="s" tag="both"
            actions: activity 2, activity 3, activity 4
        "#]],
    );
    check(
        started,
        "",
        |ctx, _| async move {
            ctx.schedule_timer(SECOND).with_tag("gpu").await;
            Ok(String::new())
        },
        expect![[r#"
            failed panic: with_tag() can only be called on activity futures
        "#]],
    );
    check(
        started,
        "queue q m",
        |ctx, _| async move {
            let activity = ctx.schedule_activity("A", "");
            ctx.dequeue_event("q").await; // Suspends: the activity is on its way.
            activity.with_tag("gpu").await
        },
        expect![[r#"
            failed panic: with_tag() can only be called on activity futures, in the same step that schedules the activity
              2 queue q "m"
              3 activity A ""
              4 dequeue q
            actions: activity 3, dequeue 4
        "#]],
    );
}

#[test]
fn r3_124_r4_99_join_gives_results_in_argument_order() {
    check(
        A_AND_B,
        B_THEN_A,
        |ctx, _| async move {
            let (a, b) = (ctx.schedule_activity("A", ""), ctx.schedule_activity("B", ""));
            let none = ctx.join(Vec::<DurableFuture<()>>::new()).await;
            Ok(format!("{none:?} {:?}", ctx.join(vec![a, b]).await))
        },
        expect![[r#"
            completed "[] [Ok(\"a\"), Ok(\"b\")]"
              4 activity-completed 3 "b"
              5 activity-completed 2 "a"
        "#]],
    );
}

/// A future that says when it is polled and dropped, and is ready at its `ready_at`-th poll.
struct Talkative {
    name: &'static str,
    said: Arc<std::sync::Mutex<String>>,
    ready_at: usize,
}

impl Future for Talkative {
    type Output = &'static str;

    fn poll(mut self: Pin<&mut Self>, _: &mut std::task::Context<'_>) -> Poll<&'static str> {
        *self.said.lock().unwrap() += &format!("{} ", self.name);
        self.ready_at -= 1;
        if self.ready_at == 0 { Poll::Ready(self.name) } else { Poll::Pending }
    }
}

impl Drop for Talkative {
    fn drop(&mut self) {
        *self.said.lock().unwrap() += &format!("(drop {}) ", self.name);
    }
}

/// Polls what `make` makes until it is ready; what the futures said, a bar after each poll.
fn conversation<F: Future>(
    make: impl FnOnce(&dyn Fn(&'static str, usize) -> Talkative) -> F,
) -> String {
    let said = Arc::new(std::sync::Mutex::new(String::new()));
    let talkative = |name, ready_at| Talkative { name, said: said.clone(), ready_at };
    let mut future = Box::pin(make(&talkative));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    while future.as_mut().poll(&mut cx).is_pending() {
        *said.lock().unwrap() += "| ";
    }
    drop(future);
    said.lock().unwrap().trim_end().to_owned()
}

#[test]
fn r3_124_join_polls_every_unfinished_child_in_order_and_drops_finished_ones_at_once() {
    let ctx = bare_context();
    let text = [
        conversation(|new| ctx.join(vec![new("a", 2), new("b", 1), new("c", 3)])),
        conversation(|new| ctx.join2(new("a", 2), new("b", 1))),
        conversation(|new| ctx.join3(new("a", 2), new("b", 1), new("c", 3))),
    ];
    expect![[r#"
        a b (drop b) c | a (drop a) c | c (drop c)
        a b (drop b) | a (drop a)
        a b (drop b) c | a (drop a) c | c (drop c)
    "#]]
    .assert_eq(&text.map(|line| line + "\n").concat());
}

#[test]
fn r3_125_select_polls_in_order_until_one_is_ready_and_drops_the_others() {
    let ctx = bare_context();
    let text = [
        conversation(|new| ctx.select2(new("a", 3), new("b", 2))),
        conversation(|new| ctx.select2(new("a", 1), new("b", 1))),
        conversation(|new| ctx.select3(new("a", 3), new("b", 3), new("c", 2))),
    ];
    expect![[r#"
        a b | a b (drop b) (drop a)
        a (drop b) (drop a)
        a b c | a b c (drop c) (drop b) (drop a)
    "#]]
    .assert_eq(&text.map(|line| line + "\n").concat());
}

#[test]
fn r3_125_results_say_who_won() {
    let first: Either2<u8, u8> = Either2::First(7);
    let second: Either2<u8, u8> = Either2::Second(8);
    assert!(first.is_first() && !first.is_second() && second.is_second());
    assert_eq!((first.index(), second.index()), (0, 1));
    assert_eq!((first.into_tuple(), second.into_tuple()), ((0, 7), (1, 8)));
    let winners = [Either3::First(1), Either3::Second(2), Either3::Third(3)];
    assert_eq!(winners.clone().map(|winner| winner.index()), [0, 1, 2]);
    assert_eq!(winners.map(Either3::into_tuple), [(0, 1), (1, 2), (2, 3)]);
}

async fn race(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let (a, b) = (ctx.schedule_activity("A", ""), ctx.schedule_activity("B", ""));
    let winner = ctx.select2(a, b).await;
    ctx.schedule_activity(format!("{winner:?}"), "").await
}

#[test]
fn r3_126_r3_127_r3_128_r3_129_the_winner_is_the_first_in_history() {
    check(
        A_AND_B,
        A_THEN_B,
        race,
        expect![[r#"
            continue
              4 activity-completed 2 "a"
              5 activity-completed 3 "b"
              6 activity First(Ok("a")) ""
              7 activity-cancelled 3 dropped_future
            actions: activity 6
            cancelled activities: 3
        "#]],
    );
    check(
        A_AND_B,
        B_THEN_A,
        race,
        expect![[r#"
            continue
              4 activity-completed 3 "b"
              5 activity-completed 2 "a"
              6 activity Second(Ok("b")) ""
              7 activity-cancelled 2 dropped_future
            actions: activity 6
            cancelled activities: 2
        "#]],
    );
}

#[test]
fn r3_126_argument_order_decides_only_when_both_are_ready_at_once() {
    check(
        r#"1 started O v1.0.0 """#,
        "queue r 1\nqueue q 2",
        |ctx, _| async move {
            let winner = ctx.select2(ctx.dequeue_event("q"), ctx.dequeue_event("r")).await;
            ctx.schedule_activity(format!("{winner:?}"), "").await
        },
        expect![[r#"
            continue
              2 queue r "1"
              3 queue q "2"
              4 dequeue q
              5 dequeue r
              6 activity First("2") ""
              7 dequeue-cancelled 5 dropped_future
            actions: dequeue 4, dequeue 5, activity 6
        "#]],
    );
}

#[test]
fn r3_130_other_combinators_work_if_they_poll_everything() {
    // A biased select over borrowed futures, as a macro would write it.
    check(
        A_AND_B,
        B_THEN_A,
        |ctx, _| async move {
            let (mut a, mut b) = (ctx.schedule_activity("A", ""), ctx.schedule_activity("B", ""));
            let first = std::future::poll_fn(|cx| {
                if let Poll::Ready(result) = Pin::new(&mut a).poll(cx) {
                    return Poll::Ready(result);
                }
                Pin::new(&mut b).poll(cx)
            });
            let first = first.await?;
            Ok(format!("{first}, then {}", a.await?))
        },
        expect![[r#"
            completed "b, then a"
              4 activity-completed 3 "b"
              5 activity-completed 2 "a"
        "#]],
    );
}

#[test]
fn r3_132_equal_calls_are_matched_by_position() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 activity A ""
        "#,
        r#"
        activity-completed 3 "second"
        activity-completed 2 "first"
        "#,
        |ctx, _| async move {
            let calls = ["A", "A"].map(|name| ctx.schedule_activity(name, ""));
            Ok(format!("{:?}", ctx.join(calls.into()).await))
        },
        expect![[r#"
            completed "[Ok(\"first\"), Ok(\"second\")]"
              4 activity-completed 3 "second"
              5 activity-completed 2 "first"
        "#]],
    );
}
