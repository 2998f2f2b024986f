//! Looking over, deleting and pruning instances, some of them while they run.

use std::sync::Arc;
use std::time::Duration;

use duroxide::{
    ClientError, InstanceFilter, OrchestrationContext, OrchestrationStatus, PruneOptions,
};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::support::faults::{Fault, Faults, FaultyProvider};
use crate::support::look::{messages_for, raised};
use crate::support::{World, WorldBuilder, kinds, world, world_on};

async fn waits(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    Ok(ctx.schedule_wait("go").await)
}

fn cast(world: WorldBuilder) -> WorldBuilder {
    world
        .echo("A")
        .orchestration("Waits", waits)
        .orchestration("Echo", |_ctx, input| async move { Ok(input) })
        .orchestration("Fails", |_ctx, input| async move { Err(input) })
        .orchestration("Family", |ctx, input| async move {
            match input.parse::<u32>().unwrap() {
                0 => waits(ctx, input).await,
                n => ctx.schedule_sub_orchestration("Family", (n - 1).to_string()).await,
            }
        })
        // Ends while a child of its first execution still runs.
        .orchestration("Leaves", |ctx, input| async move {
            if input.is_empty() {
                let _kid = ctx.schedule_sub_orchestration_with_id("Waits", "left behind", "");
                return ctx.continue_as_new("done").await;
            }
            Ok(input)
        })
        // Goes through executions one to four, the last of which waits.
        .orchestration("Counts", |ctx, input| async move {
            match ctx.execution_id() {
                4 => waits(ctx, input).await,
                _ => ctx.continue_as_new("on").await,
            }
        })
}

async fn waiting(world: &World, id: &str) {
    world.begin(id, "Waits", "").await;
    world.until_kind(id, "ExternalSubscribed").await;
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

#[tokio::test(start_paused = true)]
async fn r6_50_r6_52_looking_over_everything() {
    let world = cast(world()).start().await;
    world.run("ok", "Echo", "out").await;
    world.run_to_error("bad", "Fails", "no").await;
    waiting(&world, "busy").await;
    let client = &world.client;
    assert!(client.has_management_capability());
    assert_eq!(client.list_all_instances().await.unwrap(), ["busy", "bad", "ok"]);
    for (status, expected) in [
        ("Running", vec!["busy"]),
        ("Completed", vec!["ok"]),
        ("Failed", vec!["bad"]),
        ("failed", vec![]),
    ] {
        assert_eq!(client.list_instances_by_status(status).await.unwrap(), expected);
    }
    let metrics = client.get_system_metrics().await.unwrap();
    assert_eq!((metrics.total_instances, metrics.total_executions), (3, 3));
    assert_eq!(
        (metrics.running_instances, metrics.completed_instances, metrics.failed_instances),
        (1, 1, 1)
    );
    assert_eq!(metrics.total_events, 6);
    let depths = client.get_queue_depths().await.unwrap();
    assert_eq!((depths.orchestrator_queue, depths.worker_queue, depths.timer_queue), (0, 0, 0));
    let info = client.get_instance_info("ok").await.unwrap();
    assert!(0 < info.created_at && info.created_at <= info.updated_at);
    let execution = client.get_execution_info("ok", 1).await.unwrap();
    assert_eq!((execution.event_count, execution.completed_at), (2, Some(info.updated_at)));
    for error in [
        client.get_instance_info("nobody").await.err(),
        client.get_execution_info("ok", 2).await.err(),
    ] {
        assert!(error.unwrap().to_string().contains("not found"));
    }
    assert!(client.list_executions("nobody").await.unwrap().is_empty());
    assert!(client.read_execution_history("ok", 2).await.unwrap().is_empty());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r6_60_r6_61_a_tree_is_deleted_as_a_whole_from_its_root_once_it_has_ended() {
    let world = cast(world()).start().await;
    let client = &world.client;
    world.begin("r", "Family", "2").await;
    let leaf = "r::sub::2::sub::2";
    world.until_kind(leaf, "ExternalSubscribed").await;
    let tree = client.get_instance_tree("r").await.unwrap();
    assert_eq!(
        (tree.root_id.as_str(), &tree.all_ids[..]),
        ("r", &["r", "r::sub::2", leaf].map(str::to_owned)[..])
    );
    let refused = |result: Result<_, ClientError>| match result {
        Err(error) => error,
        Ok(deleted) => panic!("{deleted:?}"),
    };
    assert!(matches!(
        refused(client.delete_instance("r", false).await),
        ClientError::InstanceStillRunning { instance_id } if instance_id == "r"
    ));
    assert!(matches!(
        refused(client.delete_instance("r::sub::2", true).await),
        ClientError::CannotDeleteSubOrchestration { .. }
    ));
    assert!(matches!(
        refused(client.delete_instance("nobody", false).await),
        ClientError::InstanceNotFound { .. }
    ));
    client.raise_event(leaf, "go", "").await.unwrap();
    world.output("r").await;
    let deleted = client.delete_instance("r", false).await.unwrap();
    assert_eq!((deleted.instances_deleted, deleted.executions_deleted), (3, 3));
    assert_eq!((deleted.events_deleted, deleted.queue_messages_deleted), (4 + 4 + 4, 0));
    assert!(client.list_all_instances().await.unwrap().is_empty());
    assert_eq!(world.run("r", "Echo", "again").await, "again"); // R6.4
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn l31_r6_63_a_refusal_does_not_depend_on_the_instances_name() {
    let world = cast(world()).start().await;
    waiting(&world, "Not Found").await;
    let refused = world.client.delete_instance("Not Found", false).await;
    assert!(matches!(refused, Err(ClientError::InstanceStillRunning { .. })));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r6_62_a_turn_in_progress_does_not_bring_a_deleted_instance_back() {
    let faults = Faults::default();
    let world = cast(world().through(|store| FaultyProvider::wrap(store, &faults))).start().await;
    for first_turn in [true, false] {
        if !first_turn {
            waiting(&world, "i").await;
        }
        let gate = Arc::new(Semaphore::new(0));
        let before = faults.calls("ack_orchestration_item");
        faults.next("ack_orchestration_item", [Fault::Gate(gate.clone())]);
        if first_turn {
            waiting_in_commit(&faults, before, world.begin("i", "Waits", "")).await;
        } else {
            waiting_in_commit(&faults, before, world.send([raised("i", "go", "")])).await;
        }
        let deleted = world.client.delete_instance("i", true).await;
        // Before its first commit there is nothing to delete, and it goes on.
        assert_eq!(deleted.is_ok(), !first_turn);
        gate.add_permits(1);
        if first_turn {
            world.until_kind("i", "ExternalSubscribed").await;
            world.client.delete_instance("i", true).await.unwrap();
        }
        sleep(Duration::from_secs(10)).await;
        assert!(!world.memory.snapshot().instances.contains_key("i"));
        assert!(world.memory.snapshot().orchestrator_queue.is_empty());
    }
    assert_eq!(world.run("i", "Echo", "anew").await, "anew");
    world.finish().await;
}

/// Does something, and waits until the turn it causes is about to commit.
async fn waiting_in_commit(faults: &Faults, before: usize, cause: impl Future<Output = ()>) {
    cause.await;
    while faults.calls("ack_orchestration_item") == before {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn r6_62_a_turn_of_a_deleted_instance_does_not_disturb_the_next_of_its_name() {
    let faults = Faults::default();
    let world = cast(world().through(|store| FaultyProvider::wrap(store, &faults))).start().await;
    waiting(&world, "i").await;
    let gate = Arc::new(Semaphore::new(0));
    let before = faults.calls("ack_orchestration_item");
    faults.next("ack_orchestration_item", [Fault::Gate(gate.clone())]);
    waiting_in_commit(&faults, before, world.send([raised("i", "go", "old")])).await;
    world.client.delete_instance("i", true).await.unwrap();
    waiting(&world, "i").await;
    gate.add_permits(1);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(kinds(&world.history("i").await), ["OrchestrationStarted", "ExternalSubscribed"]);
    world.client.raise_event("i", "go", "new").await.unwrap();
    assert_eq!(world.output("i").await, "new");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r6_60_r6_62_force_takes_queued_work_along() {
    let world = cast(world())
        .options(|options| options.worker_concurrency = 0)
        .orchestration("Works", |ctx, _input| async move {
            let _timer = ctx.schedule_timer(Duration::from_secs(60));
            ctx.schedule_activity("A", "").await
        })
        .start()
        .await;
    world.begin("i", "Works", "").await;
    world.until_kind("i", "ActivityScheduled").await;
    let deleted = world.client.delete_instance("i", true).await.unwrap();
    assert_eq!(deleted.queue_messages_deleted, 2);
    let store = world.memory.snapshot();
    assert!(store.worker_queue.is_empty() && messages_for(&store, "i").is_empty());
    let status = world.client.get_orchestration_status("i").await.unwrap();
    assert!(matches!(status, OrchestrationStatus::NotFound));
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r6_65_of_concurrent_deletes_one_succeeds() {
    let world = cast(world()).start().await;
    for round in 0..20 {
        let id = format!("i{round}");
        world.run(&id, "Echo", "").await;
        let deletes = [(); 4].map(|()| {
            let (client, id) = (world.client.clone(), id.clone());
            tokio::spawn(async move { client.delete_instance(&id, false).await })
        });
        let mut succeeded = 0;
        for delete in deletes {
            match delete.await.unwrap() {
                Ok(_) => succeeded += 1,
                Err(error) => assert!(matches!(error, ClientError::InstanceNotFound { .. })),
            }
        }
        assert_eq!(succeeded, 1);
    }
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r6_66_between_two_executions_an_instance_can_be_deleted() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            ctx.continue_as_new_versioned("2.0.0", "").await
        })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    world.until_kind("i", "OrchestrationContinuedAsNew").await;
    sleep(Duration::from_millis(100)).await; // The successor's start backs off.
    let deleted = world.client.delete_instance("i", false).await.unwrap();
    assert_eq!((deleted.instances_deleted, deleted.queue_messages_deleted), (1, 1));
    sleep(Duration::from_secs(60)).await;
    assert!(world.memory.snapshot().instances.is_empty());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r6_71_r6_74_l30_bulk_delete_spares_what_runs() {
    let world = cast(world()).start().await;
    world.run("ok", "Echo", "").await;
    world.run_to_error("bad", "Fails", "").await;
    waiting(&world, "busy").await;
    world.begin("leaver", "Leaves", "").await;
    world.output("leaver").await;
    world.until_kind("left behind", "ExternalSubscribed").await;
    let client = &world.client;
    // R6.73: no ids, nothing to do.
    let none = InstanceFilter { instance_ids: Some(vec![]), ..InstanceFilter::default() };
    assert_eq!(client.delete_instance_bulk(none).await.unwrap().instances_deleted, 0);
    let named = ["busy", "leaver", "left behind", "nobody"].map(str::to_owned).to_vec();
    let named = InstanceFilter { instance_ids: Some(named), ..InstanceFilter::default() };
    assert_eq!(client.delete_instance_bulk(named).await.unwrap().instances_deleted, 0);
    let all = client.delete_instance_bulk(InstanceFilter::default()).await.unwrap();
    assert_eq!((all.instances_deleted, all.executions_deleted), (2, 2));
    let left = sorted(client.list_all_instances().await.unwrap());
    assert_eq!(left, ["busy", "leaver", "left behind"]);
    client.raise_event("left behind", "go", "").await.unwrap();
    world.output("left behind").await;
    let all = client.delete_instance_bulk(InstanceFilter::default()).await.unwrap();
    assert_eq!((all.instances_deleted, all.executions_deleted), (2, 3)); // The whole tree.
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r6_70_r6_72_bulk_delete_by_age_and_number() {
    let world = cast(world()).start().await;
    let mut ended_at = Vec::new();
    for id in ["a", "b", "c", "d"] {
        world.run(id, "Echo", "").await;
        let info = world.client.get_execution_info(id, 1).await.unwrap();
        ended_at.push(info.completed_at.unwrap());
        sleep(Duration::from_secs(1)).await;
    }
    let client = &world.client;
    let before_c = InstanceFilter {
        completed_before: Some(ended_at[2]),
        limit: Some(1),
        ..InstanceFilter::default()
    };
    assert_eq!(client.delete_instance_bulk(before_c.clone()).await.unwrap().instances_deleted, 1);
    assert_eq!(client.delete_instance_bulk(before_c.clone()).await.unwrap().instances_deleted, 1);
    assert_eq!(client.delete_instance_bulk(before_c).await.unwrap().instances_deleted, 0);
    assert_eq!(client.list_all_instances().await.unwrap(), ["d", "c"]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r6_80_r6_82_pruning_a_running_instance_leaves_what_it_needs() {
    let world = cast(world()).start().await;
    world.begin("i", "Counts", "").await;
    world.until("i", |h| h.last().is_some_and(|e| (e.execution_id, e.event_id) == (4, 2))).await;
    let client = &world.client;
    let keep = |keep_last| PruneOptions { keep_last, ..PruneOptions::default() };
    let pruned = client.prune_executions("i", keep(Some(3))).await.unwrap();
    assert_eq!((pruned.executions_deleted, pruned.events_deleted), (1, 2));
    assert_eq!(client.list_executions("i").await.unwrap(), [2, 3, 4]);
    let old = PruneOptions { keep_last: None, completed_before: Some(1) };
    let pruned = client.prune_executions("i", old).await.unwrap();
    assert_eq!((pruned.instances_processed, pruned.executions_deleted), (1, 0));
    for keep_last in [None, Some(0), Some(1)] {
        client.prune_executions("i", keep(keep_last)).await.unwrap(); // R6.81: all the same
        assert_eq!(client.list_executions("i").await.unwrap(), [4]);
    }
    let error = client.prune_executions("nobody", keep(None)).await.unwrap_err();
    assert!(error.to_string().contains("not found")); // R6.83
    client.raise_event("i", "go", "fine").await.unwrap();
    assert_eq!(world.output("i").await, "fine");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r6_84_bulk_prune_takes_running_instances_too() {
    let world = cast(world()).start().await;
    for id in ["a", "b"] {
        world.begin(id, "Counts", "").await;
        world.until(id, |h| h.last().is_some_and(|e| (e.execution_id, e.event_id) == (4, 2))).await;
    }
    let client = &world.client;
    let options = || PruneOptions { keep_last: Some(2), ..PruneOptions::default() };
    let only_ended =
        InstanceFilter { completed_before: Some(u64::MAX), ..InstanceFilter::default() };
    let pruned = client.prune_executions_bulk(only_ended, options()).await.unwrap();
    assert_eq!((pruned.instances_processed, pruned.executions_deleted), (0, 0));
    let pruned = client.prune_executions_bulk(InstanceFilter::default(), options()).await.unwrap();
    assert_eq!((pruned.instances_processed, pruned.executions_deleted), (2, 4));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r6_85_r5_2_an_activity_prunes_its_own_instance() {
    let world = world()
        .activity("Prune", |ctx, _input| async move {
            let client = ctx.get_client();
            let pruned = client.prune_executions(ctx.instance_id(), PruneOptions::default());
            Ok(pruned.await.map_err(|e| e.to_string())?.executions_deleted.to_string())
        })
        .orchestration("Main", |ctx, _input| async move {
            match ctx.execution_id() {
                5 => ctx.schedule_activity("Prune", "").await,
                _ => ctx.continue_as_new("").await,
            }
        })
        .start()
        .await;
    assert_eq!(world.run("i", "Main", "").await, "4");
    assert_eq!(world.client.list_executions("i").await.unwrap(), [5]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn l28_r5_3_an_activity_of_an_instance_born_again_knows_its_new_name() {
    let worker = world()
        .activity("Who", |ctx, _input| async move { Ok(ctx.orchestration_name().to_owned()) })
        .orchestration("Old", |_ctx, input| async move { Ok(input) })
        .start()
        .await;
    worker.run("i", "Old", "").await;
    worker.client.delete_instance("i", false).await.unwrap();
    let other = world_on(worker.memory.clone())
        .options(|options| options.worker_concurrency = 0)
        .orchestration("New", |ctx, _input| async move { ctx.schedule_activity("Who", "").await })
        .start()
        .await;
    other.begin("i", "New", "").await;
    let ended = other.client.wait_for_orchestration("i", Duration::from_secs(600)).await.unwrap();
    assert!(matches!(ended, OrchestrationStatus::Completed { output, .. } if output == "New"));
    other.finish().await;
    worker.finish().await;
}
