//! Dropped futures (§3.11).

use std::time::Duration;

use expect_test::expect;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// One of each kind that can be cancelled, and a timer, all recorded.
const ONE_OF_EACH: &str = r#"
    1 started O v1.0.0 ""
    2 dequeue q
    3 wait Go
    4 child C sub::4 ""
    5 activity A ""
    6 timer 1s
    7 activity B ""
"#;

/// Schedules them, waits for B, drops them all.
async fn drop_all(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let (dequeue, wait) = (ctx.dequeue_event("q"), ctx.schedule_wait("Go"));
    let child = ctx.schedule_sub_orchestration("C", "");
    let (activity, timer) = (ctx.schedule_activity("A", ""), ctx.schedule_timer(SECOND));
    ctx.schedule_activity("B", "").await?;
    drop((dequeue, wait, child, activity, timer));
    ctx.schedule_activity("next", "").await
}

#[test]
fn r3_100_r3_104_r3_104b_r2_42_breadcrumbs_by_kind_and_id() {
    // Activities, children, waits, dequeues, in this order; timers fire unheard.
    check(
        ONE_OF_EACH,
        r#"activity-completed 7 "b""#,
        drop_all,
        expect![[r#"
            continue
              8 activity-completed 7 "b"
              9 activity next ""
              10 activity-cancelled 5 dropped_future
              11 child-cancelled 4 dropped_future
              12 wait-cancelled 3 dropped_future
              13 dequeue-cancelled 2 dropped_future
            actions: activity 9
            cancelled activities: 5
            cancelled children: sub::4
        "#]],
    );
}

#[test]
fn r3_100_the_end_of_the_function_drops_what_it_held() {
    check(
        ONE_OF_EACH,
        r#"activity-completed 7 "b""#,
        |ctx, _| async move {
            let (_dequeue, _wait) = (ctx.dequeue_event("q"), ctx.schedule_wait("Go"));
            let _child = ctx.schedule_sub_orchestration("C", "");
            let (_activity, _timer) = (ctx.schedule_activity("A", ""), ctx.schedule_timer(SECOND));
            ctx.schedule_activity("B", "").await
        },
        expect![[r#"
            completed "b"
              8 activity-completed 7 "b"
              9 activity-cancelled 5 dropped_future
              10 child-cancelled 4 dropped_future
              11 wait-cancelled 3 dropped_future
              12 dequeue-cancelled 2 dropped_future
            cancelled activities: 5
            cancelled children: sub::4
        "#]],
    );
}

#[test]
fn r3_101_a_future_that_returned_is_not_cancelled() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        "#,
        r#"activity-completed 2 "a""#,
        |ctx, _| async move {
            let mut activity = ctx.schedule_activity("A", "");
            let result = (&mut activity).await;
            drop(activity);
            ctx.schedule_activity("next", result?).await
        },
        expect![[r#"
            continue
              3 activity-completed 2 "a"
              4 activity next "a"
            actions: activity 4
        "#]],
    );
}

#[test]
fn r3_102_a_completed_future_that_was_never_polled_is_cancelled_by_its_drop() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 activity B ""
        "#,
        r#"
        activity-completed 2 "a"
        activity-completed 3 "b"
        "#,
        |ctx, _| async move {
            let unheard = ctx.schedule_activity("A", "");
            ctx.schedule_activity("B", "").await?;
            drop(unheard);
            ctx.schedule_activity("next", "").await
        },
        expect![[r#"
            continue
              4 activity-completed 2 "a"
              5 activity-completed 3 "b"
              6 activity next ""
              7 activity-cancelled 2 dropped_future
            actions: activity 6
            cancelled activities: 2
        "#]],
    );
}

#[test]
fn r3_103_r4_17_what_is_alive_at_the_end_of_the_turn_is_not_cancelled() {
    check(
        r#"1 started O v1.0.0 """#,
        "",
        |ctx, _| async move {
            let _held = ctx.schedule_activity("held", "");
            ctx.schedule_activity("awaited", "").await
        },
        expect![[r#"
            continue
              2 activity held ""
              3 activity awaited ""
            actions: activity 2, activity 3
        "#]],
    );
}

/// The history after `drop_all` has dropped, as recorded.
const DROPPED: &str = r#"
    1 started O v1.0.0 ""
    2 dequeue q
    3 wait Go
    4 child C sub::4 ""
    5 activity A ""
    6 timer 1s
    7 activity B ""
    8 activity-completed 7 "b"
    9 activity next ""
    10 activity-cancelled 5 dropped_future
    11 child-cancelled 4 dropped_future
    12 wait-cancelled 3 dropped_future
    13 dequeue-cancelled 2 dropped_future
"#;

#[test]
fn r3_104_a_recorded_drop_has_no_further_effect() {
    check_turn(
        DROPPED,
        "timer-fired 6 1s",
        drop_all,
        expect![[r#"
            running
              14 timer-fired 6 1s
        "#]],
    );
}

/// Like `drop_all`, but what `keep` names lives until the end.
async fn keep(ctx: OrchestrationContext, keep: &str) -> Result<String, String> {
    let (dequeue, wait) = (ctx.dequeue_event("q"), ctx.schedule_wait("Go"));
    let child = ctx.schedule_sub_orchestration("C", "");
    let (activity, _timer) = (ctx.schedule_activity("A", ""), ctx.schedule_timer(SECOND));
    ctx.schedule_activity("B", "").await?;
    let _dequeue = Some(dequeue).filter(|_| keep == "dequeue");
    let _wait = Some(wait).filter(|_| keep == "wait");
    let _child = Some(child).filter(|_| keep == "child");
    let _activity = Some(activity).filter(|_| keep == "activity");
    ctx.schedule_activity("next", "").await
}

#[test]
fn r3_104_a_recorded_drop_that_is_not_repeated_is_nondeterminism() {
    let mut text = String::new();
    for kept in ["activity", "child", "wait", "dequeue"] {
        let handler = code(move |ctx, _| keep(ctx, kept));
        let (engine, result) = run_engine(&Story::read(DROPPED), "timer-fired 6 1s", handler);
        writeln!(text, "{kept}: {}", notation::result(&result)).unwrap();
        // All checks come before any breadcrumb.
        text += &notation::events(engine.history_delta());
    }
    expect![[r#"
        activity: failed nondeterminism: cancellation mismatch (activities): baseline_dropped_future_cancel_requests={5} ctx_cancelled_in_replayed_segment={}
          14 timer-fired 6 1s
        child: failed nondeterminism: cancellation mismatch (sub-orchestrations): baseline_dropped_future_cancel_requests={4} ctx_cancelled_in_replayed_segment={}
          14 timer-fired 6 1s
        wait: failed nondeterminism: cancellation mismatch (external waits): baseline_dropped_future_cancel_requests={3} ctx_cancelled_in_replayed_segment={}
          14 timer-fired 6 1s
        dequeue: failed nondeterminism: cancellation mismatch (persistent waits): baseline_dropped_future_cancel_requests={2} ctx_cancelled_in_replayed_segment={}
          14 timer-fired 6 1s
    "#]].assert_eq(&text);
}

#[test]
fn r3_104_further_drops_are_allowed() {
    // Only the activity's drop is on record; today's code drops the wait as well.
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 wait Go
        4 timer 1s
        5 timer-fired 4 1s
        6 activity next ""
        7 activity-cancelled 2 dropped_future
        "#,
        "",
        |ctx, _| async move {
            let (activity, wait) = (ctx.schedule_activity("A", ""), ctx.schedule_wait("Go"));
            ctx.schedule_timer(SECOND).await;
            drop((activity, wait));
            ctx.schedule_activity("next", "").await
        },
        expect![[r#"
            continue
              8 wait-cancelled 3 dropped_future
        "#]],
    );
}

#[test]
fn r3_104_a_breadcrumb_of_any_reason_counts_as_recorded() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 timer 1s
        4 activity-cancelled 2 "some other reason"
        "#,
        "timer-fired 3 1s",
        |ctx, _| async move {
            let activity = ctx.schedule_activity("A", "");
            ctx.schedule_timer(SECOND).await;
            drop(activity);
            ctx.schedule_activity("next", "").await
        },
        expect![[r#"
            continue
              5 timer-fired 3 1s
              6 activity next ""
            actions: activity 6
        "#]],
    );
}

#[test]
fn r3_104a_nothing_is_checked_when_nothing_was_persisted() {
    check(
        r#"
        persisted 0
        1 started O v1.0.0 ""
        2 activity A ""
        3 activity-cancelled 2 dropped_future
        "#,
        r#"activity-completed 2 "a""#,
        |ctx, _| async move { ctx.schedule_activity("A", "").await },
        expect![[r#"
            completed "a"
              4 activity-completed 2 "a"
        "#]],
    );
}

#[test]
fn r3_104c_a_future_that_was_never_bound_cancels_nothing() {
    let ctx = bare_context();
    drop(ctx.schedule_activity("A", ""));
    assert_eq!(ctx.get_emitted_actions().len(), 1);
}

#[test]
fn r3_104d_a_turn_that_is_cancelled_or_continues_collects_no_drops() {
    check(
        ONE_OF_EACH,
        r#"
        activity-completed 7 "b"
        cancel "enough"
        "#,
        drop_all,
        expect![[r#"
            cancelled "enough"
              8 activity-completed 7 "b"
              9 cancel-requested "enough"
              10 activity next ""
            actions: activity 10
        "#]],
    );
    check_turn(
        ONE_OF_EACH,
        r#"activity-completed 7 "b""#,
        |ctx, _| async move {
            let (dequeue, wait) = (ctx.dequeue_event("q"), ctx.schedule_wait("Go"));
            let child = ctx.schedule_sub_orchestration("C", "");
            let (activity, timer) = (ctx.schedule_activity("A", ""), ctx.schedule_timer(SECOND));
            ctx.schedule_activity("B", "").await?;
            drop((dequeue, wait, child, activity, timer));
            ctx.continue_as_new("next").await
        },
        expect![[r#"
            ended: continued as new
              8 activity-completed 7 "b"
              9 wait-cancelled 3 orchestration_terminal
              10 dequeue-cancelled 2 orchestration_terminal
              11 continued "next"
              12 activity-cancelled 5 orchestration_terminal_continued_as_new
            orch: continue O "next"
            cancelled activities: 5
        "#]],
    );
}

#[test]
fn r3_104_a_turn_looks_at_the_drops_of_its_own_only() {
    let races = code(|ctx: OrchestrationContext, _| async move {
        loop {
            let work = ctx.schedule_activity("A", "");
            ctx.select3(work, ctx.schedule_timer(SECOND), ctx.schedule_wait("never")).await;
        }
    });
    let (mut outcome, mut kept) = run_turn_and_keep(turn(&Story::read(""), "start O in", races));
    for _ in 0..100 {
        let Some(WorkItem::ActivityExecute { id, .. }) = outcome.activities.first() else {
            panic!("{outcome:?}")
        };
        let answer = format!("activity-completed {id} \"a\"");
        let next = kept.take().expect("the loop waits").resume(Resumption {
            messages: notation::messages(&answer, 1),
            now_ms: 1_000_000,
            system_calls: None,
        });
        (outcome, kept) = next;
        let kept = kept.as_ref().expect("the loop waits");
        assert_eq!(kept.drops_in_memory(), 0, "drops of this turn are gone with it");
        let breadcrumbs = outcome
            .events
            .iter()
            .filter(|event| matches!(event.kind, EventKind::ExternalSubscribedCancelled { .. }));
        assert_eq!(breadcrumbs.count(), 1);
    }
}

/// Races an activity against a timer, then waits.
async fn race(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let work = ctx.schedule_activity("A", "");
    ctx.select2(work, ctx.schedule_timer(SECOND)).await;
    Ok(ctx.schedule_wait("Go").await)
}

const RACING: &str = r#"
    1 started O v1.0.0 ""
    2 activity A ""
    3 timer 1s
"#;

#[test]
fn r3_104e_a_turn_tells_of_the_timers_it_has_dropped() {
    check_turn(
        RACING,
        r#"activity-completed 2 "a""#,
        race,
        expect![[r#"
            running
              4 activity-completed 2 "a"
              5 wait Go
            dropped: timer-fired 3 1s
        "#]],
    );
}

#[test]
fn r3_104e_a_timer_that_has_fired_is_not_told_of() {
    check_turn(
        RACING,
        r#"
        activity-completed 2 "a"
        timer-fired 3 1s
        "#,
        race,
        expect![[r#"
            running
              4 activity-completed 2 "a"
              5 timer-fired 3 1s
              6 wait Go
        "#]],
    );
}

#[test]
fn r3_104e_a_timer_dropped_in_the_turn_that_set_it_is_told_of() {
    check_turn(
        "",
        "start O in",
        |ctx, _| async move {
            drop(ctx.schedule_timer(SECOND));
            let kept = ctx.schedule_timer(2 * SECOND);
            ctx.schedule_timer(Duration::ZERO).await;
            drop(kept);
            Ok(String::new())
        },
        expect![[r#"
            running
              1 started O v1.0.0 "in"
              2 timer 1s
              3 timer 2s
              4 timer 0s
            orch: timer-fired 2 1s
            orch: timer-fired 3 2s
            orch: timer-fired 4 0s
            dropped: timer-fired 2 1s
        "#]],
    );
}

#[test]
fn r3_104e_an_execution_that_ends_tells_of_none() {
    check_turn(
        RACING,
        r#"activity-completed 2 "a""#,
        |ctx, _| async move {
            let work = ctx.schedule_activity("A", "");
            ctx.select2(work, ctx.schedule_timer(SECOND)).await;
            Ok(String::new())
        },
        expect![[r#"
            ended: completed
              4 activity-completed 2 "a"
              5 completed ""
        "#]],
    );
}

/// Some timers of each round lose, in turns that are resumed and in the same turns replayed.
#[test]
fn r3_104e_each_timer_is_told_of_once_by_warm_turns_and_by_cold_ones() {
    let rounds = || {
        code(|ctx: OrchestrationContext, _| async move {
            loop {
                drop(ctx.schedule_timer(5 * SECOND));
                let work = ctx.schedule_activity("A", "");
                ctx.select2(work, ctx.schedule_timer(SECOND)).await;
            }
        })
    };
    let (first, mut kept) = run_turn_and_keep(turn(&Story::read(""), "start O in", rounds()));
    let ids = |outcome: &TurnOutcome| -> Vec<u64> {
        let id = |timer: &WorkItem| match timer {
            WorkItem::TimerFired { id, .. } => *id,
            other => panic!("{other:?}"),
        };
        outcome.dropped_timers.iter().map(id).collect()
    };
    assert_eq!(ids(&first), [2], "dropped as soon as it was set");
    let mut asked = first.activities;
    for _ in 0..20 {
        let Some(WorkItem::ActivityExecute { id, .. }) = asked.first() else { panic!() };
        let (id, answer) = (*id, format!("activity-completed {} \"a\"", *id));
        let waits = kept.take().expect("the loop waits");
        let story = Story { events: waits.history().to_vec(), ..Story::read("") };
        let cold = run_turn(turn(&story, &answer, rounds()));
        let messages = notation::messages(&answer, 1);
        let (warm, next) =
            waits.resume(Resumption { messages, now_ms: 1_000_000, system_calls: None });
        assert_eq!(ids(&warm), [id + 1, id + 3], "the loser, and that of the next round");
        assert_eq!(warm.dropped_timers, cold.dropped_timers);
        (asked, kept) = (warm.activities, next);
    }
}
