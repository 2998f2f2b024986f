//! What is logged, where, with which fields (chapter 9.5).

use std::collections::BTreeSet;
use std::time::Duration;

use duroxide::providers::Provider;
use duroxide::{
    ErrorDetails, Event, EventKind, OrchestrationContext, SemverRange, current_build_version,
};
use tracing::Level;

use crate::support::faults::{Faults, FaultyProvider, broken, busy};
use crate::support::logs::{Record, listen};
use crate::support::{World, kinds, world};

const TURNS: &str = "duroxide::runtime::dispatchers::orchestration";
const WORKER: &str = "duroxide::runtime::worker";

fn about<'a>(records: &'a [Record], target: &str) -> Vec<(Level, &'a str)> {
    let ours = records.iter().filter(|record| record.target == target);
    ours.map(|record| (record.level, record.message.as_str())).collect()
}

#[tokio::test]
async fn r9_40_orchestrations_log_each_line_once_under_their_own_name() {
    let logs = listen();
    let world = world()
        .echo("A")
        .orchestration_version("Main", "1.1.0", |ctx, _| async move {
            ctx.trace_info("begun");
            ctx.schedule_activity("A", "").await?;
            ctx.trace_warn("halfway {}");
            ctx.schedule_activity("A", "").await?;
            ctx.trace_error("nearly");
            ctx.trace_debug("done");
            ctx.trace("Notice", "odd level"); // R4.6
            Ok(String::new())
        })
        .start()
        .await;
    world.run("m", "Main", "").await;
    let records = logs.records();
    let traced = about(&records, "duroxide::orchestration");
    let expected = [
        (Level::INFO, "begun"),
        (Level::WARN, "halfway {}"),
        (Level::ERROR, "nearly"),
        (Level::DEBUG, "done"),
        (Level::TRACE, "odd level"),
    ];
    assert_eq!(traced, expected); // R4.5: although the code ran three times.
    let begun = logs.one("begun");
    assert_eq!(
        begun.field_names(),
        ["execution_id", "instance_id", "orchestration_name", "orchestration_version"]
    );
    // R9.42: as plain text.
    assert_eq!((begun.field("instance_id"), begun.field("execution_id")), ("m", "1"));
    assert_eq!(begun.field("orchestration_name"), "Main");
    assert_eq!(begun.field("orchestration_version"), "1.1.0");
    assert_eq!(logs.one("odd level").field("level"), "Notice");
    world.finish().await;
}

#[tokio::test]
async fn r9_41_activities_log_every_time_they_run_and_say_who_they_are() {
    let logs = listen();
    let world = world()
        .activity("A", |ctx, _| async move {
            ctx.trace_info("working");
            ctx.trace_warn("careful");
            ctx.trace_error("ouch");
            ctx.trace_debug("details");
            Ok(ctx.worker_id().to_owned())
        })
        .orchestration("Main", |ctx, _| async move { ctx.schedule_activity("A", "").await })
        .start()
        .await;
    let worker_id = world.run("m", "Main", "").await;
    let records = logs.records();
    let expected = [
        (Level::INFO, "working"),
        (Level::WARN, "careful"),
        (Level::ERROR, "ouch"),
        (Level::DEBUG, "details"),
    ];
    assert_eq!(about(&records, "duroxide::activity"), expected);
    let working = logs.one("working");
    for (field, value) in [
        ("instance_id", "m"),
        ("execution_id", "1"),
        ("orchestration_name", "Main"),
        ("orchestration_version", "1.0.0"),
        ("activity_name", "A"),
        ("activity_id", "2"),
        ("worker_id", worker_id.as_str()),
    ] {
        assert_eq!(working.field(field), value);
    }
    assert_eq!(working.fields.len(), 7);
    world.finish().await;
}

#[tokio::test]
async fn r9_50_r9_51_a_runtime_says_what_it_is_and_what_it_takes() {
    let logs = listen();
    let range = SemverRange::new("0.1.0".parse().unwrap(), "0.3.0".parse().unwrap());
    for (range, text) in [
        (Some(range), ">=0.1.0, <=0.3.0".to_owned()),
        (None, format!(">=0.0.0, <={}", current_build_version())),
    ] {
        let world = world().options(|options| options.supported_replay_versions = range);
        let world = world.start().await;
        let configured = logs.saying("Orchestration dispatcher capability filter configured");
        let configured = configured.last().unwrap();
        assert_eq!(configured.message, "Orchestration dispatcher capability filter configured");
        assert_eq!(configured.field("supported_range"), text);
        assert_eq!(
            (configured.level, configured.target.as_str()),
            (Level::INFO, "duroxide::runtime")
        );
        world.finish().await;
    }
    let version = current_build_version();
    let hello = &logs.saying("starting with provider")[0];
    let memory = world().start().await;
    let provider = memory.memory.version().to_owned();
    memory.finish().await;
    assert_eq!(
        hello.message,
        format!("duroxide runtime ({version}) starting with provider memory ({provider})")
    );
    assert_eq!((hello.level, hello.target.as_str()), (Level::INFO, "duroxide::runtime"));
}

/// An instance begun by a library of another version, with something to do.
async fn begun_by(world: &World, stamp: &str) {
    let kind = EventKind::OrchestrationStarted {
        name: "Main".to_owned(),
        version: "1.0.0".to_owned(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let mut event = Event::with_event_id(1, "m", 1, None, kind);
    event.duroxide_version = stamp.to_owned();
    world.memory.append_with_execution("m", 1, vec![event]).await.unwrap();
    world.client.raise_event("m", "Go", "").await.unwrap();
}

async fn wait_twice(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_wait("Go").await;
    Ok(ctx.schedule_wait("Go").await)
}

#[tokio::test(start_paused = true)]
async fn r9_52_r7_85_l33_work_of_a_newer_library_is_left_alone_and_given_up_at_last() {
    let logs = listen();
    let world = world().patient().orchestration("Main", wait_twice);
    let world = world.options(|options| options.max_attempts = 2).start().await;
    begun_by(&world, "9.9.9").await;
    let error = world.error("m").await; // R1.23 comes before R1.21.
    assert!(matches!(error, ErrorDetails::Poison { attempt_count: 3, .. }), "{error:?}");
    let text = "Execution pinned at incompatible version, abandoning (runtime-side check)";
    let warnings = logs.saying(text);
    assert_eq!(warnings.len(), 2);
    for (warning, attempt) in warnings.iter().zip(["1", "2"]) {
        assert_eq!((warning.level, warning.target.as_str()), (Level::WARN, "duroxide::runtime"));
        assert_eq!((warning.message.as_str(), warning.field("instance")), (text, "m"));
        assert_eq!(warning.field("pinned_version"), "9.9.9");
        let range = format!(">=0.0.0, <={}", current_build_version());
        assert_eq!(
            (warning.field("supported_range"), warning.field("attempt_count")),
            (range.as_str(), attempt)
        );
    }
    world.finish().await;
}

#[tokio::test]
async fn r9_55_a_stamp_that_cannot_be_read_warns_in_every_turn() {
    let logs = listen();
    let world = world().orchestration("Main", wait_twice).start().await;
    begun_by(&world, "yesterday").await;
    world.until("m", |history| kinds(history).len() == 3).await;
    for turn in 1..=2 {
        let warnings = logs.saying("Invalid pinned version");
        assert_eq!(warnings.len(), turn);
        assert_eq!((warnings[0].level, warnings[0].field("instance")), (Level::WARN, "m"));
        world.client.raise_event("m", "Go", turn.to_string()).await.unwrap();
        world.until("m", |history| kinds(history).len() > 1 + 2 * turn).await;
    }
    assert_eq!(world.output("m").await, "2");
    world.finish().await;
}

#[tokio::test]
async fn r9_53_beginnings_and_ends_are_logged_and_failures_by_their_kind() {
    let logs = listen();
    let world = world()
        .activity("A", |_ctx, input| async move {
            if input == "bad" { Err("no luck".to_owned()) } else { Ok(input) }
        })
        .orchestration("Main", |ctx, input| async move {
            match input.as_str() {
                "again" => ctx.continue_as_new("").await,
                _ => ctx.schedule_activity("A", input).await,
            }
        })
        .start()
        .await;
    world.run("m", "Main", "again").await;
    let records = logs.records();
    let debug = |text: &'static str| (Level::DEBUG, text);
    let turns = about(&records, TURNS);
    let expected = [
        debug("Orchestration started"),
        debug("Orchestration continued as new"),
        debug("Orchestration started"),
        debug("Orchestration completed"),
    ];
    assert_eq!(turns, expected);
    let activities = about(&records, WORKER);
    assert_eq!(activities, [debug("Activity started"), debug("Activity completed")]);
    let completed = logs.one("Activity completed");
    for field in ["instance_id", "execution_id", "activity_name", "activity_id", "worker_id"] {
        assert!(completed.fields.contains_key(field), "{completed:?}");
    }
    assert_eq!(logs.one("Orchestration completed").field("execution_id"), "2");

    world.run_to_error("bad", "Main", "bad").await;
    let activity = logs.one("Activity failed");
    let orchestration = logs.one("Orchestration failed");
    for failed in [&activity, &orchestration] {
        assert_eq!((failed.level, failed.field("error_type")), (Level::WARN, "app_error"));
        assert_eq!((failed.field("error"), failed.field("instance_id")), ("no luck", "bad"));
        assert!(
            failed.field("worker_id").contains("-0-") || failed.field("worker_id").contains("-1-")
        );
    }
    assert_eq!(orchestration.field("orchestration_name"), "Main");
    assert_eq!(orchestration.field("orchestration_version"), "1.0.0");
    world.finish().await;
}

#[tokio::test]
async fn r9_53_failures_that_are_not_the_applications_are_errors() {
    let (logs, faults) = (listen(), Faults::default());
    let world = world()
        .orchestration("Main", |_ctx, input| async move { Ok(input) })
        .through(|store| FaultyProvider::wrap(store, &faults))
        .start()
        .await;
    faults.next("ack_orchestration_item", [broken()]);
    world.run_to_error("m", "Main", "").await; // R7.51
    let failed = logs.one("Orchestration failed");
    assert_eq!((failed.level, failed.field("error_type")), (Level::ERROR, "infrastructure_error"));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r9_54_r7_34_backing_off_says_what_is_left() {
    let logs = listen();
    let world = world().patient().options(|options| options.max_attempts = 2).start().await;
    world.run_to_error("m", "Nobody", "").await;
    let backoffs = logs.saying("orchestration not registered here, backing off");
    let columns = |name: &str| -> Vec<&str> { backoffs.iter().map(|r| r.field(name)).collect() };
    assert_eq!(columns("instance"), ["m", "m"]);
    assert_eq!(columns("attempt_count"), ["1", "2"]);
    assert_eq!(columns("max_attempts"), ["2", "2"]);
    assert_eq!(columns("remaining_attempts"), ["1", "0"]);
    assert_eq!(columns("backoff_secs"), ["1.0", "2.0"]);
    assert!(backoffs.iter().all(|record| record.level == Level::WARN));
    let poison = logs.one("orchestration given up as poison");
    assert_eq!((poison.field("instance"), poison.field("attempt_count")), ("m", "3"));
    assert_eq!(poison.field("max_attempts"), "2");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r9_57_there_are_few_targets_whatever_happens() {
    let (logs, faults) = (listen(), Faults::default());
    let world = world()
        .patient()
        .echo("A")
        .orchestration("Main", |ctx, input| async move {
            ctx.trace_info("here");
            ctx.schedule_activity(input, "").await
        })
        .options(|options| options.max_attempts = 1)
        .through(|store| FaultyProvider::wrap(store, &faults))
        .start()
        .await;
    for method in ["fetch_orchestration_item", "fetch_work_item", "ack_orchestration_item"] {
        faults.next(method, [busy(), broken()]);
    }
    faults.next("ack_work_item", [busy(), broken()]);
    faults.next("renew_work_item_lock", [busy()]);
    world.begin("m", "Main", "A").await;
    world.ended("m").await;
    world.begin("n", "Main", "B").await;
    world.ended("n").await;
    let targets: BTreeSet<String> = logs.records().into_iter().map(|r| r.target).collect();
    let expected = [
        "duroxide::orchestration",
        "duroxide::runtime",
        TURNS,
        "duroxide::runtime::registry",
        WORKER,
    ];
    assert_eq!(targets.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    let missed = logs.saying("no handler for this name");
    assert!(!missed.is_empty());
    assert!(missed.iter().all(|r| r.level == Level::DEBUG && r.target.ends_with("registry")));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_5_a_turn_repeated_after_a_failed_commit_logs_again() {
    let (logs, faults) = (listen(), Faults::default());
    let world = world()
        .patient()
        .orchestration("Main", |ctx, input| async move {
            ctx.trace_info("once per turn");
            Ok(input)
        })
        .through(|store| FaultyProvider::wrap(store, &faults))
        .start()
        .await;
    faults.always("ack_orchestration_item", busy());
    faults.always("renew_orchestration_item_lock", broken());
    world.begin("m", "Main", "x").await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    faults.clear();
    world.output("m").await;
    assert_eq!(logs.saying("once per turn").len(), 2);
    world.finish().await;
}
