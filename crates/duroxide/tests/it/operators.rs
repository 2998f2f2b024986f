//! What people are told when something is wrong: which payload, which name, which store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::memory::MemoryProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{Client, ClientError, ErrorDetails, OrchestrationContext, OrchestrationRegistry};
use tracing::Level;

use crate::support::faults::{Faults, FaultyProvider, broken, busy};
use crate::support::logs::{Record, listen};
use crate::support::numbers::{Board, counters};
use crate::support::{Door, world, world_on};

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn r9_60_a_payload_that_new_code_cannot_read_is_named_and_counted() {
    let before = world()
        .echo("Count")
        .orchestration("Main", |ctx, _| async move {
            let count: String = ctx.schedule_activity_typed("Count", &"many").await?;
            ctx.schedule_wait("go").await;
            Ok(count)
        })
        .start()
        .await;
    before.begin("m", "Main", "").await;
    before.until("m", |history| history.len() == 4).await;
    let memory = before.close().await;

    let board = Board::default();
    let _counting = board.count();
    let after = world_on(memory)
        .echo("Count")
        .orchestration("Main", |ctx, _| async move {
            let count: u32 = ctx.schedule_activity_typed("Count", &"many").await?;
            ctx.schedule_wait("go").await;
            Ok(count.to_string())
        })
        .start()
        .await;
    after.client.raise_event("m", "go", "").await.unwrap();
    let error = after.error("m").await;
    assert!(matches!(error, ErrorDetails::Configuration { .. }), "{error:?}");
    let shown = error.display_message();
    let expected = "nondeterministic: result of activity 'Count' (event 2) of instance 'm' cannot \
                    be decoded as u32: expected value at line 1 column 1; so code returned before \
                    history was consumed: ";
    assert!(shown.starts_with(expected), "{shown}");
    let numbers = board.take();
    let failures = counters(&numbers, "duroxide_orchestration_failures");
    let [(name, 1)] = &failures[..] else { panic!("{failures:?}") };
    assert!(name.contains("error_category=configuration,error_type=decode_error"), "{name}");
    assert_eq!(after.runtime.metrics_snapshot().unwrap().orch_configuration_errors, 1);
    after.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r9_60_it_is_counted_where_history_had_not_gone_on() {
    let before = world()
        .echo("Count")
        .orchestration("Main", |ctx, _| async move {
            let count = ctx.schedule_activity_typed::<_, String>("Count", &"many");
            let (count, _) = ctx.join2(count, ctx.schedule_wait("go")).await;
            count
        })
        .start()
        .await;
    before.begin("m", "Main", "").await;
    before.until_kind("m", "ActivityCompleted").await;
    let memory = before.close().await;

    let board = Board::default();
    let _counting = board.count();
    let after = world_on(memory)
        .echo("Count")
        .orchestration("Main", |ctx, _| async move {
            let count = ctx.schedule_activity_typed::<_, u32>("Count", &"many");
            let (count, _) = ctx.join2(count, ctx.schedule_wait("go")).await;
            Ok(count?.to_string())
        })
        .start()
        .await;
    after.client.raise_event("m", "go", "").await.unwrap();
    let error = after.error("m").await;
    assert!(matches!(error, ErrorDetails::Application { .. }), "{error:?}");
    let failures = counters(&board.take(), "duroxide_orchestration_failures");
    let [(name, 1)] = &failures[..] else { panic!("{failures:?}") };
    assert!(name.contains("error_category=application,error_type=decode_error"), "{name}");
    after.finish().await;
}

#[tokio::test]
async fn r9_61_errors_of_decoding_say_what_of_whom() {
    let store = Arc::new(MemoryProvider::new());
    let activities = ActivityRegistry::builder()
        .register_typed("Double", |_ctx, n: u32| async move { Ok(n * 2) })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register_typed("Typed", |_: OrchestrationContext, n: u32| async move { Ok(n) })
        .register("Wrong", |ctx: OrchestrationContext, input: String| async move {
            ctx.set_kv_value("size", "large");
            ctx.schedule_activity("Double", input).await
        })
        .register("Event", |ctx: OrchestrationContext, _: String| async move {
            let n: u32 = ctx.dequeue_event_typed("numbers").await;
            Ok(n.to_string())
        })
        .register("Child", |ctx: OrchestrationContext, _: String| async move {
            let text: Vec<u8> = ctx.schedule_sub_orchestration_typed("Typed", &7).await?;
            Ok(format!("{text:?}"))
        })
        .register("Text", |_: OrchestrationContext, input: String| async move { Ok(input) })
        .build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);
    client.enqueue_event("e", "numbers", "some").await.unwrap();
    for (id, name) in
        [("t", "Typed"), ("w", "Wrong"), ("e", "Event"), ("c", "Child"), ("x", "Text")]
    {
        client.start_orchestration(id, name, "some").await.unwrap();
    }
    let value = "expected value at line 1 column 1";
    for (id, expected) in [
        ("t", format!("input of orchestration 'Typed' cannot be decoded: {value}")),
        (
            "w",
            format!("input of activity 'Double' of instance 'w' cannot be decoded as u32: {value}"),
        ),
        (
            "e",
            format!(
                "orchestration panicked: queue message 'numbers' (event 3) cannot be decoded: {value}"
            ),
        ),
        (
            "c",
            "result of sub-orchestration 'Typed' (event 2) cannot be decoded: invalid type: \
             integer `7`, expected a sequence at line 1 column 1"
                .to_owned(),
        ),
    ] {
        let ended: Result<String, String> =
            client.wait_for_orchestration_typed(id, PATIENCE).await.unwrap();
        assert_eq!(ended, Err(expected));
    }
    let typed = client.wait_for_orchestration_typed::<u32>("x", PATIENCE).await;
    assert_invalid(typed, &format!("decode failed: output of instance 'x' is not u32: {value}"));
    let typed = client.get_kv_value_typed::<u32>("w", "size").await;
    let expected = "KV deserialization error: value of key 'size' of instance 'w' is not u32: ";
    assert_invalid(typed, &format!("{expected}{value}"));
    runtime.shutdown(None).await;
}

fn assert_invalid<T: std::fmt::Debug>(answer: Result<T, ClientError>, expected: &str) {
    match answer {
        Err(ClientError::InvalidInput { message }) => assert_eq!(message, expected),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn r9_62_what_is_given_up_names_what_was_missing() {
    let board = Board::default();
    let _counting = board.count();
    let world = world()
        .patient()
        .options(|options| options.max_attempts = 2)
        .echo("Charge")
        .orchestration_version("Order", "1.0.0", |_, input| async { Ok(input) })
        .orchestration_version("Order", "1.1.0", |_, input| async { Ok(input) })
        .orchestration("Main", |ctx, name| async move { ctx.schedule_activity(name, "").await })
        .start()
        .await;
    world.client.start_orchestration_versioned("v", "Order", "1.2.0", "").await.unwrap();
    for (instance, name, input) in [("n", "Ordr", ""), ("a", "Main", "Chrge")] {
        world.begin(instance, name, input).await;
    }
    let attempts = "exceeded 3 attempts (max 2)";
    for (instance, expected) in [
        (
            "v",
            format!(
                "poison: orchestration v {attempts}: orchestration `Order` version `1.2.0` is \
                 registered on no node that took it; there is version 1.0.0, 1.1.0"
            ),
        ),
        (
            "n",
            format!(
                "poison: orchestration n {attempts}: orchestration `Ordr` is registered on no node \
                 that took it; closest: Order"
            ),
        ),
        (
            "a",
            format!(
                "poison: activity Chrge#2 {attempts}: activity `Chrge` is registered on no node \
                 that took it; closest: Charge"
            ),
        ),
    ] {
        assert_eq!(world.error_at_last(instance).await.display_message(), expected); // R2.83a
        let output = world.client.get_instance_info(instance).await.unwrap().output;
        assert_eq!(output, Some(expected));
    }
    let numbers = board.take();
    let unregistered = |what: &str, count| {
        [(format!("duroxide_{what}_poison_total{{cause=unregistered}}"), count)]
    };
    let found = counters(&numbers, "duroxide_orchestration_poison");
    assert_eq!(found, unregistered("orchestration", 2));
    assert_eq!(counters(&numbers, "duroxide_activity_poison"), unregistered("activity", 1));
    let failures = counters(&numbers, "duroxide_orchestration_failures");
    assert!(failures.iter().all(|(name, _)| name.contains("error_type=poison")), "{failures:?}");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r9_62_r9_63_a_result_that_cannot_be_stored_is_the_stores_affair_and_the_cause() {
    let faults = Faults::default();
    let world = world()
        .patient()
        .options(|options| options.max_attempts = 2)
        .echo("A")
        .orchestration("Main", |ctx, _| async move { ctx.schedule_activity("A", "").await })
        .through(|store| FaultyProvider::wrap(store, &faults))
        .start()
        .await;
    faults.next("ack_work_item", [broken(), broken()]);
    let error = world.run_to_error("m", "Main", "").await;
    let expected = "poison: activity A#2 exceeded 3 attempts (max 2): its result could not be \
                    stored: fault: broken";
    assert_eq!(error.display_message(), expected);
    let counts = world.runtime.metrics_snapshot().unwrap();
    assert_eq!((counts.activity_infra_errors, counts.activity_poison), (2, 1));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r9_63_a_lock_that_ran_out_while_the_store_was_away_is_no_cancellation() {
    let (faults, door) = (Faults::default(), Door::default());
    let world = world()
        .patient()
        .options(|options| options.worker_lock_timeout = Duration::from_secs(30))
        .behind("A", &door)
        .orchestration("Main", |ctx, _| async move { ctx.schedule_activity("A", "").await })
        .through(|store| FaultyProvider::wrap(store, &faults))
        .start()
        .await;
    world.begin("m", "Main", "").await;
    door.knock().await;
    for method in ["ack_work_item", "renew_work_item_lock"] {
        faults.always(method, busy());
    }
    door.open();
    door.knock().await; // The lock has run out, and it runs again.
    faults.clear();
    door.open();
    world.output("m").await;
    let counts = world.runtime.metrics_snapshot().unwrap();
    assert_eq!((counts.activity_infra_errors, counts.activity_success), (1, 1));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r9_64_a_store_that_is_lost_is_told_in_few_lines() {
    for fault in [busy(), broken()] {
        let (logs, faults) = (listen(), Faults::default());
        let world = world()
            .orchestration("Main", |_, input| async { Ok(input) })
            .through(|store| FaultyProvider::wrap(store, &faults))
            .start()
            .await;
        assert_eq!(world.run("before", "Main", "x").await, "x");
        for method in ["fetch_orchestration_item", "fetch_work_item"] {
            faults.always(method, fault.clone());
        }
        world.begin("m", "Main", "x").await; // Ends a long poll.
        tokio::time::sleep(Duration::from_secs(120)).await;
        let lines: Vec<_> = logs.records().into_iter().filter(is_for_operators).collect();
        let first = lines.first().expect("a line");
        assert_eq!(first.message, "the store fails; trying again");
        assert!(first.field("error").starts_with("fault: "), "{first:?}");
        // At once, then after about 5, 15, 35 and 75 s.
        assert_eq!(lines.len(), 5, "{lines:#?}");
        let lasting: Vec<u64> =
            lines[1..].iter().map(|line| line.field("lasting_secs").parse().unwrap()).collect();
        assert!(lasting.windows(2).all(|two| two[0] * 2 <= two[1]), "{lasting:?}");

        faults.clear();
        assert_eq!(world.output("m").await, "x");
        tokio::time::sleep(Duration::from_secs(15)).await;
        let lines: Vec<_> = logs.records().into_iter().filter(is_for_operators).collect();
        assert_eq!(lines.len(), 6, "{lines:#?}");
        assert_eq!(lines[5].message, "the store works again");
        world.finish().await;
    }
}

/// Whether people see it who have set nothing.
fn is_for_operators(record: &Record) -> bool {
    record.level <= Level::WARN
}

#[tokio::test(start_paused = true)]
async fn r9_20_a_child_is_started_by_its_parent() {
    let board = Board::default();
    let _counting = board.count();
    let world = world()
        .orchestration("Main", |ctx, _| async move {
            ctx.schedule_orchestration("Child", "detached", "1");
            ctx.schedule_sub_orchestration("Child", "0").await
        })
        .orchestration("Child", |ctx, again| async move {
            match again.as_str() {
                "0" => ctx.continue_as_new("1").await,
                _ => Ok(again),
            }
        })
        .start()
        .await;
    world.run("m", "Main", "").await;
    world.output("detached").await;
    let started = |name: &str, by: &str| {
        let labels = format!("initiated_by={by},orchestration_name={name},version=1.0.0");
        (format!("duroxide_orchestration_starts_total{{{labels}}}"), 1)
    };
    assert_eq!(
        counters(&board.take(), "duroxide_orchestration_starts"),
        [
            started("Child", "client"), // Nobody waits for it.
            started("Main", "client"),
            started("Child", "continueAsNew"),
            started("Child", "suborchestration"),
        ]
        .into_iter()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect::<Vec<_>>()
    );
    world.finish().await;
}
