//! Odd messages: repeated, contradicting, out of place. They disturb nobody.

use std::time::Duration;

use duroxide::providers::WorkItem;
use duroxide::runtime::WarmMode;
use duroxide::{AppErrorKind, Either2, ErrorDetails, OrchestrationContext};

use crate::support::look::{cancellations, count, has};
use crate::support::{WorldBuilder, kinds, world};

/// An activity that is done by hand: completions are sent, nothing is executed.
fn by_hand() -> WorldBuilder {
    async fn works(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
        let result = ctx.schedule_activity("A", "").await;
        ctx.schedule_wait("end").await;
        Ok(format!("{result:?}"))
    }
    world().options(|options| options.worker_concurrency = 0).orchestration("Works", works)
}

fn completed(result: &str) -> WorkItem {
    let (instance, result) = ("i".to_owned(), result.to_owned());
    WorkItem::ActivityCompleted { instance, execution_id: 1, id: 2, result }
}

fn failed(message: &str) -> WorkItem {
    let details = ErrorDetails::application(AppErrorKind::ActivityFailed, message);
    WorkItem::ActivityFailed { instance: "i".into(), execution_id: 1, id: 2, details }
}

#[tokio::test(start_paused = true)]
async fn l8_r3_21_r3_23_the_first_result_stands_whatever_follows() {
    for (first, again, expected) in [
        (completed("x"), [completed("y"), failed("no")], "Ok(\"x\")"),
        (failed("no"), [failed("again"), completed("y")], "Err(\"no\")"),
    ] {
        for in_one_batch in [true, false] {
            let world = by_hand().start().await;
            world.begin("i", "Works", "").await;
            world.until_kind("i", "ActivityScheduled").await;
            world.send([first.clone()]).await;
            if !in_one_batch {
                world.until_kind("i", "ExternalSubscribed").await;
            }
            world.send(again.clone()).await;
            world.until_kind("i", "ExternalSubscribed").await;
            world.settled().await;
            world.client.raise_event("i", "end", "").await.unwrap();
            assert_eq!(world.output("i").await, expected);
            let history = world.history("i").await;
            let results = count(&history, "ActivityCompleted") + count(&history, "ActivityFailed");
            assert_eq!(results, 1);
            world.finish().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn r3_20_results_for_other_executions_are_dropped() {
    let world = by_hand().start().await;
    world.begin("i", "Works", "").await;
    let before = world.until_kind("i", "ActivityScheduled").await;
    let WorkItem::ActivityCompleted { instance, id, result, .. } = completed("x") else { panic!() };
    world.send([WorkItem::ActivityCompleted { instance, execution_id: 2, id, result }]).await;
    world.settled().await;
    assert_eq!(world.history("i").await, before);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r3_25_a_result_nobody_asked_for_is_nondeterminism() {
    let world = by_hand().start().await;
    world.begin("i", "Works", "").await;
    world.until_kind("i", "ActivityScheduled").await;
    let details = ErrorDetails::application(AppErrorKind::OrchestrationFailed, "");
    let stray = WorkItem::SubOrchFailed {
        parent_instance: "i".into(),
        parent_execution_id: 1,
        parent_id: 7,
        details,
    };
    world.send([stray]).await;
    let error = world.error("i").await.display_message();
    assert_eq!(error, "nondeterministic: no matching schedule for sub-orchestration id=7");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r3_28_a_system_error_of_an_activity_ends_the_orchestration() {
    let world = by_hand().start().await;
    world.begin("i", "Works", "").await;
    world.until_kind("i", "ActivityScheduled").await;
    let details = ErrorDetails::Infrastructure {
        operation: "disk".into(),
        message: "full".into(),
        retryable: true,
    };
    let item = WorkItem::ActivityFailed {
        instance: "i".into(),
        execution_id: 1,
        id: 2,
        details: details.clone(),
    };
    world.send([item]).await;
    assert_eq!(world.error("i").await, details);
    assert_eq!(kinds(&world.history("i").await)[2..], ["ActivityFailed", "OrchestrationFailed"]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r3_97_an_activity_scheduled_and_dropped_in_one_turn_leaves_no_row() {
    let world = world()
        .options(|options| options.worker_concurrency = 0)
        .orchestration("Main", |ctx, _input| async move {
            drop(ctx.schedule_activity("A", ""));
            Ok(ctx.schedule_wait("end").await)
        })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    let history = world.until_kind("i", "ExternalSubscribed").await;
    assert_eq!(
        cancellations(&history, "ActivityCancelRequested"),
        [(2, "dropped_future".to_owned())]
    );
    assert!(world.memory.snapshot().worker_queue.is_empty());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r3_104d_a_turn_that_continues_records_no_drops() {
    let world = world()
        .options(|options| options.worker_concurrency = 0)
        .orchestration("Main", |ctx, input| async move {
            if !input.is_empty() {
                return Ok(input);
            }
            let slow = ctx.schedule_activity("A", "");
            let alarm = ctx.schedule_timer(Duration::from_secs(1));
            match ctx.select2(slow, alarm).await {
                Either2::First(_) => Err("nobody works here".into()),
                Either2::Second(()) => ctx.continue_as_new("second").await,
            }
        })
        .start()
        .await;
    assert_eq!(world.run("i", "Main", "").await, "second");
    let reason = "orchestration_terminal_continued_as_new".to_owned();
    let first = world.execution("i", 1).await;
    assert_eq!(cancellations(&first, "ActivityCancelRequested"), [(2, reason)]);
    assert!(world.memory.snapshot().worker_queue.is_empty());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r2_105_ids_and_names_are_any_text() {
    for text in ["", " ", "a/b?c=d&e", "instance::x", "Grüße 🙂", "'; DROP TABLE instances; --"]
    {
        let world = world()
            .echo("A")
            .orchestration(text, move |ctx, input| async move {
                ctx.set_kv_value(text, text);
                let kid = ctx.schedule_wait(text);
                let letter = ctx.dequeue_event(text).await;
                Ok(format!("{input}{letter}{}", kid.await))
            })
            .start()
            .await;
        world.begin(text, text, text).await;
        world.until_kind(text, "QueueSubscribed").await;
        world.client.enqueue_event(text, text, text).await.unwrap();
        world.client.raise_event(text, text, text).await.unwrap();
        assert_eq!(world.output(text).await, text.repeat(3));
        assert_eq!(world.client.get_kv_value(text, text).await.unwrap().as_deref(), Some(text));
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r4_96_r7_3_system_calls_need_no_worker_but_reading_others_does() {
    let world = world()
        .options(|options| options.worker_concurrency = 0)
        .orchestration("Main", |ctx, _input| async move {
            ctx.new_guid().await?;
            ctx.utc_now().await?;
            ctx.get_kv_value_from_instance("other", "k").await?;
            Ok(String::new())
        })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    let history = world.until("i", |history| count(history, "ActivityScheduled") == 3).await;
    assert_eq!(count(&history, "ActivityCompleted"), 2);
    assert_eq!(world.memory.snapshot().worker_queue.len(), 1);
    assert!(!has(&history, "ActivityFailed"));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_4_r1_15_the_code_runs_from_its_start_in_every_turn_and_sees_only_history() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let entered = Arc::new(AtomicUsize::new(0));
    let counter = entered.clone();
    let world = world()
        .echo("A")
        .orchestration("Main", move |ctx, _input| {
            counter.fetch_add(1, Ordering::Relaxed);
            async move {
                let guid = ctx.new_guid().await?;
                let time = ctx.utc_now().await?;
                for _ in 0..3 {
                    ctx.schedule_activity("A", "").await?;
                }
                assert_eq!(guid, ctx.schedule_activity("A", &guid).await?[2..]);
                Ok(format!("{}", time.elapsed().is_ok()))
            }
        })
        .tuning(|tuning| tuning.warm.mode = WarmMode::Off)
        .start()
        .await;
    world.run("i", "Main", "").await;
    assert_eq!(entered.load(Ordering::Relaxed), 5); // R3.4: once per turn.
    world.finish().await;
}
