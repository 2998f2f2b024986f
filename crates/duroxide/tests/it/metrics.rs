//! What is counted, and how often: once (chapters 9.2, 9.3). On paused time, so durations are exact.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::memory::MemoryProvider;
use duroxide::runtime::observability::MetricsSnapshot;
use duroxide::{ErrorDetails, OrchestrationContext, TagFilter};
use tokio::time::sleep;

use crate::support::faults::{Faults, FaultyProvider, broken, busy};
use crate::support::numbers::{Board, Number, Numbers, counters};
use crate::support::{Door, World, WorldBuilder, kinds, world, world_on};

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn snapshot(world: &World) -> MetricsSnapshot {
    world.runtime.metrics_snapshot().unwrap()
}

fn active(world: &World) -> i64 {
    let handle = world.runtime.observability_handle().unwrap();
    handle.metrics_provider().get_active_orchestrations()
}

/// One counter's name with labels, and its value.
fn counted(name: &str, count: u64) -> (String, u64) {
    (name.to_owned(), count)
}

fn histogram(numbers: &Numbers, name: &str) -> Vec<f64> {
    match numbers.get(name) {
        Some(Number::Histogram(values)) => values.clone(),
        other => panic!("{name}: {other:?} in {:#?}", numbers.keys()),
    }
}

async fn call_a(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.schedule_activity("A", input).await
}

#[tokio::test(start_paused = true)]
async fn r9_20_r9_23_a_start_an_end_and_real_turns() {
    let board = Board::default();
    let _counting = board.count();
    let world = world()
        .patient()
        .echo("A")
        .orchestration_version("Main", "1.4.0", |ctx, input| async move {
            for _ in 0..3 {
                ctx.schedule_activity("A", "").await?;
            }
            ctx.schedule_timer(seconds(90)).await;
            Ok(input)
        })
        .start()
        .await;
    world.run("m", "Main", "").await;
    let expected = MetricsSnapshot {
        orch_starts: 1,
        orch_completions: 1,
        activity_success: 3,              // R9.21
        orch_dispatcher_items_fetched: 5, // R9.24
        worker_dispatcher_items_fetched: 3,
        ..MetricsSnapshot::default()
    };
    assert_eq!(snapshot(&world), expected); // R9.11, R7.131
    let numbers = board.take();
    let start = "duroxide_orchestration_starts_total{initiated_by=client,orchestration_name=Main,\
                 version=1.4.0}";
    assert_eq!(counters(&numbers, "duroxide_orchestration_starts"), [counted(start, 1)]);
    let end = "duroxide_orchestration_completions_total{final_turn_count=1-5,\
               orchestration_name=Main,status=success,version=1.4.0}";
    assert_eq!(counters(&numbers, "duroxide_orchestration_completions"), [counted(end, 1)]);
    assert_eq!(counters(&numbers, "duroxide_orchestration_failures"), []);
    let activities = "duroxide_activity_executions_total{activity_name=A,outcome=success,\
                      retry_attempt=0,tag=default}";
    assert_eq!(counters(&numbers, "duroxide_activity"), [counted(activities, 3)]);

    let named = "{orchestration_name=Main}";
    assert_eq!(histogram(&numbers, &format!("duroxide_orchestration_turns{named}")), [5.0]);
    let events = world.history("m").await.len() as f64;
    let sizes = histogram(&numbers, &format!("duroxide_orchestration_history_size{named}"));
    assert_eq!(sizes, [events]);
    let duration = "duroxide_orchestration_duration_seconds{orchestration_name=Main,\
                    status=success,version=1.4.0}";
    assert_eq!(histogram(&numbers, duration), [90.0]);
    let turns = histogram(&numbers, "duroxide_orchestration_dispatcher_processing_duration_ms");
    let works = histogram(&numbers, "duroxide_worker_dispatcher_execution_duration_ms");
    assert_eq!((turns.len(), works.len()), (5, 3));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r9_23_turns_and_age_are_right_after_a_restart() {
    let main = |ctx: OrchestrationContext, _: String| async move {
        for _ in 0..8 {
            ctx.schedule_timer(seconds(10)).await;
        }
        Ok(String::new())
    };
    let first = world().patient().orchestration("Main", main).start().await;
    first.begin("m", "Main", "").await;
    first.until("m", |history| kinds(history).len() == 10).await; // Start and five timers, or so.
    let memory = Arc::clone(&first.memory);
    first.finish().await;
    let board = Board::default();
    let _counting = board.count();
    let second = world_on(memory).patient().orchestration("Main", main).start().await;
    second.output("m").await;
    let numbers = board.take();
    assert_eq!(snapshot(&second).orch_starts, 0);
    let named = "{orchestration_name=Main}";
    assert_eq!(histogram(&numbers, &format!("duroxide_orchestration_turns{named}")), [9.0]);
    let end = "duroxide_orchestration_completions_total{final_turn_count=6-10,\
               orchestration_name=Main,status=success,version=1.0.0}";
    assert_eq!(counters(&numbers, "duroxide_orchestration_completions"), [counted(end, 1)]);
    let duration = "duroxide_orchestration_duration_seconds{orchestration_name=Main,\
                    status=success,version=1.0.0}";
    // The timer that the first has left may be late by its grace (R1.67).
    let took = histogram(&numbers, duration);
    assert!(took.len() == 1 && (80.0..80.06).contains(&took[0]), "{took:?}");
    second.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r9_26_continue_as_new_counts_an_end_and_a_start_without_numbers() {
    let board = Board::default();
    let _counting = board.count();
    let world = world()
        .orchestration("Main", |ctx, input| async move {
            let n: u32 = input.parse().unwrap();
            if n == 3 { Ok(input) } else { ctx.continue_as_new((n + 1).to_string()).await }
        })
        .start()
        .await;
    world.run("m", "Main", "1").await;
    let counts = snapshot(&world);
    assert_eq!((counts.orch_starts, counts.orch_completions), (3, 3));
    assert_eq!((counts.orch_continue_as_new, active(&world)), (2, 0));
    let labels = "orchestration_name=Main,version=1.0.0";
    let expected = [
        counted(
            "duroxide_orchestration_completions_total{final_turn_count=1-5,\
             orchestration_name=Main,status=continuedAsNew,version=1.0.0}",
            2,
        ),
        counted(
            "duroxide_orchestration_completions_total{final_turn_count=1-5,\
             orchestration_name=Main,status=success,version=1.0.0}",
            1,
        ),
        counted("duroxide_orchestration_continue_as_new_total{orchestration_name=Main}", 2),
        counted("duroxide_orchestration_dispatcher_items_fetched", 2), // R1.39: one ran at once.
        counted(&format!("duroxide_orchestration_starts_total{{initiated_by=client,{labels}}}"), 1),
        counted(
            &format!("duroxide_orchestration_starts_total{{initiated_by=continueAsNew,{labels}}}"),
            2,
        ),
    ];
    assert_eq!(counters(&board.take(), "duroxide_orchestration"), expected);
    world.finish().await;
}

/// Fails in the way its input says.
async fn fail(ctx: OrchestrationContext, way: String) -> Result<String, String> {
    match way.as_str() {
        "error" => Err("no".to_owned()),
        "panic" => panic!("no"),
        "cancel" => Ok(ctx.schedule_wait("Never").await),
        "limit" => {
            ctx.set_kv_value("k", "v".repeat(70_000));
            Ok(String::new())
        }
        _ => Ok(String::new()),
    }
}

#[tokio::test(start_paused = true)]
async fn r9_13_r9_22_a_failure_counts_once_and_once_in_its_class() {
    let (board, faults) = (Board::default(), Faults::default());
    let _counting = board.count();
    let world = world()
        .patient()
        .orchestration("Main", fail)
        .options(|options| options.max_attempts = 1)
        .through(|store| FaultyProvider::wrap(store, &faults))
        .start()
        .await;
    for way in ["error", "panic", "limit"] {
        world.run_to_error(way, "Main", way).await;
    }
    world.begin("cancel", "Main", "cancel").await;
    world.client.cancel_instance("cancel", "no").await.unwrap();
    world.error("cancel").await;
    faults.next("ack_orchestration_item", [broken()]); // The store refuses the turn.
    let error = world.run_to_error("refused", "Main", "").await;
    assert!(matches!(error, ErrorDetails::Infrastructure { .. }), "{error:?}");
    let error = world.run_to_error("poison", "Nobody", "").await;
    assert!(matches!(error, ErrorDetails::Poison { .. }), "{error:?}");

    let counts = snapshot(&world);
    assert_eq!((counts.orch_starts, counts.orch_completions, counts.orch_failures), (6, 6, 6));
    assert_eq!((counts.orch_application_errors, counts.orch_infrastructure_errors), (4, 1));
    assert_eq!((counts.orch_configuration_errors, counts.orch_poison), (0, 1));
    assert_eq!((counts.provider_errors, active(&world)), (1, 0));
    let numbers = board.take();
    let of = |name: &str, category: &str, error_type: &str, count| {
        counted(
            &format!(
                "duroxide_orchestration_failures_total{{error_category={category},\
                 error_type={error_type},orchestration_name={name},version=1.0.0}}"
            ),
            count,
        )
    };
    let mut unversioned = of("Nobody", "poison", "poison", 1); // R9.10
    unversioned.0 = unversioned.0.replace("1.0.0", "unknown");
    assert_eq!(
        counters(&numbers, "duroxide_orchestration_failures"),
        [
            of("Main", "application", "app_error", 4),
            of("Main", "infrastructure", "infrastructure_error", 1),
            unversioned,
        ]
    );
    let infrastructure = "duroxide_orchestration_infrastructure_errors_total{\
                          error_category=infrastructure,orchestration_name=Main}";
    let found = counters(&numbers, "duroxide_orchestration_infrastructure");
    assert_eq!(found, [counted(infrastructure, 1)]);
    assert_eq!(
        counters(&numbers, "duroxide_orchestration_poison"),
        [counted("duroxide_orchestration_poison_total{cause=unregistered}", 1)]
    );
    let errors = "duroxide_provider_errors_total{error_type=other,\
                  operation=ack_orchestration_item}";
    assert_eq!(counters(&numbers, "duroxide_provider_errors"), [counted(errors, 1)]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r9_22_nondeterminism_is_an_error_of_the_deployment() {
    let before = world()
        .orchestration("Main", |ctx, _| async move { Ok(ctx.schedule_wait("Go").await) })
        .start()
        .await;
    before.begin("m", "Main", "").await;
    before.until("m", |history| history.len() == 2).await;
    let memory = Arc::clone(&before.memory);
    before.finish().await;
    let after = world_on(memory).orchestration("Main", call_a).start().await;
    after.client.raise_event("m", "Go", "").await.unwrap();
    after.error("m").await;
    let counts = snapshot(&after);
    assert_eq!((counts.orch_failures, counts.orch_configuration_errors), (1, 1));
    after.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r9_23_an_instance_given_up_late_keeps_its_age_and_turns() {
    let first = world()
        .orchestration("Main", |ctx, _| async move {
            ctx.schedule_timer(seconds(10)).await;
            Ok(ctx.schedule_wait("Go").await)
        })
        .start()
        .await;
    first.begin("m", "Main", "").await;
    first.until("m", |history| history.len() == 4).await;
    let memory = Arc::clone(&first.memory);
    first.finish().await;

    let board = Board::default();
    let _counting = board.count();
    let second = world_on(memory).patient(); // Which has no "Main".
    let second = second.options(|options| options.max_attempts = 1).start().await;
    sleep(seconds(5)).await;
    assert_eq!(active(&second), 1);
    second.client.raise_event("m", "Go", "").await.unwrap();
    second.error("m").await;
    let counts = snapshot(&second);
    assert_eq!((counts.orch_starts, counts.orch_completions, counts.orch_poison), (0, 1, 1));
    assert_eq!(active(&second), 0);
    let numbers = board.take();
    let named = "{orchestration_name=Main}";
    assert_eq!(histogram(&numbers, &format!("duroxide_orchestration_turns{named}")), [3.0]);
    let duration = "duroxide_orchestration_duration_seconds{orchestration_name=Main,\
                    status=failed,version=1.0.0}";
    assert_eq!(histogram(&numbers, duration), [10.0 + 5.0 + 1.0]);
    second.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r9_24_children_count_when_they_end_under_both_names() {
    let board = Board::default();
    let _counting = board.count();
    let world = world()
        .patient()
        .orchestration("Child", |ctx, input| async move {
            ctx.schedule_timer(seconds(20)).await;
            if input == "bad" { Err("no".to_owned()) } else { Ok(input) }
        })
        .orchestration("Main", |ctx, _| async move {
            let good = ctx.schedule_sub_orchestration("Child", "good");
            let bad = ctx.schedule_sub_orchestration("Child", "bad");
            let (good, bad) = ctx.join2(good, bad).await;
            Ok(format!("{good:?} {bad:?}"))
        })
        .start()
        .await;
    world.run("m", "Main", "").await;
    let counts = snapshot(&world);
    assert_eq!((counts.suborchestration_calls, counts.orch_starts), (2, 3));
    assert_eq!((counts.orch_completions, active(&world)), (3, 0));
    let numbers = board.take();
    let of = |metric: &str, outcome: &str| {
        format!(
            "duroxide_suborchestration_{metric}{{child_orchestration=Child,outcome={outcome},\
             parent_orchestration=Main}}"
        )
    };
    let calls =
        [counted(&of("calls_total", "failed"), 1), counted(&of("calls_total", "success"), 1)];
    assert_eq!(counters(&numbers, "duroxide_suborchestration_calls"), calls);
    assert_eq!(histogram(&numbers, &of("duration_seconds", "success")), [20.0]);
    assert_eq!(histogram(&numbers, &of("duration_seconds", "failed")), [20.0]);
    world.finish().await;
}

/// The outcomes of activities: `name outcome retry tag` with their counts.
fn outcomes(numbers: &Numbers) -> Vec<(String, u64)> {
    let shorten = |(name, count): (String, u64)| {
        let labels = name.split_once('{').map_or("", |(_, labels)| labels.trim_end_matches('}'));
        let values = labels.split(',').filter_map(|label| label.split_once('='));
        (values.map(|(_, value)| value).collect::<Vec<_>>().join(" "), count)
    };
    counters(numbers, "duroxide_activity_executions").into_iter().map(shorten).collect()
}

#[tokio::test(start_paused = true)]
async fn r9_21_results_errors_and_panics_of_activities_count_once() {
    let board = Board::default();
    let _counting = board.count();
    let world = world()
        .activity("A", |_ctx, input| async move {
            match input.as_str() {
                "error" => Err("no".to_owned()),
                "panic" => panic!("no"),
                _ => Ok(input),
            }
        })
        .orchestration("Main", |ctx, input| async move {
            ctx.schedule_activity("A", input).with_tag("gpu").await
        })
        .options(|options| options.worker_tag_filter = TagFilter::any())
        .start()
        .await;
    for input in ["ok", "error", "panic"] {
        world.begin(input, "Main", input).await;
        world.ended(input).await;
    }
    let counts = snapshot(&world);
    assert_eq!((counts.activity_success, counts.activity_app_errors), (1, 2));
    let numbers = board.take();
    let expected = [counted("A app_error 0 gpu", 2), counted("A success 0 gpu", 1)];
    assert_eq!(outcomes(&numbers), expected);
    let app_errors =
        "duroxide_activity_duration_seconds{activity_name=A,outcome=app_error,tag=gpu}";
    assert_eq!(histogram(&numbers, app_errors).len(), 2);
    world.finish().await;
}

/// A world whose activity waits at a door, on a store that can fail.
fn doored(door: &Door, faults: &Faults) -> WorldBuilder {
    world()
        .patient()
        .behind("A", door)
        .orchestration("Main", call_a)
        .through(|store| FaultyProvider::wrap(store, faults))
}

#[tokio::test(start_paused = true)]
async fn r9_27_a_cancelled_activity_counts_as_cancelled_and_as_nothing_else() {
    let (board, faults, door) = (Board::default(), Faults::default(), Door::default());
    let _counting = board.count();
    let world = doored(&door, &faults).start().await;
    // One is told at its next renewal, the other ends before that and finds its row gone.
    for (instance, opens_after) in [("unaware", 1), ("told", 60)] {
        world.begin(instance, "Main", "").await;
        door.knock().await;
        world.client.cancel_instance(instance, "no").await.unwrap();
        world.error(instance).await;
        sleep(seconds(opens_after)).await; // Before the renewal, or after it and the grace period.
        door.open();
        sleep(seconds(1)).await;
        assert_eq!(outcomes(&board.take()), [counted("A cancelled 0 default", 1)], "{instance}");
    }
    let counts = snapshot(&world);
    assert_eq!((counts.activity_success, counts.activity_infra_errors), (0, 0));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r9_23_retries_are_told_apart_and_results_that_are_not_stored_are_counted() {
    let (board, faults, door) = (Board::default(), Faults::default(), Door::default());
    let _counting = board.count();
    let world = doored(&door, &faults).start().await;
    faults.next("ack_work_item", [broken(), broken(), broken(), broken()]);
    (0..5).for_each(|_| door.open());
    assert_eq!(world.run("m", "Main", "x").await, "A:x");
    let counts = snapshot(&world);
    assert_eq!((counts.activity_success, counts.activity_infra_errors), (1, 4));
    let numbers = board.take();
    let expected = [
        counted("A infra_error 0 default", 1),
        counted("A infra_error 1 default", 1),
        counted("A infra_error 2 default", 1),
        counted("A infra_error 3+ default", 1),
        counted("A success 3+ default", 1),
    ];
    assert_eq!(outcomes(&numbers), expected);
    let errors = "duroxide_activity_infrastructure_errors_total{activity_name=A}";
    assert_eq!(counters(&numbers, "duroxide_activity_infra"), [counted(errors, 4)]);
    // A passing error costs nothing but time.
    faults.next("ack_work_item", [busy(), busy()]);
    door.open();
    world.run("n", "Main", "x").await;
    assert_eq!(outcomes(&board.take()), [counted("A success 0 default", 1)]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r9_21_an_activity_nobody_registers_counts_its_attempts_and_its_end() {
    let board = Board::default();
    let _counting = board.count();
    let world = world().patient().orchestration("Main", call_a);
    let world = world.options(|options| options.max_attempts = 2).start().await;
    world.run_to_error("m", "Main", "").await;
    let counts = snapshot(&world);
    assert_eq!((counts.activity_config_errors, counts.activity_poison), (2, 1));
    assert_eq!((counts.activity_infra_errors, counts.worker_dispatcher_items_fetched), (0, 3));
    let numbers = board.take();
    let expected = [counted("A config_error 0 default", 1), counted("A config_error 1 default", 1)];
    assert_eq!(outcomes(&numbers), expected);
    assert_eq!(
        counters(&numbers, "duroxide_activity_poison"),
        [counted("duroxide_activity_poison_total{cause=unregistered}", 1)]
    );
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r9_25_the_active_gauge_rises_and_falls_and_is_put_right() {
    let waits =
        |ctx: OrchestrationContext, _: String| async move { Ok(ctx.schedule_wait("Go").await) };
    let memory = Arc::new(MemoryProvider::new());
    let first = world_on(Arc::clone(&memory)).patient().orchestration("Main", waits).start().await;
    for (index, instance) in ["a", "b", "c"].into_iter().enumerate() {
        first.begin(instance, "Main", "").await;
        first.until(instance, |history| history.len() == 2).await;
        assert_eq!(active(&first), index as i64 + 1);
    }
    first.client.raise_event("a", "Go", "").await.unwrap();
    first.output("a").await;
    assert_eq!(active(&first), 2);
    // Another runtime learns at its start (R7.6), and both learn of each other's work in time.
    let second = world_on(memory).orchestration("Main", waits);
    let second = second.options(|options| options.orchestration_concurrency = 0).start().await;
    sleep(seconds(1)).await;
    assert_eq!(active(&second), 2);
    first.client.raise_event("b", "Go", "").await.unwrap();
    first.output("b").await;
    assert_eq!((active(&first), active(&second)), (1, 2));
    sleep(seconds(61)).await;
    assert_eq!((active(&first), active(&second)), (1, 1));
    second.finish().await;
    first.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_6_queue_depths_are_looked_at_now_and_then() {
    let board = Board::default();
    let _counting = board.count();
    let world = world()
        .patient()
        .orchestration("Main", |ctx, _| async move {
            let calls = (0..3).map(|_| ctx.schedule_activity("A", "")).collect();
            Ok(ctx.join(calls).await.len().to_string())
        })
        .options(|options| {
            options.worker_concurrency = 0;
            options.observability.gauge_poll_interval = seconds(5);
        })
        .start()
        .await;
    world.begin("m", "Main", "").await;
    sleep(seconds(6)).await;
    let numbers = board.take();
    assert_eq!(numbers["duroxide_worker_queue_depth"], Number::Gauge(3.0));
    assert_eq!(numbers["duroxide_orchestrator_queue_depth"], Number::Gauge(0.0));
    assert_eq!(numbers["duroxide_active_orchestrations"], Number::Gauge(1.0));
    let metrics = world.runtime.observability_handle().unwrap().metrics_provider();
    assert_eq!(metrics.get_queue_depths(), (0, 3));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r9_20_messages_for_instances_that_have_ended_count_for_nothing() {
    let world = world().orchestration("Main", |_ctx, input| async move { Ok(input) }).start().await;
    world.run("m", "Main", "").await;
    let before = snapshot(&world);
    world.client.raise_event("m", "Late", "").await.unwrap();
    world.begin("m", "Main", "again").await;
    sleep(seconds(1)).await;
    let after = snapshot(&world);
    assert!(after.orch_dispatcher_items_fetched > before.orch_dispatcher_items_fetched);
    let fetched = after.orch_dispatcher_items_fetched;
    assert_eq!(after, MetricsSnapshot { orch_dispatcher_items_fetched: fetched, ..before });
    assert_eq!(active(&world), 0);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r9_20_a_turn_that_is_repeated_counts_once() {
    let faults = Faults::default();
    let world = world()
        .patient()
        .orchestration("Main", |_ctx, input| async move { Ok(input) })
        .through(|store| FaultyProvider::wrap(store, &faults))
        .start()
        .await;
    faults.always("ack_orchestration_item", busy());
    faults.always("renew_orchestration_item_lock", broken());
    world.begin("m", "Main", "x").await;
    sleep(seconds(20)).await; // Several turns, none of them committed.
    let counts = snapshot(&world);
    assert!(counts.orch_dispatcher_items_fetched > 1);
    assert_eq!((counts.orch_starts, counts.orch_completions), (0, 0));
    faults.clear();
    assert_eq!(world.output("m").await, "x");
    let counts = snapshot(&world);
    assert_eq!((counts.orch_starts, counts.orch_completions), (1, 1));
    assert_eq!((counts.orch_failures, active(&world)), (0, 0));
    world.finish().await;
}
