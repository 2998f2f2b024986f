//! What only the outside knows: ids, the time, values of other instances (R4.92, chapter 4.13).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use duroxide::{Event, EventKind, OrchestrationContext, OrchestrationStatus, TagFilter};

use crate::support::faults::{Faults, FaultyProvider, broken, busy};
use crate::support::{kinds, world, world_on};

fn millis(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// What an event pair of a system call says: name, and answer.
fn call_at(history: &[Event], position: usize) -> (&str, &str) {
    let EventKind::ActivityScheduled { name, input, session_id: None, tag: None } =
        &history[position].kind
    else {
        panic!("{:?}", history[position])
    };
    assert_eq!(input, "");
    let EventKind::ActivityCompleted { result } = &history[position + 1].kind else {
        panic!("{:?}", history[position + 1])
    };
    assert_eq!(history[position + 1].source_event_id, Some(history[position].event_id));
    (name, result)
}

#[tokio::test(start_paused = true)]
async fn r4_95_r4_96_ids_and_the_time_need_no_worker() {
    let world = world()
        .orchestration("Main", |ctx, _| async move {
            let guid = ctx.new_guid().await?;
            let now = ctx.utc_now().await?;
            let again = ctx.utc_now().await?;
            assert_eq!(now, again); // No time passes within a turn.
            ctx.schedule_timer(Duration::from_secs(7)).await;
            assert_eq!(ctx.utc_now().await?, now + Duration::from_secs(7));
            Ok(format!("{guid} {}", millis(now)))
        })
        .options(|options| options.worker_concurrency = 0)
        .start()
        .await;
    let answer = world.run("m", "Main", "").await;
    let (guid, now) = answer.split_once(' ').unwrap();
    let history = world.history("m").await;
    // R4.97, R7.3: with an empty registry. R2.106, R4.95: as a pair of activity events, in the turn that asks.
    assert_eq!(call_at(&history, 1), ("__duroxide_syscall:new_guid", guid));
    assert_eq!(call_at(&history, 3), ("__duroxide_syscall:utc_now_ms", now));
    assert_eq!(history[0].timestamp_ms.to_string(), now);
    assert!(history[..7].iter().all(|event| event.timestamp_ms == history[0].timestamp_ms));
    assert_eq!((guid.len(), &guid[14..15], guid.matches('-').count()), (36, "4", 4));
    world.finish().await;
}

/// Draws as many ids as the input says, one after the other, and counts the different ones.
async fn draw(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let mut drawn = HashSet::new();
    for _ in 0..input.parse().unwrap() {
        drawn.insert(ctx.new_guid().await?);
    }
    Ok(drawn.len().to_string())
}

#[tokio::test]
async fn r4_95_a_turn_answers_a_thousand_calls_and_workers_the_rest() {
    let alone = world().orchestration("Main", draw);
    let alone = alone.options(|options| options.worker_concurrency = 0).start().await;
    assert_eq!(alone.run("fits", "Main", "1000").await, "1000");
    alone.begin("m", "Main", "1002").await;
    let history = alone.until("m", |history| !history.is_empty()).await;
    assert_eq!(history.len(), 1 + 2 * 1000 + 1); // Start, pairs, and one that waits.
    assert_eq!(alone.memory.snapshot().worker_queue.len(), 1);
    let status = alone.client.get_orchestration_status("m").await.unwrap();
    assert!(matches!(status, OrchestrationStatus::Running { .. }));
    let memory = Arc::clone(&alone.memory);
    alone.finish().await;

    // A worker answers the one; the next turn, the rest.
    let world = world_on(memory).orchestration("Main", draw).start().await;
    assert_eq!(world.output("m").await, "1002");
    assert_eq!(world.history("m").await.len(), 1 + 2 * 1002 + 1);
    let workers = world.runtime.metrics_snapshot().unwrap().worker_dispatcher_items_fetched;
    assert_eq!(workers, 1);
    world.finish().await;
}

#[tokio::test]
async fn r4_95_many_calls_at_once_fit_into_one_turn() {
    let world = world()
        .orchestration("Main", |ctx, _| async move {
            let calls = (0..50).map(|_| ctx.new_guid()).collect();
            let drawn: HashSet<String> = ctx.join(calls).await.into_iter().flatten().collect();
            Ok(drawn.len().to_string())
        })
        .options(|options| options.worker_concurrency = 0)
        .start()
        .await;
    assert_eq!(world.run("m", "Main", "").await, "50");
    assert_eq!(world.runtime.metrics_snapshot().unwrap().orch_dispatcher_items_fetched, 1);
    world.finish().await;
}

#[tokio::test]
async fn r4_95_a_restart_changes_no_answer() {
    let ask = |ctx: OrchestrationContext, _: String| async move {
        let (guid, now) = (ctx.new_guid().await?, millis(ctx.utc_now().await?));
        ctx.schedule_wait("Go").await;
        let last = ctx.new_guid().await?;
        assert_ne!(guid, last);
        Ok(format!("{guid} {now}"))
    };
    let before = world().orchestration("Main", ask).start().await;
    before.begin("m", "Main", "").await;
    let history = before.until("m", |history| history.len() == 6).await;
    let (_, guid) = call_at(&history, 1);
    let (_, now) = call_at(&history, 3);
    let memory = Arc::clone(&before.memory);
    before.finish().await;
    let after = world_on(memory).orchestration("Main", ask).start().await;
    after.client.raise_event("m", "Go", "").await.unwrap();
    assert_eq!(after.output("m").await, format!("{guid} {now}"));
    after.finish().await;
}

#[tokio::test]
async fn r4_97_the_built_in_activities_cannot_be_replaced() {
    let forged = "__duroxide_syscall:get_kv_value";
    let world = world()
        .activity(forged, |_ctx, _| async move { Ok("\"forged\"".to_owned()) })
        .orchestration("Main", |ctx, _| async move {
            let value = ctx.get_kv_value_from_instance("nobody", "k").await?;
            let unknown = ctx.schedule_activity("__duroxide_syscall:fly", "").await;
            Ok(format!("{value:?} {unknown:?}"))
        })
        .start()
        .await;
    let answer = world.run("m", "Main", "").await;
    assert!(answer.starts_with("None Err("), "{answer}");
    world.finish().await;
}

#[tokio::test]
async fn r4_92_values_of_other_instances_are_read_by_an_activity() {
    let world = world()
        .orchestration("Owner", |ctx, _| async move {
            ctx.set_kv_value("colour", "blue");
            ctx.set_kv_value_typed("size", &vec![1, 2]);
            Ok(ctx.schedule_wait("Never").await)
        })
        .orchestration("Reader", |ctx, _| async move {
            let colour = ctx.get_kv_value_from_instance("owner", "colour").await?;
            let size: Option<Vec<u32>> =
                ctx.get_kv_value_from_instance_typed("owner", "size").await?;
            let no_key = ctx.get_kv_value_from_instance("owner", "shape").await?;
            let no_instance = ctx.get_kv_value_from_instance("ghost", "colour").await?;
            Ok(format!("{colour:?} {size:?} {no_key:?} {no_instance:?}"))
        })
        .start()
        .await;
    world.begin("owner", "Owner", "").await;
    world.client.wait_for_kv_value("owner", "colour", world.patience).await.unwrap();
    let expected = r#"Some("blue") Some([1, 2]) None None"#;
    assert_eq!(world.run("reader", "Reader", "").await, expected);
    let history = world.history("reader").await;
    let EventKind::ActivityScheduled { name, input, .. } = &history[1].kind else {
        panic!("{history:?}")
    };
    assert_eq!(name, "__duroxide_syscall:get_kv_value");
    let input: serde_json::Value = serde_json::from_str(input).unwrap();
    assert_eq!(input, serde_json::json!({ "instance_id": "owner", "key": "colour" }));
    world.finish().await;
}

#[tokio::test]
async fn r4_92_an_instance_sees_of_itself_what_is_committed() {
    let world = world()
        .orchestration("Main", |ctx, _| async move {
            let own = ctx.instance_id();
            ctx.set_kv_value("k", "first");
            ctx.schedule_timer(Duration::ZERO).await; // Commits.
            let read = ctx.get_kv_value_from_instance(own, "k");
            ctx.set_kv_value("k", "second");
            let before = read.await?;
            Ok(format!("{before:?}"))
        })
        .start()
        .await;
    // Read by a worker after the turn that asked was committed, with all it wrote.
    assert_eq!(world.run("m", "Main", "").await, r#"Some("second")"#);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_96_workers_that_take_tagged_work_only_read_nothing() {
    let world = world()
        .patient()
        .orchestration("Main", |ctx, _| async move {
            let guid = ctx.new_guid().await?;
            let read = ctx.get_kv_value_from_instance("other", "k");
            let timer = ctx.schedule_timer(Duration::from_secs(3600));
            match ctx.select2(read, timer).await {
                duroxide::Either2::First(_) => Err("read".to_owned()),
                duroxide::Either2::Second(()) => Ok(guid.len().to_string()),
            }
        })
        .options(|options| options.worker_tag_filter = TagFilter::tags(["gpu"]))
        .start()
        .await;
    assert_eq!(world.run("m", "Main", "").await, "36");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_92_a_store_that_stumbles_delays_a_read_and_one_that_refuses_fails_it() {
    let faults = Faults::default();
    let world = world()
        .orchestration("Main", |ctx, _| async move {
            Ok(format!("{:?}", ctx.get_kv_value_from_instance("other", "k").await))
        })
        .through(|store| FaultyProvider::wrap(store, &faults))
        .start()
        .await;
    faults.next("get_kv_value", [busy(), busy(), busy()]);
    assert_eq!(world.run("m", "Main", "").await, "Ok(None)");
    faults.next("get_kv_value", [broken()]);
    let answer = world.run("n", "Main", "").await;
    assert!(answer.contains("broken"), "{answer}");
    assert!(kinds(&world.history("n").await).contains(&"ActivityFailed".to_owned()));
    world.finish().await;
}
