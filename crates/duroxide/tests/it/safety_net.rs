//! Mistakes that are found and explained instead of hanging in silence (chapter 3.15).

use std::sync::Arc;
use std::time::Duration;

use duroxide::runtime::{ForeignWait, WarmMode};
use duroxide::{ConfigErrorKind, ErrorDetails, OrchestrationContext, OrchestrationStatus};
use tracing::Level;

use crate::support::logs::{Listener, listen};
use crate::support::numbers::{Board, counters};
use crate::support::{World, WorldBuilder, kinds, world, world_on};

/// Waits for something that is not durable, as the input says.
async fn wait_for_foreign(ctx: OrchestrationContext, what: String) -> Result<String, String> {
    match what.as_str() {
        "sleep" => tokio::time::sleep(Duration::from_millis(1)).await,
        "channel" => {
            let (_keep, never) = tokio::sync::oneshot::channel::<()>();
            never.await.ok();
        }
        "yield" => tokio::task::yield_now().await,
        "beside" => {
            let foreign = tokio::time::sleep(Duration::from_millis(1));
            ctx.join2(foreign, ctx.schedule_timer(Duration::from_secs(1))).await;
        }
        "late" => {
            ctx.schedule_timer(Duration::from_secs(1)).await;
            tokio::task::yield_now().await;
        }
        _ => ctx.schedule_timer(Duration::from_secs(1)).await,
    }
    Ok("done".to_owned())
}

fn foreign_waits(reaction: ForeignWait) -> WorldBuilder {
    world()
        .orchestration_version("Wait", "1.3.0", wait_for_foreign)
        .tuning(|tuning| tuning.foreign_wait = reaction)
        // Beside durable waits a foreign one is seen where the code is kept.
        .tuning(|tuning| tuning.warm.mode = WarmMode::On)
}

const METRIC: &str = "duroxide_orchestration_foreign_waits_total{orchestration_name=Wait}";

fn assert_explained(logs: &Listener, instance: &str) {
    let error = logs.one("that is not durable");
    assert_eq!(error.level, Level::ERROR);
    let who = format!("orchestration Wait 1.3.0 (instance {instance})");
    assert!(error.message.starts_with(&who), "{}", error.message);
    for advice in ["ctx.schedule_timer instead of sleep", "an activity instead of I/O"] {
        assert!(error.message.contains(advice), "{}", error.message);
    }
    assert_eq!(error.field("instance_id"), instance);
}

#[tokio::test(start_paused = true)]
async fn r3_170_a_wait_for_something_else_is_found_in_the_poll_that_waits() {
    for what in ["sleep", "channel", "yield"] {
        let (logs, board) = (listen(), Board::default());
        let _counting = board.count();
        let world = foreign_waits(ForeignWait::Warn).start().await;
        world.begin(what, "Wait", what).await;
        world.until(what, |history| !history.is_empty()).await;
        assert_explained(&logs, what);
        assert_eq!(
            counters(&board.take(), "duroxide_orchestration_foreign"),
            [(METRIC.to_owned(), 1)]
        );
        let status = world.client.get_orchestration_status(what).await.unwrap();
        assert!(matches!(status, OrchestrationStatus::Running { .. }), "{status:?}");
        // It can still be ended.
        world.client.cancel_instance(what, "stuck").await.unwrap();
        assert_eq!(world.error(what).await.display_message(), "canceled: stuck");
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r3_170_such_a_wait_can_be_a_failure() {
    for what in ["sleep", "late", "beside"] {
        let (logs, board) = (listen(), Board::default());
        let _counting = board.count();
        let world = foreign_waits(ForeignWait::Fail).start().await;
        let error = world.run_to_error(what, "Wait", what).await;
        let ErrorDetails::Configuration { kind, .. } = &error else { panic!("{error:?}") };
        assert_eq!(*kind, ConfigErrorKind::Nondeterminism);
        assert!(error.display_message().contains("not durable"), "{error:?}");
        assert_explained(&logs, what);
        assert_eq!(
            counters(&board.take(), "duroxide_orchestration_foreign"),
            [(METRIC.to_owned(), 1)]
        );
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r3_170_durable_waits_are_left_alone() {
    let logs = listen();
    let world = foreign_waits(ForeignWait::Fail)
        .echo("A")
        .orchestration("Many", |ctx, input| async move {
            if input == "first" {
                ctx.schedule_timer(Duration::from_secs(1)).await;
                return ctx.continue_as_new("").await;
            }
            let calls = (0..3).map(|_| ctx.schedule_activity("A", "")).collect();
            ctx.join(calls).await;
            ctx.new_guid().await?;
            let (timer, wait) =
                (ctx.schedule_timer(Duration::from_secs(1)), ctx.schedule_wait("x"));
            ctx.select2(timer, wait).await;
            Ok(ctx.dequeue_event("q").await)
        })
        .start()
        .await;
    assert_eq!(world.run("t", "Wait", "timer").await, "done");
    world.begin("m", "Many", "first").await;
    world.until("m", |h| kinds(h).contains(&"QueueSubscribed".to_owned())).await;
    world.client.enqueue_event("m", "q", "done").await.unwrap();
    assert_eq!(world.output("m").await, "done");
    assert!(logs.saying("that is not durable").is_empty());
    world.finish().await;
}

/// Two steps; another second one after a careless change.
async fn stepping(ctx: OrchestrationContext, second: &str) -> Result<String, String> {
    ctx.schedule_activity("First", "").await?;
    ctx.schedule_activity(second, "").await?;
    Ok(ctx.schedule_wait("Go").await)
}

async fn changed_under_way(logs: &Listener) -> (World, ErrorDetails) {
    let before = world()
        .echo("First")
        .echo("Second")
        .orchestration("Main", |ctx, _| async move { stepping(ctx, "Second").await })
        .start()
        .await;
    before.begin("m", "Main", "").await;
    before.until("m", |history| history.len() == 6).await;
    let memory = Arc::clone(&before.memory);
    before.finish().await;
    assert!(logs.saying("nondeterminism").is_empty());
    let after = world_on(memory)
        .orchestration("Main", |ctx, _| async move { stepping(ctx, "Third").await })
        .start()
        .await;
    after.client.raise_event("m", "Go", "").await.unwrap();
    let error = after.error("m").await;
    (after, error)
}

#[tokio::test]
async fn r3_171_a_divergence_is_shown_with_the_line_that_made_it() {
    let logs = listen();
    let (world, error) = changed_under_way(&logs).await;
    assert_eq!(error.category(), "configuration");
    let record = logs.one("nondeterminism\n");
    assert_eq!((record.level, record.field("instance_id")), (Level::ERROR, "m"));
    assert_eq!(record.field("orchestration_version"), "1.0.0");
    let lines: Vec<&str> = record.message.lines().collect();
    let agreed = lines.iter().find(|line| line.contains("First")).unwrap();
    let parted = lines.iter().find(|line| line.contains(">>>")).unwrap();
    assert!(agreed.contains("the same") && !agreed.contains(">>>"), "{agreed}");
    assert!(parted.contains("Second") && parted.contains("Third"), "{parted}");
    for line in [agreed, parted] {
        assert!(line.contains(&format!("  at {}:", file!())), "{line}");
    }
    assert!(lines[1].starts_with("Main 1.0.0 (instance m, execution 1)"), "{}", lines[1]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r3_172_a_name_nobody_knows_is_announced_once_with_what_may_be_meant() {
    let logs = listen();
    let world = world()
        .patient()
        .echo("SendEmail")
        .echo("SendMail")
        .echo("Charge")
        .orchestration("Order", |_ctx, input| async move { Ok(input) })
        .orchestration("Main", |ctx, _| async move {
            let twice = ctx.join2(
                ctx.schedule_activity("SendEmial", ""),
                ctx.schedule_activity("SendEmial", ""),
            );
            let child = ctx.schedule_sub_orchestration("Ordre", "");
            ctx.schedule_orchestration("Something else", "detached", "");
            let answers = ctx.join2(twice, child).await;
            Ok(format!("{answers:?}"))
        })
        .options(|options| options.max_attempts = 3)
        .start()
        .await;
    world.run_to_error("m", "Main", "").await;
    let activity = logs.one("activity 'SendEmial' is not registered");
    assert_eq!(
        (activity.level, activity.target.as_str()),
        (Level::WARN, "duroxide::runtime::registry")
    );
    assert!(activity.message.contains("[SendEmail, SendMail]"), "{}", activity.message);
    assert_eq!((activity.field("name"), activity.field("used_by")), ("SendEmial", "Main"));
    let child = logs.one("orchestration 'Ordre' is not registered");
    assert!(child.message.contains("[Order]"), "{}", child.message);
    let detached = logs.one("orchestration 'Something else' is not registered");
    assert!(detached.message.contains("[]"), "{}", detached.message);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r3_172_an_unknown_start_or_version_is_announced_too() {
    let logs = listen();
    let main = |_ctx: OrchestrationContext, input: String| async move { Ok(input) };
    let world = world()
        .patient()
        .orchestration_version("Main", "1.0.0", main)
        .orchestration_version("Main", "1.2.0", main)
        .options(|options| options.max_attempts = 3)
        .start()
        .await;
    world.client.start_orchestration("a", "Mian", "").await.unwrap();
    for instance in ["b", "c"] {
        let client = &world.client;
        client.start_orchestration_versioned(instance, "Main", "3.0.0", "").await.unwrap();
    }
    for instance in ["a", "b", "c"] {
        assert!(matches!(world.error(instance).await, ErrorDetails::Poison { .. }));
    }
    let name = logs.one("orchestration 'Mian' is not registered");
    assert!(name.message.contains("[Main]"), "{}", name.message);
    let version = logs.one("version 3.0.0 of orchestration 'Main' is not registered");
    assert!(version.message.contains("[1.0.0, 1.2.0]"), "{}", version.message);
    assert_eq!(
        (version.level, version.target.as_str()),
        (Level::WARN, "duroxide::runtime::registry")
    );
    world.finish().await;
}
