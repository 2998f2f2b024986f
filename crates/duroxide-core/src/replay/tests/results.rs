//! What a turn comes to (§3.6): order of the decisions, panics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use expect_test::expect;

use super::*;

#[test]
fn r3_70_r7_87_a_cancel_request_comes_before_output_and_continue_as_new() {
    let history = r#"
        1 started O v1.0.0 ""
        2 activity A ""
    "#;
    let messages = r#"
        activity-completed 2 "a"
        cancel "enough"
    "#;
    check(
        history,
        messages,
        |ctx, _| async move { ctx.schedule_activity("A", "").await },
        expect![[r#"
            cancelled "enough"
              3 activity-completed 2 "a"
              4 cancel-requested "enough"
        "#]],
    );
    check(
        history,
        messages,
        |ctx, _| async move {
            ctx.schedule_activity("A", "").await?;
            ctx.continue_as_new("next").await
        },
        expect![[r#"
            cancelled "enough"
              3 activity-completed 2 "a"
              4 cancel-requested "enough"
            actions: continue-as-new
        "#]],
    );
}

#[test]
fn r7_88_r7_89_a_cancel_with_the_start_still_runs_one_turn() {
    check_turn(
        "",
        r#"
        start O in
        cancel "enough"
        "#,
        |ctx, _| async move {
            ctx.set_custom_status("ran");
            ctx.schedule_activity("A", "").await
        },
        expect![[r#"
            ended: failed
              1 started O v1.0.0 "in"
              2 cancel-requested "enough"
              3 status "ran"
              4 activity A ""
              5 failed canceled: enough
              6 activity-cancelled 4 orchestration_terminal_failed
            cancelled activities: 4
        "#]],
    );
}

#[test]
fn r3_71_r4_65_continue_as_new_counts_awaited_or_not_and_the_first_wins() {
    check(
        r#"1 started O v1.0.0 """#,
        "",
        |ctx, _| async move {
            drop(ctx.continue_as_new_versioned("2.0.0", "first"));
            drop(ctx.continue_as_new("second"));
            Ok("ignored".to_owned())
        },
        expect![[r#"
            continue-as-new "first" version="2.0.0"
            actions: continue-as-new, continue-as-new
        "#]],
    );
    check(
        r#"1 started O v1.0.0 """#,
        "",
        |ctx, _| async move {
            drop(ctx.continue_as_new("next"));
            Err("ignored".to_owned())
        },
        expect![[r#"
            continue-as-new "next"
            actions: continue-as-new
        "#]],
    );
}

#[test]
fn r3_72_ok_and_err() {
    let started = r#"1 started O v1.0.0 "in""#;
    check(
        started,
        "",
        |_, input| async move { Ok(input) },
        expect![[r#"
            completed "in"
        "#]],
    );
    check(
        started,
        "",
        |_, input| async move { Err(input) },
        expect![[r#"
            failed error: in
        "#]],
    );
}

#[test]
fn r3_73_otherwise_it_goes_on() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        "#,
        "",
        |ctx, _| async move { ctx.schedule_activity("A", "").await },
        expect![[r#"
            continue
        "#]],
    );
}

#[test]
fn r3_74_panics() {
    let started = r#"1 started O v1.0.0 """#;
    check(
        started,
        "",
        |_, _| async { panic!("static text") },
        expect![[r#"
            failed panic: static text
        "#]],
    );
    check(
        started,
        "",
        |_, n| async move { panic!("made text {n:?}") },
        expect![[r#"
            failed panic: made text ""
        "#]],
    );
    check(
        started,
        "",
        |_, _| async { std::panic::panic_any(7) },
        expect![[r#"
            failed panic: orchestration panicked
        "#]],
    );
    // While making the future, too.
    check(
        started,
        "",
        |_, input| {
            assert!(!input.is_empty(), "no future");
            async { Ok(String::new()) }
        },
        expect![[r#"
            failed panic: no future
        "#]],
    );
}

/// Panics when dropped, unless something panics already.
struct Bomb(&'static str);

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("{}", self.0);
        }
    }
}

#[test]
fn r3_74_a_panicking_payload_of_a_panic_does_not_escape() {
    check(
        r#"1 started O v1.0.0 """#,
        "",
        |_, _| async { std::panic::panic_any(Bomb("payload")) },
        expect![[r#"
            failed panic: orchestration panicked
        "#]],
    );
}

#[test]
fn r3_74_destructors_that_panic() {
    let started = r#"1 started O v1.0.0 """#;
    // While the code runs: a panic like any other.
    check(
        started,
        "",
        |_, _| async {
            drop(Bomb("in the code"));
            Ok(String::new())
        },
        expect![[r#"
            failed panic: in the code
        "#]],
    );
    // At the end of the function: the same.
    check(
        started,
        "",
        |_, _| async {
            let _bomb = Bomb("at the end");
            Ok("not returned".to_owned())
        },
        expect![[r#"
            failed panic: at the end
        "#]],
    );
    // After the turn, when the suspended code is dropped: the turn stands.
    check(
        started,
        "",
        |ctx, _| async move {
            let _bomb = Bomb("let go");
            ctx.schedule_activity("A", "").await
        },
        expect![[r#"
            continue
              2 activity A ""
            actions: activity 2
        "#]],
    );
    // The payload of such a panic may panic itself.
    check(
        started,
        "",
        |ctx, _| async move {
            struct Worse;
            impl Drop for Worse {
                fn drop(&mut self) {
                    std::panic::panic_any(Bomb("payload"));
                }
            }
            let _worse = Worse;
            ctx.schedule_activity("A", "").await
        },
        expect![[r#"
            continue
              2 activity A ""
            actions: activity 2
        "#]],
    );
}

#[test]
fn r2_95_r3_74_a_typed_payload_that_does_not_decode_can_be_caught() {
    // The panic happens in the poll of the future; the code goes on with the same context.
    check(
        r#"
        1 started O v1.0.0 ""
        2 wait Go
        3 dequeue q
        "#,
        r#"
        raised Go "no number"
        queue q "no number either"
        queue q "text"
        "#,
        |ctx, _| async move {
            let mut wait = ctx.schedule_wait_typed::<u32>("Go");
            let mut dequeue = Box::pin(ctx.dequeue_event_typed::<u32>("q"));
            let caught = caught(&mut wait).await;
            let also = self::caught(&mut dequeue).await;
            let text = ctx.dequeue_event("q").await;
            Ok(format!("{caught}, {also}, then {text}"))
        },
        expect![[r#"
            completed "event payload 'Go' (event 2) cannot be decoded: expected ident at line 1 column 2, queue message 'q' (event 3) cannot be decoded: expected ident at line 1 column 2, then text"
              4 raised Go "no number"
              5 queue q "no number either"
              6 queue q "text"
              7 dequeue q
            actions: dequeue 7
        "#]],
    );
}

/// The panic of a future's poll, as text.
async fn caught<F: Future + Unpin>(future: &mut F) -> String {
    std::future::poll_fn(|cx| {
        let poll = || std::pin::Pin::new(&mut *future).poll(cx).map(|_| "nothing".to_owned());
        let polled = catch_unwind(AssertUnwindSafe(poll));
        polled.unwrap_or_else(|payload| {
            let text = payload.downcast_ref::<String>().cloned();
            std::task::Poll::Ready(text.unwrap_or_default())
        })
    })
    .await
}

#[test]
fn r3_75_r3_76_early_failures_collect_no_drops_and_keep_what_was_recorded() {
    // The race drops the activity, then the code panics: no breadcrumb, but all that came before.
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 timer 1s
        "#,
        r#"
        timer-fired 3 1s
        queue q "m"
        "#,
        |ctx, _| async move {
            let activity = ctx.schedule_activity("A", "");
            let timer = ctx.schedule_timer(Duration::from_secs(1));
            ctx.select2(activity, timer).await;
            let message = ctx.dequeue_event("q").await;
            panic!("{message}")
        },
        expect![[r#"
            failed panic: m
              4 timer-fired 3 1s
              5 queue q "m"
              6 dequeue q
            actions: dequeue 6
        "#]],
    );
}
