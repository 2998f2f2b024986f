//! Custom status and key-value store, as the code and as clients see them.

use std::collections::HashMap;
use std::time::Duration;

use duroxide::{ClientError, OrchestrationStatus};
use tokio::time::sleep;

use crate::support::look::count;
use crate::support::{PATIENCE, world, world_on};

const POLL: Duration = Duration::from_millis(100);

fn custom(status: &OrchestrationStatus) -> (Option<&str>, u64) {
    match status {
        OrchestrationStatus::Running { custom_status, custom_status_version }
        | OrchestrationStatus::Completed { custom_status, custom_status_version, .. }
        | OrchestrationStatus::Failed { custom_status, custom_status_version, .. } => {
            (custom_status.as_deref(), *custom_status_version)
        }
        OrchestrationStatus::NotFound => panic!("not found"),
    }
}

#[tokio::test(start_paused = true)]
async fn r4_71_r4_72_r4_73_status_changes_show_with_the_commit_of_their_turn() {
    let world = world()
        .orchestration("Main", |ctx, input| async move {
            ctx.set_custom_status("a");
            ctx.set_custom_status("b");
            assert_eq!(ctx.get_custom_status().as_deref(), Some("b"));
            ctx.schedule_wait("next").await;
            ctx.reset_custom_status();
            assert_eq!(ctx.get_custom_status(), None);
            ctx.schedule_wait("next").await;
            ctx.schedule_wait("next").await;
            ctx.set_custom_status("c");
            if input == "ok" { Ok(input) } else { Err(input) }
        })
        .start()
        .await;
    for id in ["ok", "err"] {
        let client = &world.client;
        world.begin(id, "Main", id).await;
        let status = client.wait_for_status_change(id, 0, POLL, PATIENCE).await.unwrap();
        assert_eq!(custom(&status), (Some("b"), 1)); // Two calls, one commit.
        client.raise_event(id, "next", "").await.unwrap();
        let status = client.wait_for_status_change(id, 1, POLL, PATIENCE).await.unwrap();
        assert_eq!(custom(&status), (None, 2));
        client.raise_event(id, "next", "").await.unwrap();
        world.until(id, |history| count(history, "ExternalSubscribed") == 3).await;
        let status = client.get_orchestration_status(id).await.unwrap();
        assert_eq!(custom(&status), (None, 2)); // No update, no version.
        client.raise_event(id, "next", "").await.unwrap();
        assert_eq!(custom(&world.ended(id).await), (Some("c"), 3)); // R4.74, R6.21
        // R6.32: an ended instance answers at once, whatever the version.
        client.wait_for_status_change(id, 99, POLL, PATIENCE).await.unwrap();
    }
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r6_32_waiting_for_news_ends_with_the_timeout() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move { Ok(ctx.schedule_wait("x").await) })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    let client = &world.client;
    let none = client.wait_for_status_change("i", 0, POLL, Duration::from_secs(3)).await;
    assert!(matches!(none, Err(ClientError::Timeout)));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_76_code_may_report_other_progress_texts() {
    let told = |text: &'static str| {
        move |ctx: duroxide::OrchestrationContext, _input: String| async move {
            ctx.set_custom_status(text);
            Ok(ctx.schedule_wait("go").await)
        }
    };
    let old = world().orchestration("Main", told("25 %")).start().await;
    old.begin("i", "Main", "").await;
    old.until_kind("i", "ExternalSubscribed").await;
    let new = world_on(old.close().await).orchestration("Main", told("a quarter")).start().await;
    new.client.raise_event("i", "go", "fine").await.unwrap();
    assert_eq!(new.output("i").await, "fine");
    new.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_80_r4_81_the_code_sees_its_own_changes_at_once() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            ctx.set_kv_value("b", "1");
            ctx.set_kv_value("a", "x");
            ctx.set_kv_value("a", "2");
            ctx.set_kv_value_typed("c", &"text");
            assert_eq!(ctx.get_kv_all_keys(), ["a", "b", "c"]);
            assert_eq!(ctx.get_kv_value("a").as_deref(), Some("2"));
            assert_eq!(ctx.get_kv_value("c").as_deref(), Some("\"text\"")); // R2.93
            assert_eq!(ctx.get_kv_value_typed::<u32>("b"), Ok(Some(1)));
            assert_eq!(ctx.get_kv_value_typed::<u32>("none"), Ok(None));
            let error = ctx.get_kv_value_typed::<u32>("c").unwrap_err();
            assert!(error.starts_with("KV deserialization error for key 'c': "), "{error}");
            ctx.clear_kv_value("b");
            assert_eq!((ctx.get_kv_length(), ctx.get_kv_value("b")), (2, None));
            ctx.clear_all_kv_values();
            assert!(ctx.get_kv_all_values().is_empty());
            ctx.set_kv_value("last", "z");
            Ok(String::new())
        })
        .start()
        .await;
    world.run("i", "Main", "").await;
    assert_eq!(count(&world.history("i").await, "KeyValueSet"), 5);
    let all = world.client.get_kv_all_values("i").await.unwrap();
    assert_eq!(all, HashMap::from([("last".to_owned(), "z".to_owned())]));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_82_r4_85_read_modify_write_over_turns_with_readers_outside() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            for _ in 0..3 {
                let n: u32 = ctx.get_kv_value_typed("n").unwrap().unwrap_or(0);
                ctx.set_kv_value_typed("n", &(n + 1));
                ctx.schedule_wait("more").await;
            }
            Ok(ctx.get_kv_value("n").unwrap())
        })
        .start()
        .await;
    let client = &world.client;
    world.begin("i", "Main", "").await;
    assert_eq!(client.wait_for_kv_value("i", "n", PATIENCE).await.unwrap(), "1"); // R6.33
    for n in 2..=3_u32 {
        client.raise_event("i", "more", "").await.unwrap();
        world.until("i", |history| count(history, "KeyValueSet") == n as usize).await;
        assert_eq!(client.get_kv_value_typed::<u32>("i", "n").await.unwrap(), Some(n));
    }
    client.raise_event("i", "more", "").await.unwrap();
    assert_eq!(world.output("i").await, "3");
    // R4.86, R6.40
    assert_eq!(client.get_kv_value("i", "n").await.unwrap().as_deref(), Some("3"));
    assert!(matches!(
        client.get_kv_value_typed::<String>("i", "n").await,
        Err(ClientError::InvalidInput { .. })
    ));
    assert_eq!(client.get_kv_value("i", "other").await.unwrap(), None);
    assert!(client.get_kv_all_values("nobody").await.unwrap().is_empty());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_84_values_of_earlier_executions_can_be_cleared() {
    let world = world()
        .orchestration("Main", |ctx, input| async move {
            match input.as_str() {
                "" => {
                    ctx.set_kv_value("a", "1");
                    ctx.set_kv_value("b", "1");
                    ctx.continue_as_new("clear one").await
                }
                "clear one" => {
                    ctx.clear_kv_value("a");
                    assert_eq!(ctx.get_kv_all_keys(), ["b"]);
                    ctx.continue_as_new("clear all").await
                }
                "clear all" => {
                    assert_eq!(ctx.get_kv_all_keys(), ["b"]);
                    ctx.clear_all_kv_values();
                    ctx.continue_as_new("end").await
                }
                _ => Ok(ctx.get_kv_length().to_string()),
            }
        })
        .start()
        .await;
    assert_eq!(world.run("i", "Main", "").await, "0");
    assert!(world.client.get_kv_all_values("i").await.unwrap().is_empty());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_87_parent_and_child_have_stores_of_their_own() {
    let world = world()
        .orchestration("Kid", |ctx, _input| async move {
            let before = ctx.get_kv_value("k");
            ctx.set_kv_value("k", "kid's");
            Ok(format!("{before:?}"))
        })
        .orchestration("Main", |ctx, _input| async move {
            ctx.set_kv_value("k", "mine");
            let kid = ctx.schedule_sub_orchestration_with_id("Kid", "kid", "").await?;
            Ok(format!("{kid} {:?}", ctx.get_kv_value("k")))
        })
        .start()
        .await;
    assert_eq!(world.run("m", "Main", "").await, "None Some(\"mine\")");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn l9_r4_89_r4_90_r4_91_values_keep_their_age_over_replays() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            ctx.set_kv_value("old", "");
            ctx.schedule_timer(Duration::from_secs(60)).await;
            ctx.set_kv_value("young", "");
            ctx.schedule_timer(Duration::from_secs(60)).await;
            let now = ctx.utc_now().await?.duration_since(std::time::UNIX_EPOCH).unwrap();
            ctx.set_kv_value("new", "");
            let a_minute_and_a_half_ago = now.as_millis() as u64 - 90_000;
            let pruned = ctx.prune_kv_values_updated_before(a_minute_and_a_half_ago);
            assert_eq!(ctx.prune_kv_values_updated_before(0), 0);
            ctx.schedule_timer(Duration::from_secs(60)).await; // And replay it all.
            Ok(format!("{pruned} {:?}", ctx.get_kv_all_keys()))
        })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    sleep(Duration::from_secs(181)).await;
    assert_eq!(world.output("i").await, "1 [\"new\", \"young\"]");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_92_r4_97_values_of_other_instances_are_read_by_a_built_in_activity() {
    let world = world()
        .orchestration("Writer", |ctx, _input| async move {
            ctx.set_kv_value_typed("n", &41);
            Ok(ctx.schedule_wait("x").await)
        })
        .orchestration("Reader", |ctx, _input| async move {
            let n = ctx.get_kv_value_from_instance_typed::<u32>("w", "n").await?;
            let none = ctx.get_kv_value_from_instance("w", "other").await?;
            let nobody = ctx.get_kv_value_from_instance("nobody", "n").await?;
            Ok(format!("{n:?} {none:?} {nobody:?}"))
        })
        .start()
        .await;
    world.begin("w", "Writer", "").await;
    world.client.wait_for_kv_value("w", "n", PATIENCE).await.unwrap();
    assert_eq!(world.run("r", "Reader", "").await, "Some(41) None None");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r6_41_statistics() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            ctx.set_kv_value("a", "123");
            ctx.set_kv_value("b", "4567");
            Ok(String::new())
        })
        .start()
        .await;
    assert!(world.client.get_orchestration_stats("i").await.unwrap().is_none());
    world.run("i", "Main", "").await;
    let stats = world.client.get_orchestration_stats("i").await.unwrap().unwrap();
    assert_eq!((stats.kv_user_key_count, stats.kv_total_value_bytes), (2, 7));
    assert_eq!((stats.history_event_count, stats.queue_pending_count), (4, 0));
    let history = world.history("i").await;
    let bytes: usize = history.iter().map(|e| serde_json::to_string(e).unwrap().len()).sum();
    assert_eq!(stats.history_size_bytes, bytes as u64);
    world.finish().await;
}
