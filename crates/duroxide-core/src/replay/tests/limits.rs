//! Size limits (§7.12). The other limits of R7.97 are with what they limit.

use expect_test::expect;

use super::endings::{WITH_CHILDREN, with_children};
use super::*;

/// The outcome of a turn, long texts shortened.
fn outcome<F, Fut>(history: &str, messages: &str, handler: F) -> String
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    let text = outcome_text(&run_turn(turn(&Story::read(history), messages, code(handler))));
    shortened(text)
}

fn shortened(mut text: String) -> String {
    while let Some(start) = text.find(&"x".repeat(200)) {
        let len = text[start..].bytes().take_while(|byte| *byte == b'x').count();
        text.replace_range(start..start + len, "long");
    }
    text
}

#[test]
fn l4_l5_l7_r1_34_r7_95_r7_96_a_limit_is_an_ordinary_failure() {
    // The parent is told, children are cancelled, one terminal event, detached starts are kept.
    let text = outcome(WITH_CHILDREN, "timer-fired 6 1s", |ctx, _| async move {
        with_children(ctx.clone()).await;
        ctx.schedule_orchestration("D", "d", "in");
        ctx.set_custom_status("x".repeat(300_000));
        Ok(String::new())
    });
    expect![[r#"
        ended: failed
          8 timer-fired 6 1s
          9 child of this turn sub::9 ""
          10 detached D d "in"
          11 status "long"
          12 child-cancelled 9 dropped_future
          13 failed error: Custom status size (300000 bytes) exceeds limit (262144 bytes)
        orch: start d D "in"
        orch: child-failed p/2/5 error: Custom status size (300000 bytes) exceeds limit (262144 bytes)
        orch: cancel i::sub::2 "parent failed"
    "#]].assert_eq(&text);
}

#[test]
fn l4_r1_34_a_limit_ends_a_turn_that_would_go_on_or_continue_as_new() {
    let text = outcome("", "start O in", |ctx, _| async move {
        ctx.set_custom_status("x".repeat(300_000));
        let _timer = ctx.schedule_timer(std::time::Duration::from_secs(1));
        let _child = ctx.schedule_sub_orchestration("C", "");
        let activity = ctx.schedule_activity("A", "");
        let wait = ctx.schedule_wait("Go");
        let _ = ctx.join2(activity, wait).await;
        Ok(String::new())
    });
    expect![[r#"
        ended: failed
          1 started O v1.0.0 "in"
          2 status "long"
          3 timer 1s
          4 child C sub::4 ""
          5 activity A ""
          6 wait Go
          7 wait-cancelled 6 orchestration_terminal
          8 failed error: Custom status size (300000 bytes) exceeds limit (262144 bytes)
          9 activity-cancelled 5 orchestration_terminal_failed
        cancelled activities: 5
    "#]]
    .assert_eq(&text);
    let text = outcome("", "start O in", |ctx, _| async move {
        ctx.set_custom_status("x".repeat(300_000));
        let _child = ctx.schedule_sub_orchestration("C", "");
        ctx.continue_as_new("next").await
    });
    expect![[r#"
        ended: failed
          1 started O v1.0.0 "in"
          2 status "long"
          3 child C sub::3 ""
          4 failed error: Custom status size (300000 bytes) exceeds limit (262144 bytes)
    "#]]
    .assert_eq(&text);
}

#[test]
fn r1_34_a_turn_that_fails_or_is_cancelled_keeps_its_own_error() {
    let text = outcome("", "start O in", |ctx, _| async move {
        ctx.set_custom_status("x".repeat(300_000));
        Err("its own".to_owned())
    });
    expect![[r#"
        ended: failed
          1 started O v1.0.0 "in"
          2 status "long"
          3 failed error: its own
    "#]]
    .assert_eq(&text);
    let text = outcome("", "start O in\ncancel enough", |ctx, _| async move {
        ctx.set_custom_status("x".repeat(300_000));
        ctx.schedule_activity("A", "").await
    });
    expect![[r#"
        ended: failed
          1 started O v1.0.0 "in"
          2 cancel-requested "enough"
          3 status "long"
          4 activity A ""
          5 failed canceled: enough
          6 activity-cancelled 4 orchestration_terminal_failed
        cancelled activities: 4
    "#]]
    .assert_eq(&text);
}

#[test]
fn r7_91_r4_75_the_last_status_counts_and_resets_are_passed_over() {
    let ends = |steps: &'static [Option<usize>]| {
        outcome("", "start O in", move |ctx, _| async move {
            for step in steps {
                match step {
                    Some(len) => ctx.set_custom_status("x".repeat(*len)),
                    None => ctx.reset_custom_status(),
                }
            }
            Ok(String::new())
        })
    };
    assert!(ends(&[Some(262_144)]).contains("completed"));
    assert!(ends(&[Some(262_145), Some(1)]).contains("completed"));
    let message = "Custom status size (262145 bytes) exceeds limit (262144 bytes)";
    assert!(ends(&[Some(262_145)]).contains(message));
    assert!(ends(&[Some(1), Some(262_145), None]).contains(message));
}

#[test]
fn r7_92_r4_15_tags() {
    let tagged = |len: usize| {
        outcome("", "start O in", move |ctx, _| async move {
            let tag = "x".repeat(len);
            let other = ctx.schedule_activity("B", "").with_tag("short");
            let first = ctx.schedule_activity("A", "").with_tag(tag);
            ctx.join(vec![other, first]).await;
            Ok(String::new())
        })
    };
    assert!(tagged(256).starts_with("running"));
    let text = tagged(257);
    assert!(text.contains("Activity 'A' tag size (257 bytes) exceeds limit (256 bytes)"), "{text}");
}

#[test]
fn r7_93_r4_88_values() {
    let set = |len: usize| {
        outcome("", "start O in", move |ctx, _| async move {
            ctx.set_kv_value("k", "x".repeat(len));
            Ok(String::new())
        })
    };
    assert!(set(65_536).contains("completed"));
    let text = set(65_537);
    assert!(text.contains("KV value for key 'k' (65537 bytes) exceeds limit (65536 bytes)"));
}

/// Sets that many keys.
fn set_keys(ctx: &OrchestrationContext, keys: std::ops::Range<usize>) {
    for key in keys {
        ctx.set_kv_value(format!("k{key}"), "v");
    }
}

#[test]
fn l6_r7_94_r4_88_keys_count_no_matter_which_execution_set_them() {
    // Keys of completed executions, of earlier turns, and of this one.
    let keys = |cleared: bool| {
        let mut history = "kv old1 v @1\nkv old2 v @1\n1 started O v1.0.0 \"\"\n".to_owned();
        for key in 0..100 {
            writeln!(history, "{} set k{key} v 0s", key + 2).unwrap();
        }
        writeln!(history, "102 activity A \"\"").unwrap();
        outcome(&history, "activity-completed 102 a", move |ctx, _| async move {
            set_keys(&ctx, 0..100);
            ctx.schedule_activity("A", "").await?;
            set_keys(&ctx, 50..149);
            if cleared {
                ctx.clear_kv_value("old1");
            }
            Ok(String::new())
        })
    };
    assert!(keys(false).contains("KV key count (151) exceeds limit (150)"));
    assert!(keys(true).contains("completed"));
}

#[test]
fn l6_r7_94_only_a_turn_that_sets_keys_is_blamed() {
    let mut history = "1 started O v1.0.0 \"\"\n".to_owned();
    for key in 0..200 {
        writeln!(history, "{} set k{key} v 0s", key + 2).unwrap();
    }
    writeln!(history, "202 activity A \"\"").unwrap();
    let text = outcome(&history, "activity-completed 202 a", |ctx, _| async move {
        set_keys(&ctx, 0..200);
        ctx.schedule_activity("A", "").await
    });
    expect![[r#"
        ended: completed
          203 activity-completed 202 "a"
          204 completed "a"
    "#]]
    .assert_eq(&text);
}

#[test]
fn r7_91_r7_94_the_first_violation_is_told() {
    let text = outcome("", "start O in", |ctx, _| async move {
        set_keys(&ctx, 0..151);
        ctx.set_kv_value("k", "x".repeat(70_000));
        let activity = ctx.schedule_activity("A", "").with_tag("x".repeat(300));
        ctx.set_custom_status("x".repeat(300_000));
        activity.await
    });
    assert!(text.contains("failed error: Custom status size"), "{text}");
}
