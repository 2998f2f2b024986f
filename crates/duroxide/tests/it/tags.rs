//! Which workers take which activities (chapter 7.7, R4.13 – R4.15).

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::WorkItem;
use duroxide::providers::memory::MemoryProvider;
use duroxide::{Either2, EventKind, OrchestrationContext, TagFilter};

use crate::support::{World, kinds, world, world_on};

/// A node that answers activities "A" with its own name, and runs no turns.
async fn worker(memory: &Arc<MemoryProvider>, name: &'static str, filter: TagFilter) -> World {
    world_on(Arc::clone(memory))
        .activity(
            "A",
            move |ctx, _| async move { Ok(format!("{name}({})", ctx.tag().unwrap_or("-"))) },
        )
        .options(|options| {
            options.orchestration_concurrency = 0;
            options.worker_tag_filter = filter;
        })
        .start()
        .await
}

/// Calls "A" with each tag of the comma-separated input, `-` for none.
async fn call_tagged(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let calls = input.split(',').map(|tag| {
        let call = ctx.schedule_activity("A", "");
        if tag == "-" { call } else { call.with_tag(tag) }
    });
    let answers = ctx.join(calls.collect()).await;
    Ok(answers.into_iter().collect::<Result<Vec<String>, String>>()?.join(" "))
}

/// A node that runs turns and takes no activities.
async fn turns(memory: &Arc<MemoryProvider>) -> World {
    world_on(Arc::clone(memory))
        .orchestration("Main", call_tagged)
        .options(|options| options.worker_tag_filter = TagFilter::none())
        .start()
        .await
}

#[tokio::test]
async fn r7_65_each_activity_goes_to_a_worker_that_takes_its_tag() {
    let memory = Arc::new(MemoryProvider::new());
    let plain = worker(&memory, "plain", TagFilter::default_only()).await;
    let gpu = worker(&memory, "gpu", TagFilter::tags(["gpu", "tpu"])).await;
    let turns = turns(&memory).await;
    let answer = turns.run("m", "Main", "-,gpu,tpu,-").await;
    assert_eq!(answer, "plain(-) gpu(gpu) gpu(tpu) plain(-)");
    for world in [turns, plain, gpu] {
        world.finish().await;
    }
}

#[tokio::test]
async fn r7_65_one_filter_may_take_all_kinds() {
    for filter in [TagFilter::default_and(["gpu"]), TagFilter::any()] {
        let memory = Arc::new(MemoryProvider::new());
        let (all, turns) = (worker(&memory, "all", filter).await, turns(&memory).await);
        assert_eq!(turns.run("m", "Main", "gpu,-").await, "all(gpu) all(-)");
        turns.finish().await;
        all.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r7_66_what_nobody_takes_waits_uncounted_until_the_code_gives_up() {
    for filter in [TagFilter::none(), TagFilter::default_only(), TagFilter::tags(["other"])] {
        let world = world()
            .patient()
            .echo("A")
            .orchestration("Main", |ctx, _| async move {
                let call = ctx.schedule_activity("A", "").with_tag("gpu");
                match ctx.select2(call, ctx.schedule_timer(Duration::from_secs(3600))).await {
                    Either2::First(result) => result,
                    Either2::Second(()) => Ok("gave up".to_owned()),
                }
            })
            .options(|options| options.worker_tag_filter = filter)
            .start()
            .await;
        world.begin("m", "Main", "").await;
        tokio::time::sleep(Duration::from_secs(3000)).await;
        let queue = world.memory.snapshot().worker_queue;
        assert_eq!((queue.len(), queue[0].attempts), (1, 0));
        assert_eq!(world.output("m").await, "gave up");
        assert!(world.memory.snapshot().worker_queue.is_empty());
        world.finish().await;
    }
}

#[tokio::test]
async fn r4_13_r4_14_r2_30_the_tag_is_in_event_and_message_beside_the_session() {
    let world = world()
        .orchestration("Main", |ctx, _| async move {
            ctx.schedule_activity_on_session("A", "", "s").with_tag("gpu").await
        })
        .start()
        .await;
    world.begin("m", "Main", "").await;
    let history = world.until("m", |history| history.len() == 2).await;
    let EventKind::ActivityScheduled { session_id, tag, .. } = &history[1].kind else {
        panic!("{history:?}")
    };
    assert_eq!((session_id.as_deref(), tag.as_deref()), (Some("s"), Some("gpu")));
    let queue = world.memory.snapshot().worker_queue;
    let WorkItem::ActivityExecute { session_id, tag, .. } = &queue[0].item else {
        panic!("{queue:?}")
    };
    assert_eq!((session_id.as_deref(), tag.as_deref()), (Some("s"), Some("gpu")));
    world.finish().await;
}

#[tokio::test]
async fn r4_13_another_tag_is_another_activity() {
    let memory = Arc::new(MemoryProvider::new());
    let before = turns(&memory).await;
    before.begin("m", "Main", "gpu").await;
    before.until("m", |history| history.len() == 2).await;
    before.finish().await;
    let changed = world_on(Arc::clone(&memory))
        .activity("A", |_ctx, _| async move { Ok(String::new()) })
        .orchestration("Main", |ctx, _| async move {
            ctx.schedule_activity("A", "").with_tag("tpu").await
        })
        .options(|options| options.worker_tag_filter = TagFilter::any())
        .start()
        .await;
    let error = changed.error("m").await;
    assert!(error.display_message().starts_with("nondeterministic"), "{error:?}");
    changed.finish().await;
}

#[tokio::test]
async fn r4_15_a_tag_has_at_most_256_bytes() {
    let world = world()
        .echo("A")
        .orchestration("Main", |ctx, input| async move {
            ctx.schedule_activity("A", "x").with_tag("t".repeat(input.parse().unwrap())).await
        })
        .options(|options| options.worker_tag_filter = TagFilter::any())
        .start()
        .await;
    assert_eq!(world.run("fits", "Main", "256").await, "A:x");
    let error = world.run_to_error("long", "Main", "257").await;
    let expected = "Activity 'A' tag size (257 bytes) exceeds limit (256 bytes)";
    assert_eq!(error.display_message(), expected);
    assert_eq!(kinds(&world.history("long").await)[1], "ActivityScheduled");
    assert!(world.memory.snapshot().worker_queue.is_empty());
    world.finish().await;
}
