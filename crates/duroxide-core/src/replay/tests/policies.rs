//! Which rules an execution is pinned to (§3.9). Their effects are with what they change: waits,
//! queues, endings.

use expect_test::expect;

use super::*;

/// What tells the rules apart: a dequeue given up behind a newer one (STRICT), a dequeue that lost
/// (NEW against OLD).
async fn tell(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let lost = ctx.dequeue_event("q");
    let timer = ctx.schedule_timer(std::time::Duration::from_secs(1));
    ctx.select2(lost, timer).await;
    let next = ctx.dequeue_event("q").await;
    let held = ctx.dequeue_event("r");
    let newer = ctx.dequeue_event("r").await;
    drop(held);
    Ok(format!("{next} {newer} {}", ctx.dequeue_event("r").await))
}

fn told(stamp: &str) -> String {
    let history = r#"
        1 started O v1.0.0 ""
        2 dequeue q
        3 timer 1s
        4 timer-fired 3 1s
        5 dequeue q
        6 queue q "m"
        7 queue r "1"
        8 queue r "2"
        9 dequeue r
        10 dequeue r
    "#;
    let story = Story::read(&format!("stamp {stamp}\n{history}"));
    let (_, result) = run_engine(&story, "", code(tell));
    notation::result(&result)
}

#[test]
fn r3_35_r3_90_r3_94_the_stamp_of_the_first_event_decides() {
    let mut text = String::new();
    for stamp in [
        "0.1.30",
        "0.1.31-rc.1",
        "0.1.31",
        "0.1.31+build",
        "0.1.32",
        "0.2.0-rc.1",
        "0.2.0",
        "1.0.0",
    ] {
        writeln!(text, "{stamp}: {}", told(stamp)).unwrap();
    }
    expect![[r#"
        0.1.30: failed nondeterminism: history schedule but no emitted action
        0.1.31-rc.1: failed nondeterminism: history schedule but no emitted action
        0.1.31: completed "m 2 2"
        0.1.31+build: completed "m 2 2"
        0.1.32: completed "m 2 2"
        0.2.0-rc.1: completed "m 2 2"
        0.2.0: completed "m 2 1"
        1.0.0: completed "m 2 1"
    "#]]
    .assert_eq(&text);
}

#[test]
fn r3_91_r2_4_a_stamp_that_is_no_version_means_the_oldest_rules_and_is_said_each_turn() {
    let case = || {
        for stamp in ["banana", "\"\""] {
            assert_eq!(told(stamp), told("0.1.30"));
        }
    };
    expect![[r#"
        WARN duroxide::runtime: Invalid pinned version: using the oldest replay rules instance=i pinned_version=banana error=unexpected character 'b' while parsing major version number
        WARN duroxide::runtime: Invalid pinned version: using the oldest replay rules instance=i pinned_version= error=empty string, expected a semver version
    "#]].assert_eq(&logs::captured(case));
}

#[test]
fn r3_92_rules_stay_with_the_execution_and_a_successor_gets_those_of_its_library() {
    // An old execution goes on under its own rules although its newest events are ours.
    let story = Story::read("stamp 0.1.30\n1 started O v1.0.0 \"\"");
    let handler = code(|ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity("A", "").await?;
        Ok(ctx.schedule_wait("Go").await)
    });
    let (engine, _) = run_engine(&story, "", handler.clone());
    let stamps: Vec<String> =
        engine.final_history().iter().map(|event| event.duroxide_version.clone()).collect();
    assert_eq!(stamps, ["0.1.30", crate::model::version::BUILD_VERSION]); // R2.5

    let continued = Story::read("stamp 0.1.30\n1 started O v1.0.0 \"\"\n2 continued next");
    let outcome = run_turn(turn(&continued, "continue O next", handler));
    assert_eq!(outcome.events[0].execution_id, 2);
    assert_eq!(outcome.events[0].duroxide_version, crate::model::version::BUILD_VERSION);
}

#[test]
fn r3_93_a_context_that_no_engine_drives_follows_the_oldest_rules() {
    let ctx = bare_context();
    let (first, second) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
    for (token, event_id) in [(1, 2), (2, 3)] {
        ctx.bind_token(token, event_id);
        ctx.bind_queue_subscription(event_id, "q");
    }
    drop(first);
    ctx.deliver_queue_message("q".into(), "m".into());
    // Under newer rules the drop would have made room at once.
    assert_eq!(polled(second), None);
}
