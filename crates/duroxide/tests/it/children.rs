//! Sub-orchestrations and detached orchestrations: started, told apart, ended together.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::WorkItem;
use duroxide::providers::memory::MemoryProvider;
use duroxide::{AppErrorKind, Either2, ErrorDetails, EventKind, OrchestrationContext};

use crate::support::look::{cancellations, has, messages_for, preload, start};
use crate::support::{WorldBuilder, kinds, world, world_on};

async fn waits(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    Ok(ctx.schedule_wait("go").await)
}

fn family() -> WorldBuilder {
    world()
        .orchestration("Waits", waits)
        .orchestration("Echo", |_ctx, input| async move { Ok(format!("echo {input}")) })
        .orchestration("Fails", |_ctx, input| async move { Err(input) })
}

fn cancelled(reason: &str) -> ErrorDetails {
    ErrorDetails::cancelled(reason)
}

#[tokio::test(start_paused = true)]
async fn r4_50_r2_101_r2_102_children_are_named_after_parent_and_event() {
    let world = family()
        .orchestration("Main", |ctx, _input| async move {
            let auto = ctx.schedule_sub_orchestration("Echo", "a").await?;
            let named = ctx.schedule_sub_orchestration_with_id("Echo", "my kid", "b").await?;
            let typed: String = ctx.schedule_sub_orchestration_typed("Echo", &"c").await?;
            let both: String =
                ctx.schedule_sub_orchestration_with_id_typed("Echo", "kid 2", &"d").await?;
            Ok(format!("{auto}, {named}, {typed}, {both}"))
        })
        .start()
        .await;
    assert_eq!(world.run("m", "Main", "").await, "echo a, echo b, echo c, echo d");
    let store = world.settled().await;
    let ids: Vec<&String> = store.instances.keys().collect();
    assert_eq!(ids, ["kid 2", "m", "m::sub::2", "m::sub::6", "my kid"]); // R4.52
    let recorded = &world.history("m").await[1];
    assert!(
        matches!(&recorded.kind, EventKind::SubOrchestrationScheduled { instance, .. }
            if instance == "sub::2"), // R2.43
        "{recorded:?}"
    );
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_51_a_child_gets_the_version_asked_for_or_the_policys() {
    let world = world()
        .orchestration_version("Kid", "1.0.0", |_ctx, _input| async { Ok("one".into()) })
        .orchestration_version("Kid", "2.0.0", |_ctx, _input| async { Ok("two".into()) })
        .orchestration("Main", |ctx, _input| async move {
            let v = |v: &str| Some(v.to_owned());
            let by_policy = ctx.schedule_sub_orchestration_versioned("Kid", None, "").await?;
            let first = ctx.schedule_sub_orchestration_versioned("Kid", v("1.0.0"), "").await?;
            let second = ctx
                .schedule_sub_orchestration_versioned_with_id("Kid", v("2.0.0"), "k", "")
                .await?;
            Ok(format!("{by_policy} {first} {second}"))
        })
        .start()
        .await;
    assert_eq!(world.run("m", "Main", "").await, "two one two");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_53_r2_104_a_reserved_child_id_is_an_error_and_nothing_is_scheduled() {
    let world = family()
        .orchestration("Main", |ctx, _input| async move {
            let refused = ctx.schedule_sub_orchestration_with_id("Echo", "sub::7", "");
            let error = refused.await.unwrap_err();
            assert!(error.contains("reserved marker") && error.contains("sub::7"), "{error}");
            ctx.schedule_sub_orchestration_with_id("Echo", "m::sub::7", "fine").await
        })
        .start()
        .await;
    assert_eq!(world.run("m", "Main", "").await, "echo fine");
    assert_eq!(kinds(&world.history("m").await)[1], "SubOrchestrationScheduled");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_54_child_and_parent_know_each_other() {
    let world = family()
        .orchestration("Main", |ctx, _input| async move {
            ctx.schedule_timer(Duration::from_secs(1)).await;
            ctx.schedule_sub_orchestration("Echo", "").await
        })
        .start()
        .await;
    world.run("m", "Main", "").await;
    let kid = world.history("m::sub::4").await;
    let EventKind::OrchestrationStarted { parent_instance, parent_id, parent_execution_id, .. } =
        &kid[0].kind
    else {
        panic!("{kid:?}")
    };
    assert_eq!(
        (parent_instance.as_deref(), *parent_id, *parent_execution_id),
        (Some("m"), Some(4), Some(1))
    );
    let info = world.client.get_instance_info("m::sub::4").await.unwrap();
    assert_eq!(info.parent_instance_id.as_deref(), Some("m"));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_55_the_parent_sees_the_display_message_of_a_failure() {
    let world = family()
        .orchestration("Main", |ctx, _input| async move {
            let failed = ctx.schedule_sub_orchestration("Fails", "no luck").await.unwrap_err();
            let waiting = ctx.schedule_sub_orchestration_with_id("Waits", "kid", "");
            Ok(format!("{failed}; {}", waiting.await.unwrap_err()))
        })
        .start()
        .await;
    world.begin("m", "Main", "").await;
    world.until_kind("kid", "ExternalSubscribed").await;
    world.client.cancel_instance("kid", "enough").await.unwrap();
    assert_eq!(world.output("m").await, "no luck; canceled: enough");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_56_a_child_that_continues_as_new_answers_once_from_its_last_execution() {
    let world = world()
        .orchestration("Counter", |ctx, input| async move {
            match input.parse::<u32>().unwrap() {
                0 => Ok(format!("execution {}", ctx.execution_id())),
                n => ctx.continue_as_new((n - 1).to_string()).await,
            }
        })
        .orchestration("Main", |ctx, _input| async move {
            ctx.schedule_sub_orchestration_with_id("Counter", "kid", "3").await
        })
        .start()
        .await;
    assert_eq!(world.run("m", "Main", "").await, "execution 4");
    assert_eq!(world.client.list_executions("kid").await.unwrap(), [1, 2, 3, 4]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_58_r3_117_a_parent_that_continues_leaves_its_child_running() {
    let world = family()
        .orchestration("Main", |ctx, input| async move {
            let kid = ctx.schedule_sub_orchestration("Waits", "");
            if input.is_empty() {
                ctx.schedule_wait("continue").await;
                return ctx.continue_as_new("second").await;
            }
            kid.await
        })
        .start()
        .await;
    world.begin("m", "Main", "").await;
    world.until_kind("m::sub::2", "ExternalSubscribed").await;
    world.client.raise_event("m", "continue", "").await.unwrap();
    world.until_kind("m::sub::2_2", "ExternalSubscribed").await; // R2.101: a new id
    world.client.raise_event("m::sub::2", "go", "old").await.unwrap();
    assert_eq!(world.output("m::sub::2").await, "old");
    world.settled().await;
    assert!(!has(&world.history("m").await, "SubOrchestrationCompleted"));
    world.client.raise_event("m::sub::2_2", "go", "new").await.unwrap();
    assert_eq!(world.output("m").await, "new");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_59_r3_109_cancellation_runs_down_the_tree() {
    let world = family()
        .orchestration("Nest", |ctx, input| async move {
            match input.parse::<u32>().unwrap() {
                0 => waits(ctx, input).await,
                n => ctx.schedule_sub_orchestration("Nest", (n - 1).to_string()).await,
            }
        })
        .start()
        .await;
    world.begin("m", "Nest", "3").await;
    let leaf = "m::sub::2::sub::2::sub::2";
    world.until_kind(leaf, "ExternalSubscribed").await;
    world.client.cancel_instance("m", "stop").await.unwrap();
    assert_eq!(world.error("m").await, cancelled("stop"));
    for id in ["m::sub::2", "m::sub::2::sub::2", leaf] {
        assert_eq!(world.error(id).await, cancelled("parent canceled"));
    }
    // No breadcrumb row for the children: the request went out with the failure.
    assert_eq!(
        kinds(&world.history("m").await)[2..],
        ["OrchestrationCancelRequested", "OrchestrationFailed"]
    );
    world.settled().await;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r3_96_r3_100_the_child_that_loses_a_race_is_cancelled() {
    let world = family()
        .orchestration("Main", |ctx, _input| async move {
            let kid = ctx.schedule_sub_orchestration_with_id("Waits", "kid", "");
            let alarm = ctx.schedule_timer(Duration::from_secs(5));
            match ctx.select2(kid, alarm).await {
                Either2::First(_) => panic!("nobody raises go"),
                Either2::Second(()) => Ok(ctx.schedule_wait("end").await),
            }
        })
        .start()
        .await;
    world.begin("m", "Main", "").await;
    let reason = "parent dropped sub-orchestration future";
    assert_eq!(world.error("kid").await, cancelled(reason));
    let history = world.until_kind("m", "SubOrchestrationFailed").await; // R3.61: it is recorded
    assert_eq!(
        cancellations(&history, "SubOrchestrationCancelRequested"),
        [(2, "dropped_future".to_owned())]
    );
    world.client.raise_event("m", "end", "ok").await.unwrap();
    assert_eq!(world.output("m").await, "ok");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r3_98_a_child_dropped_at_once_in_a_turn_that_goes_on_is_started_and_cancelled() {
    let world = family()
        .orchestration("Main", |ctx, input| async move {
            drop(ctx.schedule_sub_orchestration_with_id("Waits", "kid", ""));
            waits(ctx, input).await
        })
        .start()
        .await;
    world.begin("m", "Main", "").await;
    let reason = "parent dropped sub-orchestration future";
    assert_eq!(world.error("kid").await, cancelled(reason));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r3_72_r3_107_r3_108_r3_110_a_parent_that_ends_lets_go_of_its_child() {
    let world = family()
        .orchestration("Main", |ctx, input| async move {
            let _kid = ctx.schedule_sub_orchestration("Waits", "");
            ctx.schedule_wait("end").await;
            if input == "ok" { Ok(input) } else { Err(input) }
        })
        .start()
        .await;
    for id in ["ok", "err"] {
        world.begin(id, "Main", id).await;
        let kid = format!("{id}::sub::2");
        world.until_kind(&kid, "ExternalSubscribed").await;
        world.client.raise_event(id, "end", "").await.unwrap();
        let reason = "parent dropped sub-orchestration future";
        assert_eq!(world.error(&kid).await, cancelled(reason));
    }
    world.settled().await;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn l7_r3_75_children_of_a_parent_that_panics_are_cancelled() {
    let world = family()
        .orchestration("Main", |ctx, _input| async move {
            let _done = ctx.schedule_sub_orchestration_with_id("Echo", "done", "").await;
            let _open = ctx.schedule_sub_orchestration_with_id("Waits", "open", "");
            ctx.schedule_wait("end").await;
            let _unborn = ctx.schedule_sub_orchestration_with_id("Waits", "unborn", "");
            panic!("oh no")
        })
        .start()
        .await;
    world.begin("m", "Main", "").await;
    world.until_kind("open", "ExternalSubscribed").await;
    world.client.raise_event("m", "end", "").await.unwrap();
    let panicked = ErrorDetails::application(AppErrorKind::Panicked, "oh no");
    assert_eq!(world.error("m").await, panicked);
    assert_eq!(world.error("open").await, cancelled("parent failed"));
    let store = world.settled().await;
    assert!(!store.instances.contains_key("unborn") && store.dead_letters.is_empty());
    assert!(!has(&world.history("m").await, "SubOrchestrationCancelRequested"));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn l7_children_of_a_nondeterministic_parent_are_cancelled() {
    let old = family()
        .orchestration("Main", |ctx, input| async move {
            let _kid = ctx.schedule_sub_orchestration_with_id("Waits", "kid", "");
            waits(ctx, input).await
        })
        .start()
        .await;
    old.begin("m", "Main", "").await;
    old.until_kind("kid", "ExternalSubscribed").await;
    let memory = old.close().await;
    let new =
        world_on(memory).orchestration("Waits", waits).orchestration("Main", waits).start().await;
    new.client.raise_event("m", "go", "").await.unwrap();
    assert!(matches!(new.error("m").await, ErrorDetails::Configuration { .. })); // R3.140
    assert_eq!(new.error("kid").await, cancelled("parent failed"));
    new.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_60_r3_28_a_childs_system_error_ends_the_parent() {
    let world = world()
        .options(|options| options.max_attempts = 1)
        .orchestration("Main", |ctx, _input| async move {
            let never = ctx.schedule_sub_orchestration_with_id("Unknown", "kid", "").await;
            panic!("the code is not run again: {never:?}")
        })
        .start()
        .await;
    world.begin("m", "Main", "").await;
    let poison = world.error_at_last("kid").await;
    assert!(matches!(poison, ErrorDetails::Poison { .. }));
    assert_eq!(world.error("m").await, poison); // R7.77
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn l2_a_cancel_in_the_first_turn_neither_starts_nor_cancels_the_child() {
    // Both are there before anybody looks, so they make one batch.
    let memory = Arc::new(MemoryProvider::new());
    let cancel = WorkItem::CancelInstance { instance: "m".into(), reason: "early".into() };
    preload(&*memory, [start("m", "Main", ""), cancel]).await;
    let world = world_on(memory)
        .orchestration("Main", |ctx, _input| async move {
            ctx.schedule_sub_orchestration("Waits", "").await
        })
        .start()
        .await;
    assert_eq!(world.error("m").await, cancelled("early"));
    let store = world.settled().await;
    assert!(has(&world.history("m").await, "SubOrchestrationScheduled"));
    assert!(messages_for(&store, "m::sub::3").is_empty());
    assert!(!store.instances.contains_key("m::sub::3"));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn l3_a_child_dropped_in_the_last_turn_is_neither_started_nor_cancelled() {
    let world = family()
        .orchestration("Main", |ctx, _input| async move {
            drop(ctx.schedule_sub_orchestration_with_id("Waits", "kid", ""));
            Ok("done".into())
        })
        .start()
        .await;
    world.run("m", "Main", "").await;
    let store = world.settled().await;
    assert!(!store.instances.contains_key("kid") && store.dead_letters.is_empty());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_99_many_children_at_a_time() {
    let world = family()
        .orchestration("Main", |ctx, _input| async move {
            let kids = (0..50).map(|n| ctx.schedule_sub_orchestration("Echo", n.to_string()));
            let results = ctx.join(kids.collect()).await;
            Ok(results.into_iter().collect::<Result<Vec<_>, _>>()?.join(","))
        })
        .start()
        .await;
    let expected: Vec<String> = (0..50).map(|n| format!("echo {n}")).collect();
    assert_eq!(world.run("m", "Main", "").await, expected.join(","));
    world.finish().await;
}
