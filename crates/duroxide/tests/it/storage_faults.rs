//! What a failing store costs: time, and nothing else, unless it refuses for good.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use duroxide::providers::ProviderError;
use duroxide::{ErrorDetails, EventKind, OrchestrationContext};
use tokio::time::{Instant, sleep};

use crate::support::faults::{Fault, Faults, FaultyProvider, broken, busy};
use crate::support::look::{child_start, messages_for};
use crate::support::{World, WorldBuilder, kinds, world, world_on};

/// Long enough for a hundred locks to run out.
const OUTAGE: Duration = Duration::from_secs(600);

fn lost_answer() -> Fault {
    Fault::After(ProviderError::retryable("fault", "answer lost"))
}

async fn waits(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    Ok(ctx.schedule_wait("go").await)
}

fn on_faulty(faults: &Faults) -> WorldBuilder {
    world().through(|store| FaultyProvider::wrap(store, faults)).orchestration("Waits", waits)
}

/// Makes trouble the first time it is called.
fn once(faults: &Faults, trouble: fn(&Faults)) -> impl Fn() + Send + Sync + Clone + 'static {
    let (begun, faults) = (Arc::new(AtomicBool::new(false)), faults.clone());
    move || {
        if !begun.swap(true, Ordering::Relaxed) {
            trouble(&faults);
        }
    }
}

/// No history begins with its end.
async fn assert_begins_with_a_start(world: &World) {
    for (id, instance) in world.memory.snapshot().instances {
        for (number, execution) in instance.executions {
            let first = &execution.history.first().map(|event| &event.kind);
            assert!(
                matches!(first, Some(EventKind::OrchestrationStarted { .. })),
                "{id} {number}: {first:?}"
            );
        }
    }
}

/// Trouble that begins within a turn, before its commit, and lasts for ten minutes.
async fn survives(trouble: fn(&Faults)) {
    for in_first_turn in [true, false] {
        let faults = Faults::default();
        let begin = once(&faults, trouble);
        let world = on_faulty(&faults)
            .echo("A")
            .orchestration("Main", move |ctx, input| {
                let begin = begin.clone();
                async move {
                    if in_first_turn {
                        begin();
                    }
                    let a = ctx.schedule_activity("A", input).await?;
                    begin();
                    ctx.schedule_timer(Duration::from_secs(1)).await;
                    Ok(a)
                }
            })
            .start()
            .await;
        world.begin("i", "Main", "x").await;
        sleep(OUTAGE).await;
        assert!(0 < faults.fired(), "there was trouble");
        faults.clear();
        assert_eq!(world.output("i").await, "A:x");
        assert_begins_with_a_start(&world).await;
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r1_37_r7_50_an_outage_of_everything_fails_nothing() {
    survives(|faults| faults.outage(true)).await;
}

#[tokio::test(start_paused = true)]
async fn r1_36_r7_50_commits_are_retried_for_as_long_as_the_lock_can_be_renewed() {
    survives(|faults| faults.always("ack_orchestration_item", busy())).await;
}

#[tokio::test(start_paused = true)]
async fn r1_38_a_turn_whose_lock_cannot_be_kept_is_given_back_uncounted() {
    survives(|faults| {
        faults.always("ack_orchestration_item", busy());
        faults.always("renew_orchestration_item_lock", busy());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn r1_38_an_outage_of_all_but_fetching_fails_nothing_either() {
    survives(|faults| {
        faults.always("ack_orchestration_item", busy());
        faults.always("renew_orchestration_item_lock", busy());
        faults.always("abandon_orchestration_item", busy());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn r1_38_renewals_that_never_answer_fail_nothing() {
    survives(|faults| {
        faults.always("ack_orchestration_item", busy());
        faults.always("renew_orchestration_item_lock", Fault::Hang);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn r7_63_a_renewal_that_never_answers_loses_the_lock_in_time() {
    let faults = Faults::default();
    faults.always("ack_orchestration_item", busy());
    faults.always("renew_orchestration_item_lock", Fault::Hang);
    let world = on_faulty(&faults).start().await;
    world.begin("i", "Waits", "").await;
    sleep(Duration::from_millis(5_500)).await;
    assert_eq!(faults.calls("abandon_orchestration_item"), 1);
    faults.clear();
    world.until_kind("i", "ExternalSubscribed").await;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_54_a_lock_lost_before_the_commit_is_nobodys_failure() {
    let logs = crate::support::logs::listen();
    let memory = Arc::new(duroxide::providers::memory::MemoryProvider::new());
    let (store, times) = (Arc::clone(&memory), Arc::new(AtomicUsize::new(0)));
    let world = world_on(memory)
        .orchestration("Main", move |_ctx, input| {
            // More often than an item may be tried.
            if times.fetch_add(1, Ordering::Relaxed) < 25 {
                store.expire_locks();
            }
            async move { Ok(input) }
        })
        .options(|options| options.max_attempts = 3)
        .start()
        .await;
    assert_eq!(world.run("i", "Main", "done").await, "done");
    let history = world.history("i").await;
    assert_eq!(kinds(&history), ["OrchestrationStarted", "OrchestrationCompleted"]);
    world.finish().await;
    assert_eq!(logs.saying("the lock was lost before the commit").len(), 25);
    let alarms = logs.records().into_iter().filter(|record| record.level <= tracing::Level::WARN);
    assert_eq!(alarms.collect::<Vec<_>>(), []);
}

#[tokio::test(start_paused = true)]
async fn r1_26_trouble_with_late_messages_does_not_touch_an_ended_instance() {
    let faults = Faults::default();
    let world = on_faulty(&faults).start().await;
    world.begin("i", "Waits", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.client.raise_event("i", "go", "fine").await.unwrap();
    let ended = world.ended("i").await;
    faults.always("ack_orchestration_item", broken());
    world.client.enqueue_event("i", "q", "late").await.unwrap();
    sleep(OUTAGE).await;
    faults.clear();
    sleep(Duration::from_secs(60)).await;
    world.settled().await;
    assert_eq!(world.ended("i").await, ended);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_52_a_commit_whose_answer_is_lost_stands_and_is_not_repeated() {
    for answers_before in 0..3 {
        let faults = Faults::default();
        let world = on_faulty(&faults)
            .orchestration("Main", |ctx, _input| async move {
                ctx.schedule_timer(Duration::from_secs(1)).await;
                let kid = ctx.schedule_sub_orchestration("Waits", "").await?;
                Ok(kid)
            })
            .start()
            .await;
        let answered = (0..answers_before).map(|_| Fault::Slow(Duration::ZERO));
        faults.next("ack_orchestration_item", answered.chain([lost_answer()]));
        world.begin("m", "Main", "").await;
        world.until_kind("m::sub::4", "ExternalSubscribed").await;
        world.client.raise_event("m::sub::4", "go", "done").await.unwrap();
        assert_eq!(world.output("m").await, "done");
        assert_eq!(
            kinds(&world.history("m").await),
            [
                "OrchestrationStarted",
                "TimerCreated",
                "TimerFired",
                "SubOrchestrationScheduled",
                "SubOrchestrationCompleted",
                "OrchestrationCompleted",
            ]
        );
        world.settled().await;
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r1_37_l12_a_first_turn_refused_for_good_fails_after_its_start() {
    let faults = Faults::default();
    let world = on_faulty(&faults)
        .orchestration("Main", |ctx, _input| async move {
            let kid = ctx.schedule_sub_orchestration_with_id("Waits", "kid", "in");
            Ok(kid.await.unwrap())
        })
        .start()
        .await;
    faults.next("ack_orchestration_item", [Fault::Slow(Duration::ZERO), broken()]);
    let error = world.run_to_error("m", "Main", "").await; // The parent is told, and fails with it.
    let infrastructure = ErrorDetails::Infrastructure {
        operation: "fault".into(),
        message: "broken".into(),
        retryable: false,
    };
    assert_eq!(error, infrastructure);
    assert_eq!(world.error("kid").await, infrastructure);
    let history = world.history("kid").await;
    assert_eq!(kinds(&history), ["OrchestrationStarted", "OrchestrationFailed"]);
    let EventKind::OrchestrationStarted { name, input, parent_instance, .. } = &history[0].kind
    else {
        panic!()
    };
    assert_eq!(
        (name.as_str(), input.as_str(), parent_instance.as_deref()),
        ("Waits", "in", Some("m"))
    );
    let info = world.client.get_instance_info("kid").await.unwrap();
    assert_eq!(info.output.as_deref(), Some("infrastructure:fault: broken"));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_12_r1_37_r7_51_a_later_turn_refused_for_good_fails_after_what_was_stored() {
    let faults = Faults::default();
    let world = on_faulty(&faults)
        .orchestration("Main", |ctx, input| async move {
            let _kid = ctx.schedule_sub_orchestration_with_id("Waits", "kid", "");
            waits(ctx.clone(), input).await?;
            ctx.schedule_activity("A", "lost with the turn").await
        })
        .start()
        .await;
    world.begin("m", "Main", "").await;
    world.until_kind("kid", "ExternalSubscribed").await;
    faults.next("ack_orchestration_item", [broken()]);
    world.client.raise_event("m", "go", "").await.unwrap();
    world.error("m").await;
    assert_eq!(
        kinds(&world.history("m").await),
        [
            "OrchestrationStarted",
            "SubOrchestrationScheduled",
            "ExternalSubscribed",
            "OrchestrationFailed"
        ]
    );
    assert_eq!(world.error("kid").await, ErrorDetails::cancelled("parent failed")); // R3.75
    assert!(world.settled().await.worker_queue.is_empty());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_53_l12_a_successors_first_turn_refused_for_good_fails_as_the_successor() {
    let faults = Faults::default();
    let begin = once(&faults, |faults| faults.next("ack_orchestration_item", [broken()]));
    let world = on_faulty(&faults)
        .orchestration("Kid", move |ctx, input| {
            let begin = begin.clone();
            async move {
                if input.is_empty() {
                    return ctx.continue_as_new("second").await;
                }
                begin();
                Ok(input)
            }
        })
        .orchestration("Main", |ctx, _input| async move {
            ctx.schedule_sub_orchestration_with_id("Kid", "kid", "").await
        })
        .start()
        .await;
    let error = world.run_to_error("m", "Main", "").await;
    assert!(matches!(error, ErrorDetails::Infrastructure { .. }));
    assert_eq!(
        kinds(&world.execution("kid", 1).await),
        ["OrchestrationStarted", "OrchestrationContinuedAsNew"]
    );
    assert_eq!(
        kinds(&world.execution("kid", 2).await),
        ["OrchestrationStarted", "OrchestrationFailed"]
    );
    let first = world.client.get_execution_info("kid", 1).await.unwrap();
    assert_eq!(first.status, "ContinuedAsNew");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_38_l11_when_the_substitute_is_refused_too_the_turn_is_given_back_at_once() {
    let faults = Faults::default();
    let world = on_faulty(&faults).start().await;
    faults.next("ack_orchestration_item", [broken(), broken()]);
    let began = Instant::now();
    world.begin("i", "Waits", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    assert_eq!(began.elapsed(), Duration::from_millis(50)); // Not when the lock runs out, after 5 s.
    assert_eq!(faults.calls("abandon_orchestration_item"), 1);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_38_a_store_that_refuses_for_good_is_asked_ever_more_rarely() {
    let faults = Faults::default();
    faults.always("ack_orchestration_item", broken());
    let world = on_faulty(&faults).start().await;
    world.begin("i", "Waits", "").await;
    sleep(OUTAGE).await;
    let abandons = faults.calls("abandon_orchestration_item");
    assert!((10..30).contains(&abandons), "{abandons}");
    faults.clear();
    // The attempts counted: the item is at fault, as far as anybody can tell.
    assert!(matches!(world.error_at_last("i").await, ErrorDetails::Poison { .. }));
    assert_begins_with_a_start(&world).await;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_38_without_a_readable_history_there_is_no_substitute() {
    let faults = Faults::default();
    let world = on_faulty(&faults).start().await;
    world.begin("i", "Waits", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    faults.next("ack_orchestration_item", [broken()]);
    faults.next("read_with_execution", [busy()]);
    world.client.raise_event("i", "go", "replayed").await.unwrap();
    assert_eq!(world.output("i").await, "replayed");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_38_if_giving_back_fails_the_lock_runs_out() {
    let faults = Faults::default();
    let world = on_faulty(&faults).start().await;
    faults.next("ack_orchestration_item", [broken(), broken()]);
    faults.next("abandon_orchestration_item", [broken()]);
    let began = Instant::now();
    world.begin("i", "Waits", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r3_116_a_substitute_failure_finds_the_parents_current_execution() {
    let faults = Faults::default();
    let world = on_faulty(&faults)
        .orchestration("Parent", |ctx, input| async move {
            match input.as_str() {
                "" => ctx.continue_as_new("2").await,
                _ => waits(ctx, input).await,
            }
        })
        .start()
        .await;
    world.begin("p", "Parent", "").await;
    world.until_kind("p", "ExternalSubscribed").await;
    // A child of an older node, which did not say of which execution.
    world.send([child_start("kid", "Waits", ("p", None, 2))]).await;
    world.until_kind("kid", "ExternalSubscribed").await;
    let memory = world.close().await;
    let faults = Faults::default();
    faults.next("ack_orchestration_item", [broken()]);
    // Without the parent's code its messages stay to be seen.
    let world = world_on(memory)
        .through(|store| FaultyProvider::wrap(store, &faults))
        .orchestration("Waits", waits)
        .start()
        .await;
    world.client.raise_event("kid", "go", "").await.unwrap();
    world.error("kid").await;
    let told = messages_for(&world.memory.snapshot(), "p");
    assert!(
        matches!(
            &told[..],
            [duroxide::providers::WorkItem::SubOrchFailed { parent_execution_id: 2, .. }]
        ),
        "{told:?}"
    );
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_38_no_later_message_overtakes_those_of_a_turn_given_back() {
    let faults = Faults::default();
    faults.fetch_bare();
    let world = on_faulty(&faults)
        .tuning(|tuning| tuning.warm.mode = duroxide::runtime::WarmMode::Off)
        .orchestration("Reader", |ctx, _input| async move {
            let first = ctx.dequeue_event("q").await;
            Ok(first + &ctx.dequeue_event("q").await)
        })
        .start()
        .await;
    world.begin("i", "Reader", "").await;
    world.until_kind("i", "QueueSubscribed").await;
    let reads = faults.calls("read_history_from");
    faults.next("read_history_from", [busy()]);
    world.client.enqueue_event("i", "q", "1").await.unwrap();
    while faults.calls("read_history_from") == reads {
        sleep(Duration::from_millis(1)).await;
    }
    world.client.enqueue_event("i", "q", "2").await.unwrap();
    assert_eq!(world.output("i").await, "12");
    world.finish().await;
}
