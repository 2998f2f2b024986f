//! Mailboxes (§3.8, §4.7), under each race policy where they differ.

use std::time::Duration;

use expect_test::expect;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn r3_150_r4_41_r4_42_messages_are_read_in_order() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 dequeue q
        3 dequeue q
        "#,
        r#"
        queue q "1"
        queue r "other"
        queue q "2"
        "#,
        |ctx, _| async move {
            let (first, second) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
            // Which is polled first does not matter: places were given when they were recorded.
            let (second, first) = ctx.join2(second, first).await;
            Ok(format!("{first} {second}"))
        },
        expect![[r#"
            completed "1 2"
              4 queue q "1"
              5 queue r "other"
              6 queue q "2"
        "#]],
    );
}

#[test]
fn r3_152_a_held_dequeue_keeps_the_first_message() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 dequeue q
        3 dequeue q
        "#,
        r#"queue q "for the held one""#,
        |ctx, _| async move {
            let held = ctx.dequeue_event("q");
            let second = ctx.dequeue_event("q").await;
            Ok(held.await + &second)
        },
        expect![[r#"
            continue
              4 queue q "for the held one"
        "#]],
    );
}

#[test]
fn r3_153_a_resolved_dequeue_never_resolves_again() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 dequeue q
        3 timer 1s
        "#,
        r#"
        queue q "1"
        queue q "2"
        timer-fired 3 1s
        "#,
        |ctx, _| async move {
            let (mut dequeue, timer) = (ctx.dequeue_event("q"), ctx.schedule_timer(SECOND));
            let first = (&mut dequeue).await;
            let again = ctx.select2(&mut dequeue, timer).await;
            Ok(format!("{first} {again:?}"))
        },
        expect![[r#"
            completed "1 Second(())"
              4 queue q "1"
              5 queue q "2"
              6 timer-fired 3 1s
        "#]],
    );
}

/// A dequeue that loses against a timer, then another of the same queue.
async fn lost_then_again(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let (dequeue, timer) = (ctx.dequeue_event("q"), ctx.schedule_timer(SECOND));
    ctx.select2(dequeue, timer).await;
    let message = ctx.dequeue_event("q").await;
    ctx.schedule_activity(message, "").await
}

const LOST: &str = r#"
    1 started O v1.0.0 ""
    2 dequeue q
    3 timer 1s
"#;

#[test]
fn r3_154_r3_160_r4_46_new_a_losing_dequeue_leaves_its_message() {
    for stamp in ["0.1.31", "0.2.0"] {
        for messages in ["timer-fired 3 1s\nqueue q m", "timer-fired 3 1s"] {
            let story = Story::read(&format!("stamp {stamp}\n{LOST}"));
            let (engine, _) = run_engine(&story, messages, code(lost_then_again));
            assert_replays(&story.settings, engine.final_history(), code(lost_then_again));
        }
    }
    check(
        LOST,
        r#"
        timer-fired 3 1s
        queue q "m"
        "#,
        lost_then_again,
        expect![[r#"
            continue
              4 timer-fired 3 1s
              5 queue q "m"
              6 dequeue q
              7 activity m ""
              8 dequeue-cancelled 2 dropped_future
            actions: dequeue 6, activity 7
        "#]],
    );
}

#[test]
fn r3_154_new_a_dequeue_dropped_before_it_was_recorded_reserves_nothing() {
    check(
        r#"1 started O v1.0.0 """#,
        r#"queue q "m""#,
        |ctx, _| async move {
            drop(ctx.dequeue_event("q"));
            let message = ctx.dequeue_event("q").await;
            ctx.schedule_activity(message, "").await
        },
        expect![[r#"
            continue
              2 queue q "m"
              3 dequeue q
              4 dequeue q
              5 activity m ""
              6 dequeue-cancelled 3 dropped_future
            actions: dequeue 3, dequeue 4, activity 5
        "#]],
    );
}

#[test]
fn r3_155_r3_64_old_a_drop_counts_at_the_end_of_the_loop_and_then_at_its_breadcrumb() {
    // In the turn of the drop the next dequeue reads at once ...
    check_without_replay(
        &format!("stamp 0.1.30\n{LOST}"),
        r#"
        timer-fired 3 1s
        queue q "m"
        "#,
        lost_then_again,
        expect![[r#"
            continue
              4 timer-fired 3 1s
              5 queue q "m"
              6 dequeue q
              7 activity m ""
              8 dequeue-cancelled 2 dropped_future
            actions: dequeue 6, activity 7
        "#]],
    );
    // ... and on replay only after the breadcrumb, which history records later than the work that
    // followed: the hazard for which the policy was changed, kept for such executions (L16).
    check(
        r#"
        stamp 0.1.30
        1 started O v1.0.0 ""
        2 dequeue q
        3 timer 1s
        4 timer-fired 3 1s
        5 queue q "m"
        6 dequeue q
        7 activity m ""
        8 dequeue-cancelled 2 dropped_future
        "#,
        "",
        lost_then_again,
        expect![[r#"
            failed nondeterminism: history schedule but no emitted action
        "#]],
    );
}

#[test]
fn r3_156_dropping_a_dequeue_that_returned_gives_nothing_back() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 dequeue q
        3 dequeue q
        "#,
        r#"
        queue q "1"
        queue q "2"
        "#,
        |ctx, _| async move {
            let (mut first, second) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
            let one = (&mut first).await;
            drop(first);
            Ok(format!("{one} {}", second.await))
        },
        expect![[r#"
            completed "1 2"
              4 queue q "1"
              5 queue q "2"
        "#]],
    );
}

/// Creates one dequeue before the other and polls them the other way round.
async fn polled_in_reverse(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let (first, second) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
    let winner = ctx.select2(second, first).await;
    ctx.schedule_activity(format!("{winner:?}"), "").await
}

#[test]
fn r3_157_l14_lazily_recorded_dequeues_polled_in_reverse() {
    // Live, both are recorded before either is polled, and on replay as well ...
    check(
        r#"1 started O v1.0.0 """#,
        r#"
        queue q "1"
        queue q "2"
        "#,
        polled_in_reverse,
        expect![[r#"
            continue
              2 queue q "1"
              3 queue q "2"
              4 dequeue q
              5 dequeue q
              6 activity First("2") ""
              7 dequeue-cancelled 4 dropped_future
            actions: dequeue 4, dequeue 5, activity 6
        "#]],
    );
    // ... but for older executions, where replay polls each as it comes: their histories depend on it.
    check_without_replay(
        r#"
        stamp 0.1.32
        1 started O v1.0.0 ""
        "#,
        r#"
        queue q "1"
        queue q "2"
        "#,
        polled_in_reverse,
        expect![[r#"
            continue
              2 queue q "1"
              3 queue q "2"
              4 dequeue q
              5 dequeue q
              6 activity First("2") ""
              7 dequeue-cancelled 4 dropped_future
            actions: dequeue 4, dequeue 5, activity 6
        "#]],
    );
    check(
        r#"
        stamp 0.1.32
        1 started O v1.0.0 ""
        2 queue q "1"
        3 queue q "2"
        4 dequeue q
        5 dequeue q
        6 activity "Second(\"1\")" ""
        7 dequeue-cancelled 5 dropped_future
        "#,
        "",
        polled_in_reverse,
        expect![[r#"
            continue
        "#]],
    );
}

/// Gives up an older dequeue after a newer one has read.
async fn reads_behind_a_held_one(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let held = ctx.dequeue_event("q");
    let newer = ctx.dequeue_event("q").await;
    drop(held);
    let third = ctx.dequeue_event("q").await;
    let fourth = ctx.dequeue_event("q").await;
    Ok(format!("{newer} {third} {fourth}"))
}

const THREE: &str = r#"
    queue q "1"
    queue q "2"
    queue q "3"
"#;

#[test]
fn r3_158_l15_strict_nothing_is_read_twice_or_skipped() {
    check(
        r#"1 started O v1.0.0 """#,
        THREE,
        reads_behind_a_held_one,
        expect![[r#"
            completed "2 1 3"
              2 queue q "1"
              3 queue q "2"
              4 queue q "3"
              5 dequeue q
              6 dequeue q
              7 dequeue q
              8 dequeue q
              9 dequeue-cancelled 5 dropped_future
            actions: dequeue 5, dequeue 6, dequeue 7, dequeue 8
        "#]],
    );
}

#[test]
fn r3_158_older_executions_keep_the_re_indexing() {
    for stamp in ["0.1.31", "0.1.32", "0.2.0-rc.1"] {
        let story = Story::read(&format!("stamp {stamp}\n1 started O v1.0.0 \"\""));
        let (_, result) = run_engine(&story, THREE, code(reads_behind_a_held_one));
        assert_eq!(notation::result(&result), "completed \"2 2 3\"", "{stamp}");
    }
}

#[test]
fn r3_158_l15_strict_a_place_given_up_is_read_in_the_same_poll() {
    // The waiting dequeue is polled before the older one is given up, in one and the same poll.
    check(
        r#"
        1 started O v1.0.0 ""
        2 dequeue q
        3 dequeue q
        4 activity A ""
        5 queue q "m"
        "#,
        r#"activity-completed 4 "a""#,
        |ctx, _| async move {
            let (older, newer) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
            let activity = ctx.schedule_activity("A", "");
            let gives_up = async {
                activity.await?;
                drop(older);
                Ok::<_, String>(())
            };
            let (message, given_up) = ctx.join2(newer, gives_up).await;
            given_up.map(|()| message)
        },
        expect![[r#"
            completed "m"
              6 activity-completed 4 "a"
              7 dequeue-cancelled 2 dropped_future
        "#]],
    );
}
