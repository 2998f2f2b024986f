//! Size limits: what breaks them, what just fits, and that breaking one is an ordinary failure.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::memory::MemoryProvider;
use duroxide::{AppErrorKind, ErrorDetails, OrchestrationContext};

use crate::support::look::{count, has, preload, queued, start};
use crate::support::{World, world, world_on};

const STATUS_MAX: usize = 262_144;
const VALUE_MAX: usize = 65_536;

fn long(length: usize) -> String {
    "x".repeat(length)
}

/// Runs `Main` once; the error text, or `ok`.
async fn outcome<F, Fut>(code: F) -> String
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    let world = world().orchestration("Main", code).start().await;
    world.begin("i", "Main", "").await;
    let outcome = match world.ended("i").await {
        duroxide::OrchestrationStatus::Failed { details, .. } => {
            let app = ErrorDetails::application(
                AppErrorKind::OrchestrationFailed,
                details.display_message(),
            );
            assert_eq!(details, app);
            details.display_message()
        }
        _ => "ok".to_owned(),
    };
    one_terminal_event(&world, "i").await;
    world.finish().await;
    outcome
}

/// R2.28, L5.
async fn one_terminal_event(world: &World, instance: &str) {
    let history = world.history(instance).await;
    assert_eq!(history.iter().filter(|event| event.is_terminal()).count(), 1, "{history:#?}");
}

#[tokio::test(start_paused = true)]
async fn r7_91_r4_75_custom_status() {
    let set = |sizes: &'static [Option<usize>]| {
        outcome(move |ctx, _input| async move {
            for size in sizes {
                match size {
                    Some(size) => ctx.set_custom_status(long(*size)),
                    None => ctx.reset_custom_status(),
                }
            }
            Ok(String::new())
        })
    };
    let text = "Custom status size (262145 bytes) exceeds limit (262144 bytes)";
    assert_eq!(set(&[Some(STATUS_MAX)]).await, "ok");
    assert_eq!(set(&[Some(STATUS_MAX + 1)]).await, text);
    assert_eq!(set(&[Some(STATUS_MAX + 1), Some(1)]).await, "ok"); // The last one counts,
    assert_eq!(set(&[Some(STATUS_MAX + 1), None]).await, text); // but a reset is not looked at.
}

#[tokio::test(start_paused = true)]
async fn r7_92_r4_15_activity_tag() {
    let tagged = |length| {
        outcome(move |ctx, _input| async move {
            let _activity = ctx.schedule_activity("A", "").with_tag(long(length));
            Ok(String::new())
        })
    };
    assert_eq!(tagged(256).await, "ok");
    assert_eq!(tagged(257).await, "Activity 'A' tag size (257 bytes) exceeds limit (256 bytes)");
}

#[tokio::test(start_paused = true)]
async fn r7_93_r4_88_value() {
    let set = |length| {
        outcome(move |ctx, _input| async move {
            ctx.set_kv_value("k", long(length));
            ctx.set_kv_value("k", "short");
            Ok(String::new())
        })
    };
    assert_eq!(set(VALUE_MAX).await, "ok");
    let text = "KV value for key 'k' (65537 bytes) exceeds limit (65536 bytes)";
    assert_eq!(set(VALUE_MAX + 1).await, text);
}

fn set_keys(ctx: &OrchestrationContext, keys: std::ops::Range<usize>) {
    keys.for_each(|key| ctx.set_kv_value(key.to_string(), ""));
}

#[tokio::test(start_paused = true)]
async fn r7_94_key_count_in_one_turn() {
    let set = |keys| {
        outcome(move |ctx, _input| async move {
            set_keys(&ctx, 0..keys);
            Ok(String::new())
        })
    };
    assert_eq!(set(150).await, "ok");
    assert_eq!(set(151).await, "KV key count (151) exceeds limit (150)");
}

#[tokio::test(start_paused = true)]
async fn l6_r7_94_keys_of_earlier_turns_and_executions_count() {
    let earlier = |more: usize, can: bool| {
        outcome(move |ctx, input| async move {
            if input.is_empty() {
                set_keys(&ctx, 0..149);
                if can {
                    return ctx.continue_as_new("second").await;
                }
            }
            ctx.schedule_timer(Duration::from_secs(1)).await;
            set_keys(&ctx, 149..149 + more);
            Ok(String::new())
        })
    };
    for can in [false, true] {
        assert_eq!(earlier(1, can).await, "ok");
        assert_eq!(earlier(2, can).await, "KV key count (151) exceeds limit (150)");
    }
}

#[tokio::test(start_paused = true)]
async fn r7_94_cleared_keys_do_not_count() {
    let outcome = outcome(|ctx, _input| async move {
        set_keys(&ctx, 0..150);
        ctx.clear_kv_value("7");
        set_keys(&ctx, 150..151);
        Ok(String::new())
    });
    assert_eq!(outcome.await, "ok");
}

#[tokio::test(start_paused = true)]
async fn the_first_violation_in_order_is_told() {
    let outcome = outcome(|ctx, _input| async move {
        set_keys(&ctx, 0..151);
        ctx.set_kv_value("k", long(VALUE_MAX + 1));
        drop(ctx.schedule_activity("A", "").with_tag(long(300)));
        ctx.set_custom_status(long(STATUS_MAX + 1));
        Ok(String::new())
    });
    assert!(outcome.await.starts_with("Custom status size"));
}

#[tokio::test(start_paused = true)]
async fn l4_r7_96_r1_34_a_limit_failure_is_told_to_the_parent_and_takes_children_along() {
    let world = world()
        .options(|options| options.worker_concurrency = 0)
        .orchestration("Waits", |ctx, _input| async move { Ok(ctx.schedule_wait("go").await) })
        .orchestration("Apart", |_ctx, _input| async { Ok("lives".into()) })
        .orchestration("Kid", |ctx, _input| async move {
            let _open = ctx.schedule_sub_orchestration_with_id("Waits", "grandkid", "");
            ctx.schedule_wait("go").await;
            ctx.set_custom_status(long(STATUS_MAX + 1));
            ctx.schedule_orchestration("Apart", "apart", "");
            drop(ctx.schedule_sub_orchestration_with_id("Waits", "unborn", ""));
            ctx.schedule_activity("A", "not sent").await
        })
        .orchestration("Main", |ctx, _input| async move {
            let kid = ctx.schedule_sub_orchestration_with_id("Kid", "kid", "");
            Ok(format!("kid: {}", kid.await.unwrap_err()))
        })
        .start()
        .await;
    world.begin("m", "Main", "").await;
    world.until_kind("grandkid", "ExternalSubscribed").await;
    world.client.raise_event("kid", "go", "").await.unwrap();
    assert!(world.output("m").await.starts_with("kid: Custom status size"));
    assert_eq!(world.error("grandkid").await, ErrorDetails::cancelled("parent failed"));
    assert_eq!(world.output("apart").await, "lives");
    one_terminal_event(&world, "kid").await;
    let history = world.history("kid").await; // R7.95: everything else stays recorded.
    assert!(has(&history, "ActivityScheduled") && has(&history, "CustomStatusUpdated"));
    let store = world.settled().await;
    assert!(store.worker_queue.is_empty());
    assert!(!store.instances.contains_key("unborn") && store.dead_letters.is_empty());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn l5_r7_95_a_successor_that_breaks_a_limit_is_not_started() {
    let outcome = outcome(|ctx, _input| async move {
        ctx.set_custom_status(long(STATUS_MAX + 1));
        ctx.continue_as_new("never").await
    });
    assert!(outcome.await.starts_with("Custom status size"));
}

#[tokio::test(start_paused = true)]
async fn l10_r7_97_r4_45_hundreds_of_waiting_messages_are_read_in_one_turn() {
    let memory = Arc::new(MemoryProvider::new());
    let messages = (0..500).map(|n| queued("i", "q", &n.to_string()));
    preload(&*memory, messages.chain([start("i", "Main", "")])).await;
    let world = world_on(memory)
        .orchestration("Main", |ctx, _input| async move {
            for n in 0..500 {
                assert_eq!(ctx.dequeue_event("q").await, n.to_string());
            }
            Ok("all".into())
        })
        .start()
        .await;
    assert_eq!(world.output("i").await, "all");
    let history = world.history("i").await;
    assert!(history.iter().all(|event| event.timestamp_ms == history[0].timestamp_ms));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_95_r7_97_system_calls_beyond_a_thousand_a_turn_go_to_a_worker() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            let mut guids = std::collections::HashSet::new();
            for _ in 0..1_002 {
                guids.insert(ctx.new_guid().await?);
            }
            Ok(guids.len().to_string())
        })
        .start()
        .await;
    assert_eq!(world.run("i", "Main", "").await, "1002");
    assert_eq!(count(&world.history("i").await, "ActivityCompleted"), 1_002);
    world.finish().await;
}
