//! What an activity knows, what becomes of its result, and how often it runs (chapters 5.1, 5.2).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duroxide::providers::{Provider, WorkItem};
use duroxide::{
    ActivityContext, AppErrorKind, ErrorDetails, Event, EventKind, OrchestrationContext,
    PoisonMessageType, PruneOptions, RuntimeOptions,
};
use tokio::time::Instant;

use crate::support::faults::{Faults, FaultyProvider, broken};
use crate::support::logs::listen;
use crate::support::{Door, World, WorldBuilder, kinds, world, world_on};

/// An orchestration that hands its input to an activity and returns the answer.
async fn call_a(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.schedule_activity("A", input).await
}

fn describe(ctx: &ActivityContext) -> String {
    format!(
        "{}/{} {}@{} {} {:?} {:?}",
        ctx.instance_id(),
        ctx.execution_id(),
        ctx.orchestration_name(),
        ctx.orchestration_version(),
        ctx.activity_name(),
        ctx.session_id(),
        ctx.tag(),
    )
}

fn describing(world: WorldBuilder) -> WorldBuilder {
    world.activity("A", |ctx, _| async move { Ok(describe(&ctx)) })
}

#[tokio::test]
async fn r5_1_the_context_says_who_asked() {
    let world = describing(world())
        .orchestration_version("Order", "2.1.0", |ctx, _| async move {
            let plain = ctx.schedule_activity("A", "").await?;
            let bound = ctx.schedule_activity_on_session("A", "", "s1").with_tag("gpu").await?;
            Ok(format!("{plain}; {bound}"))
        })
        .options(|options| options.worker_tag_filter = duroxide::TagFilter::Any)
        .start()
        .await;
    let expected = "o1/1 Order@2.1.0 A None None; o1/1 Order@2.1.0 A Some(\"s1\") Some(\"gpu\")";
    assert_eq!(world.run("o1", "Order", "").await, expected);
    world.finish().await;
}

#[tokio::test]
async fn l24_r7_5_worker_ids_name_the_slot_and_the_node() {
    for (node_id, is_ours) in [
        (Some("n7"), (|suffix: &str| suffix == "n7") as fn(&str) -> bool),
        (None, |suffix| suffix.len() == 16 && suffix.chars().all(|c| c.is_ascii_hexdigit())),
    ] {
        let world = world()
            .activity("A", |ctx, _| async move { Ok(ctx.worker_id().to_owned()) })
            .orchestration("Main", call_a)
            .options(|options| {
                options.worker_concurrency = 1;
                options.worker_node_id = node_id.map(str::to_owned);
            })
            .start()
            .await;
        let worker_id = world.run("m", "Main", "").await;
        let suffix = worker_id.strip_prefix("work-0-").unwrap();
        assert!(is_ours(suffix), "{worker_id}");
        world.finish().await;
    }
}

#[tokio::test]
async fn r5_2_activities_may_use_the_client() {
    let world = world()
        .activity("A", |ctx, _| async move {
            let (client, own) = (ctx.get_client(), ctx.instance_id());
            client.start_orchestration("other", "Other", "x").await.map_err(|e| e.to_string())?;
            client.raise_event(own, "Go", "from inside").await.map_err(|e| e.to_string())?;
            let keep = PruneOptions { keep_last: Some(1), ..PruneOptions::default() };
            let pruned = client.prune_executions(own, keep).await.map_err(|e| e.to_string())?;
            Ok(pruned.executions_deleted.to_string())
        })
        .orchestration("Other", |_ctx, input| async move { Ok(format!("other:{input}")) })
        .orchestration("Main", |ctx, input| async move {
            if input == "first" {
                return ctx.continue_as_new("second").await;
            }
            let go = ctx.schedule_wait("Go");
            let pruned = ctx.schedule_activity("A", "").await?;
            Ok(format!("{} {pruned}", go.await))
        })
        .start()
        .await;
    assert_eq!(world.run("m", "Main", "first").await, "from inside 1");
    assert_eq!(world.output("other").await, "other:x");
    world.finish().await;
}

/// Queues an activity as an earlier turn would have done.
async fn queue_by_hand(world: &World, instance: &str, execution_id: u64) {
    let item = WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id,
        id: 2,
        name: "A".to_owned(),
        input: String::new(),
        session_id: None,
        tag: None,
    };
    world.memory.enqueue_for_worker(item).await.unwrap();
}

#[tokio::test]
async fn l28_r5_3_name_and_version_are_those_of_the_execution_that_asked() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let telling = |world: WorldBuilder| {
        let tell = tell.clone();
        world
            .activity("A", move |ctx, _| {
                tell.send(describe(&ctx)).unwrap();
                async { Ok(String::new()) }
            })
            .orchestration_version("Main", "1.0.0", |ctx, _| async move {
                ctx.schedule_activity("A", "").await?;
                ctx.continue_as_new_versioned("2.0.0", "").await
            })
            .orchestration_version("Main", "2.0.0", |ctx, _| async move {
                ctx.schedule_activity("A", "").await
            })
    };
    let world = telling(world()).start().await;
    let start = world.client.start_orchestration_versioned("m", "Main", "1.0.0", "");
    start.await.unwrap();
    world.output("m").await;
    assert_eq!(told.recv().await.unwrap(), "m/1 Main@1.0.0 A None None");
    assert_eq!(told.recv().await.unwrap(), "m/2 Main@2.0.0 A None None");
    // Late work of the first execution, on the node that ran it.
    queue_by_hand(&world, "m", 1).await;
    assert_eq!(told.recv().await.unwrap(), "m/1 Main@1.0.0 A None None");
    let memory = Arc::clone(&world.memory);
    world.finish().await;
    // The same on a node that has to read it, and of an instance nobody can read.
    let world = telling(world_on(memory)).start().await;
    for (instance, execution_id, expected) in [
        ("m", 1, "m/1 Main@1.0.0 A None None"),
        ("m", 2, "m/2 Main@2.0.0 A None None"),
        ("ghost", 1, "ghost/1 unknown@unknown A None None"),
    ] {
        queue_by_hand(&world, instance, execution_id).await;
        assert_eq!(told.recv().await.unwrap(), expected);
    }
    world.finish().await;
}

#[tokio::test]
async fn l28_an_id_used_again_is_another_execution() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let world = world()
        .activity("A", move |ctx, _| {
            tell.send(ctx.orchestration_name().to_owned()).unwrap();
            async { Ok(String::new()) }
        })
        .orchestration("Old", call_a)
        .start()
        .await;
    world.run("m", "Old", "").await;
    assert_eq!(told.recv().await.unwrap(), "Old");
    world.client.delete_instance("m", false).await.unwrap();
    // Begun again, elsewhere, as something else.
    let started = EventKind::OrchestrationStarted {
        name: "New".to_owned(),
        version: "1.0.0".to_owned(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let event = Event::with_event_id(1, "m", 1, None, started);
    world.memory.append_with_execution("m", 1, vec![event]).await.unwrap();
    queue_by_hand(&world, "m", 1).await;
    assert_eq!(told.recv().await.unwrap(), "New");
    world.finish().await;
}

#[tokio::test]
async fn r5_10_r7_8_a_slot_runs_one_activity_at_a_time_and_slots_run_at_the_same_time() {
    for slots in [1, 3] {
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (running_now, most_ever) = (Arc::clone(&running), Arc::clone(&most));
        let door = Door::default();
        let inner_door = door.clone();
        let world = world()
            .activity("A", move |_ctx, _| {
                let (running, most) = (Arc::clone(&running_now), Arc::clone(&most_ever));
                let door = inner_door.clone();
                async move {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    door.pass().await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    Ok(String::new())
                }
            })
            .orchestration("Main", |ctx, _| async move {
                let calls = (0..6).map(|_| ctx.schedule_activity("A", "")).collect();
                Ok(ctx.join(calls).await.len().to_string())
            })
            .options(|options| options.worker_concurrency = slots)
            .start()
            .await;
        world.begin("m", "Main", "").await;
        for _ in 0..slots {
            door.knock().await; // As many as there are slots come without anybody leaving.
        }
        (0..6).for_each(|_| door.open());
        assert_eq!(world.output("m").await, "6");
        assert_eq!(most.load(Ordering::SeqCst), slots);
        world.finish().await;
    }
}

fn failure_of(history: &[Event]) -> &ErrorDetails {
    let failed = history.iter().find_map(|event| match &event.kind {
        EventKind::ActivityFailed { details } => Some(details),
        _ => None,
    });
    failed.expect("an activity failed")
}

#[tokio::test]
async fn r5_11_r2_31_r2_32_results_and_errors_are_recorded_as_they_are() {
    let world = world()
        .activity("A", |_ctx, input| async move {
            if input == "bad" { Err("no good".to_owned()) } else { Ok("good".to_owned()) }
        })
        .orchestration("Main", call_a)
        .start()
        .await;
    assert_eq!(world.run("ok", "Main", "").await, "good");
    let error = world.run_to_error("bad", "Main", "bad").await;
    assert_eq!(error.display_message(), "no good");
    let details = ErrorDetails::Application {
        kind: AppErrorKind::ActivityFailed,
        message: "no good".to_owned(),
        retryable: false,
    };
    assert_eq!(*failure_of(&world.history("bad").await), details);
    let ok = world.history("ok").await;
    let expected = [
        "OrchestrationStarted",
        "ActivityScheduled",
        "ActivityCompleted",
        "OrchestrationCompleted",
    ];
    assert_eq!(kinds(&ok), expected);
    assert_eq!(ok[2].source_event_id, Some(ok[1].event_id));
    world.finish().await;
}

/// Throws another of its kind when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::panic_any(Bomb);
    }
}

#[tokio::test]
async fn r5_12_a_panic_whose_payload_panics_when_dropped_is_a_panic_like_any_other() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let world = world()
        .activity("A", move |_ctx, input| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move { if input == "bomb" { std::panic::panic_any(Bomb) } else { Ok(input) } }
        })
        .orchestration("Main", call_a)
        .options(|options| options.worker_concurrency = 1)
        .start()
        .await;
    let error = world.run_to_error("bomb", "Main", "bomb").await;
    assert_eq!(error.display_message(), "activity panicked: unknown reason");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(world.run("after", "Main", "fine").await, "fine");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_23_an_activity_whose_destructors_panic_can_be_stopped_like_any_other() {
    let logs = listen();
    let world = world()
        .activity("A", |_ctx, _| async move {
            let _bomb = Bomb;
            std::future::pending().await
        })
        .orchestration("Main", |ctx, _| async move {
            let work = ctx.schedule_activity("A", "");
            ctx.select2(work, ctx.schedule_timer(Duration::from_secs(1))).await;
            Ok("done".to_owned())
        })
        .options(|options| options.worker_concurrency = 1)
        .patient()
        .start()
        .await;
    assert_eq!(world.run("i", "Main", "").await, "done");
    tokio::time::sleep(Duration::from_secs(60)).await; // The next renewal, the grace period.
    assert_eq!(logs.saying("Activity cancelled").len(), 1);
    assert_eq!(logs.saying("activity processing panicked").len(), 0);
    world.finish().await;
}

#[tokio::test]
async fn l27_r5_12_a_panic_is_recorded_with_its_own_text_and_the_slot_lives() {
    let world = world()
        .activity("A", |_ctx, input| async move {
            match input.as_str() {
                "text" => panic!("out of cheese"),
                "later" => {
                    tokio::task::yield_now().await;
                    panic!("out of {}", "time")
                }
                "thing" => std::panic::panic_any(7),
                _ => Ok("fine".to_owned()),
            }
        })
        .orchestration("Main", call_a)
        .options(|options| options.worker_concurrency = 1)
        .start()
        .await;
    for (input, text) in [
        ("text", "activity panicked: out of cheese"),
        ("later", "activity panicked: out of time"),
        ("thing", "activity panicked: unknown reason"),
    ] {
        assert_eq!(world.run_to_error(input, "Main", input).await.display_message(), text);
        let history = world.history(input).await;
        let expected = ErrorDetails::Application {
            kind: AppErrorKind::ActivityFailed,
            message: text.to_owned(),
            retryable: false,
        };
        assert_eq!(*failure_of(&history), expected);
    }
    assert_eq!(world.run("after", "Main", "").await, "fine");
    world.finish().await;
}

#[tokio::test]
async fn r5_13_input_that_cannot_be_decoded_is_an_application_error() {
    let world = world()
        .activities(|activities| {
            activities.register_typed("A", |_ctx, n: u32| async move { Ok(2 * n) })
        })
        .orchestration("Main", call_a)
        .start()
        .await;
    assert_eq!(world.run("ok", "Main", "21").await, "42");
    world.run_to_error("bad", "Main", "many").await;
    let history = world.history("bad").await;
    let details = failure_of(&history);
    assert_eq!(details.category(), "application");
    assert!(details.display_message().contains("expected value"), "{details:?}");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_14_a_crash_makes_an_activity_run_again() {
    let door = Door::default();
    let first = world().behind("A", &door).orchestration("Main", call_a).start().await;
    first.begin("m", "Main", "x").await;
    door.knock().await;
    let (memory, fetched_at) = (Arc::clone(&first.memory), Instant::now());
    first.runtime.shutdown(Some(0)).await; // R5.30: aborted, not cancelled; R1.5
    assert_eq!(memory.snapshot().worker_queue[0].attempts, 1);

    let second = world_on(memory).patient().behind("A", &door).orchestration("Main", call_a);
    let second = second.start().await;
    door.knock().await;
    assert_eq!(fetched_at.elapsed(), Duration::from_secs(30)); // R7.126: when its lock expires
    assert_eq!(second.memory.snapshot().worker_queue[0].attempts, 2);
    door.open();
    assert_eq!(second.output("m").await, "A:x");
    second.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_15_a_result_that_cannot_be_stored_costs_another_run() {
    let (faults, door) = (Faults::default(), Door::default());
    let world = world()
        .behind("A", &door)
        .orchestration("Main", call_a)
        .through(|store| FaultyProvider::wrap(store, &faults))
        .start()
        .await;
    faults.next("ack_work_item", [broken()]);
    world.begin("m", "Main", "x").await;
    door.knock().await;
    door.open();
    let began = Instant::now();
    door.knock().await;
    assert_eq!(began.elapsed(), Duration::from_millis(100));
    assert_eq!(world.memory.snapshot().worker_queue[0].attempts, 2);
    door.open();
    assert_eq!(world.output("m").await, "A:x");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_16_r7_31_an_activity_nobody_registers_is_retried_and_then_given_up() {
    let logs = listen();
    let world = world().patient().orchestration("Main", call_a).start().await;
    let began = Instant::now();
    let error = world.run_to_error("m", "Main", "x").await; // R4.16
    assert_eq!(began.elapsed(), Duration::from_secs(1 + 2 + 4 + 8 + 16 + 32 + 4 * 60));

    // R7.32 – R7.34, R9.54: ten fetches back off.
    let backoffs = logs.saying("activity not registered here");
    let column = |name: &str| -> Vec<String> {
        backoffs.iter().map(|record| record.field(name).to_owned()).collect()
    };
    assert_eq!(column("backoff_secs").join(" "), "1.0 2.0 4.0 8.0 16.0 32.0 60.0 60.0 60.0 60.0");
    assert_eq!(column("remaining_attempts").join(" "), "9 8 7 6 5 4 3 2 1 0");
    let all_say = |name: &str, value: &str| column(name).iter().all(|text| text == value);
    assert!(all_say("max_attempts", "10") && all_say("instance", "m"));

    // R7.33, R7.79: the eleventh gives it up, with the work item as its message.
    let ErrorDetails::Poison { attempt_count, max_attempts, message_type, message } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((*attempt_count, *max_attempts), (11, 10));
    let poisoned = PoisonMessageType::Activity {
        instance: "m".to_owned(),
        execution_id: 1,
        activity_name: "A".to_owned(),
        activity_id: 2,
    };
    assert_eq!(*message_type, poisoned);
    let item: WorkItem = serde_json::from_str(message).unwrap();
    assert!(matches!(item, WorkItem::ActivityExecute { id: 2, input, .. } if input == "x"));
    assert_eq!(*failure_of(&world.history("m").await), error);
    let given_up = logs.one("activity given up as poison");
    assert_eq!((given_up.field("attempt_count"), given_up.field("max_attempts")), ("11", "10"));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_30_a_node_deployed_later_serves_what_others_do_not_know() {
    let old = world().orchestration("Main", call_a).start().await;
    old.begin("m", "Main", "x").await;
    old.until("m", |history| kinds(history).contains(&"ActivityScheduled".to_owned())).await;
    tokio::time::sleep(Duration::from_secs(5)).await; // Three attempts at 0, 1 and 3 s.
    assert_eq!(old.memory.snapshot().worker_queue[0].attempts, 3);
    let memory = Arc::clone(&old.memory);
    old.finish().await;
    let new = world_on(memory).echo("A").orchestration("Main", call_a).start().await;
    assert_eq!(new.output("m").await, "A:x");
    new.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_32_the_attempt_budget_is_an_option() {
    let world = world()
        .patient()
        .orchestration("Main", call_a)
        .options(|options| {
            options.max_attempts = 2;
            options.unregistered_backoff.base_delay = Duration::from_secs(10);
            options.unregistered_backoff.max_delay = Duration::from_secs(15);
        })
        .start()
        .await;
    let began = Instant::now();
    let error = world.run_to_error("m", "Main", "").await;
    assert_eq!(began.elapsed(), Duration::from_secs(10 + 15));
    assert!(matches!(error, ErrorDetails::Poison { attempt_count: 3, max_attempts: 2, .. }));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_79_an_activity_that_kills_its_node_is_given_up_without_another_run() {
    let runs = Arc::new(AtomicUsize::new(0));
    let options = |options: &mut RuntimeOptions| options.max_attempts = 2;
    let mut memory = Arc::new(duroxide::providers::memory::MemoryProvider::new());
    for run in 0..3 {
        let (door, runs_here) = (Door::default(), Arc::clone(&runs));
        let inner = door.clone();
        let node = world_on(Arc::clone(&memory))
            .patient()
            .activity("A", move |_ctx, _| {
                runs_here.fetch_add(1, Ordering::SeqCst);
                let door = inner.clone();
                async move {
                    door.pass().await;
                    Ok(String::new())
                }
            })
            .orchestration("Main", call_a)
            .options(options)
            .start()
            .await;
        if run == 0 {
            node.begin("m", "Main", "").await;
        }
        if run < 2 {
            door.knock().await;
            memory = Arc::clone(&node.memory);
            node.runtime.shutdown(Some(0)).await;
            continue;
        }
        let error = node.error("m").await;
        assert!(
            matches!(error, ErrorDetails::Poison { attempt_count: 3, max_attempts: 2, .. }),
            "{error:?}"
        );
        // R9.62
        let expected = "poison: activity A#2 exceeded 3 attempts (max 2): no error is known: each \
                        time the process ended, or lost its lock, while it ran";
        assert_eq!(error.display_message(), expected);
        node.finish().await;
    }
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn l26_r7_25_what_is_no_activity_is_kept_for_a_while_and_then_removed() {
    let (logs, faults) = (listen(), Faults::default());
    let world = world()
        .echo("A")
        .orchestration("Main", call_a)
        .options(|options| {
            options.worker_concurrency = 1;
            options.max_attempts = 3;
        })
        .through(|store| FaultyProvider::wrap(store, &faults))
        .start()
        .await;
    let stranger = WorkItem::CancelInstance { instance: "m".to_owned(), reason: String::new() };
    faults.plant(stranger);
    assert_eq!(world.run("m", "Main", "x").await, "A:x"); // The slot lives.
    let seconds = |s| Some(Duration::from_secs(s));
    assert_eq!(faults.fate(), [seconds(1), seconds(2), seconds(4), None]);
    let errors = logs.saying("found in the worker queue");
    assert_eq!(errors.len(), 4);
    assert!(errors.iter().all(|record| record.level == tracing::Level::ERROR));
    assert_eq!(errors[3].field("removed"), "true");
    world.finish().await;
}
