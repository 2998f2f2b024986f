//! What the management side tells about instances, queues and sizes.

use super::ProviderFactory;
use super::lab::{Promise, lab};
use super::words::*;
use crate::providers::{QueueDepths, SystemMetrics};
use duroxide_core::model::EventKind;
use std::time::Duration;

const SECTION: &str = "management";
/// Times are milliseconds: in seconds, no time of our century would be later than this.
const EARLY_IN_THE_CENTURY: u64 = 1_000_000_000_000;

/// Every instance is listed, the newest first.
pub async fn test_list_instances<F: ProviderFactory>(factory: &F) {
    let says = "list_instances gives every instance once, the newest first";
    let lab = lab(factory, Promise { rule: "§6.7", says, section: SECTION }).await.patient();
    for id in ["b", "c", "a"] {
        lab.begin(id).await;
        lab.tick().await;
    }
    lab.step("c", commit().ends("Completed", "out")).await;
    lab.step("b", commit().event(note(2))).await;
    let ids = lab.ok("list_instances", lab.admin().list_instances().await);
    lab.same("the instances", ids, ["a", "c", "b"]);
}

/// Instances are found by the status of their current execution.
pub async fn test_list_instances_by_status<F: ProviderFactory>(factory: &F) {
    let says = "list_instances_by_status goes by the current execution's status, as spelled";
    let lab = lab(factory, Promise { rule: "R6.50", says, section: SECTION }).await.patient();
    lab.ended("done", "Completed").await;
    lab.ended("failed", "Failed").await;
    lab.ended("between", "ContinuedAsNew").await;
    lab.begin("running").await;
    lab.looping("looping", 2).await;
    lab.same("Completed", lab.instances_with("Completed").await, ["done"]);
    lab.same("Failed", lab.instances_with("Failed").await, ["failed"]);
    lab.same("ContinuedAsNew", lab.instances_with("ContinuedAsNew").await, ["between"]);
    lab.same("Running", lab.instances_with("Running").await, ["looping", "running"]);
    lab.same("completed", lab.instances_with("completed").await, [""; 0]);
    lab.same("Unheard-of", lab.instances_with("Unheard-of").await, [""; 0]);
}

/// Executions are listed in ascending order, each with its own history.
pub async fn test_list_executions<F: ProviderFactory>(factory: &F) {
    let says = "executions are listed in ascending order, each with its own history";
    let lab = lab(factory, Promise { rule: "R8.97", says, section: SECTION }).await.patient();
    lab.begin("once").await;
    lab.same("the executions of a new instance", lab.executions("once").await, [1]);
    lab.looping("a", 3).await;
    lab.step("a", commit().in_execution(3).event(note(2))).await;
    lab.same("the executions", lab.executions("a").await, [1, 2, 3]);

    let admin = lab.admin();
    let latest = lab.ok("latest_execution_id", admin.latest_execution_id("a").await);
    lab.same("the newest execution", latest, 3);
    let newest = lab.ok("read_history", admin.read_history("a").await);
    lab.same("the number of events of the newest execution", newest.len(), 2);
    for (number, length) in [(1, 1), (2, 1), (3, 2), (4, 0)] {
        let history = admin.read_history_with_execution_id("a", number).await;
        let history = lab.ok("read_history_with_execution_id", history);
        lab.same(&format!("the number of events of execution {number}"), history.len(), length);
    }

    lab.same("the executions of an unknown instance", lab.executions("?").await, [0_u64; 0]);
    let latest = lab.ok("latest_execution_id", admin.latest_execution_id("?").await);
    lab.same("the newest execution of an unknown instance", latest, 1);
    let nothing = lab.ok("read_history", admin.read_history("?").await);
    lab.same("the history of an unknown instance", nothing, []);
}

/// An instance is described as it stands.
pub async fn test_get_instance_info<F: ProviderFactory>(factory: &F) {
    let says = "get_instance_info describes an instance as its last commit left it";
    let lab = lab(factory, Promise { rule: "R8.97", says, section: SECTION }).await.patient();
    lab.begin("parent").await;
    lab.begin_as("a", first_commit("a").named("Orders", "1.2.3").child_of("parent")).await;
    let info = lab.info("a").await;
    lab.same("the id", info.instance_id, "a");
    lab.same("the name", info.orchestration_name, "Orders");
    lab.same("the version", info.orchestration_version, "1.2.3");
    lab.same("the current execution", info.current_execution_id, 1);
    lab.same("the status", info.status, "Running");
    lab.same("the output", info.output, None);
    lab.same("the parent", info.parent_instance_id.as_deref(), Some("parent"));
    lab.expect(EARLY_IN_THE_CENTURY < info.created_at, "milliseconds (R6.52)", info.created_at);

    lab.tick().await;
    lab.continue_as_new("a", 2, commit().event(started("a"))).await;
    let next = lab.info("a").await;
    lab.same("the status of the next execution", next.status, "Running");
    lab.same("the output of the next execution", next.output, None);
    lab.step("a", commit().in_execution(2).ends("Completed", "42")).await;
    let after = lab.info("a").await;
    lab.same("the current execution", after.current_execution_id, 2);
    lab.same("the status after the end", after.status, "Completed");
    lab.same("the output after the end", after.output.as_deref(), Some("42"));
    lab.same("the time of creation after the end", after.created_at, info.created_at);
    let times = (after.created_at, after.updated_at);
    lab.expect(times.0 < times.1, "an instance to be updated after it was created", times);

    lab.same("the parent of a root", lab.info("parent").await.parent_instance_id, None);
    let unknown = lab.admin().get_instance_info("?").await;
    lab.refused("get_instance_info of an unknown instance", unknown, &["not found"]);
}

/// An execution is described as it stands.
pub async fn test_get_execution_info<F: ProviderFactory>(factory: &F) {
    let says = "get_execution_info describes each execution for itself";
    let lab = lab(factory, Promise { rule: "R8.49", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.step("a", commit().event(note(2)).event(note(3))).await;
    let running = lab.execution("a", 1).await;
    lab.same("its number", running.execution_id, 1);
    lab.same("its status", running.status, "Running");
    lab.same("its output", running.output, None);
    lab.same("its time of completion", running.completed_at, None);
    lab.same("its number of events", running.event_count, 3);
    let began = running.started_at;
    lab.expect(EARLY_IN_THE_CENTURY < began, "milliseconds (R6.52)", began);

    lab.tick().await;
    // Ended by metadata alone, without an event.
    lab.continue_as_new("a", 2, commit().event(started("a")).ends("Failed", "boom")).await;
    let (first, second) = (lab.execution("a", 1).await, lab.execution("a", 2).await);
    lab.same("status of the first", first.status, "ContinuedAsNew");
    lab.same("output of the first", first.output.as_deref(), Some("x"));
    lab.same("number of events of the first", first.event_count, 3);
    lab.same("when the first began, after it ended", first.started_at, began);
    let times = (Some(first.started_at), first.completed_at, Some(second.started_at));
    lab.expect(times.0 < times.1 && times.1 <= times.2, "times in order", times);
    lab.same("status of the second", second.status, "Failed");
    lab.same("output of the second", second.output.as_deref(), Some("boom"));
    lab.same("number of events of the second", second.event_count, 1);

    for (id, number) in [("a", 3), ("?", 1)] {
        let unknown = lab.admin().get_execution_info(id, number).await;
        lab.refused("get_execution_info of an unknown execution", unknown, &["not found"]);
    }
}

/// Totals count instances by status, executions and events.
pub async fn test_get_system_metrics<F: ProviderFactory>(factory: &F) {
    let says = "get_system_metrics counts instances by status, executions and events";
    let lab = lab(factory, Promise { rule: "§6.7", says, section: SECTION }).await.patient();
    let totals = |of: SystemMetrics| {
        let by_status = [of.running_instances, of.completed_instances, of.failed_instances];
        (of.total_instances, by_status, of.total_executions, of.total_events)
    };
    let empty = lab.ok("get_system_metrics", lab.admin().get_system_metrics().await);
    lab.same("the totals of an empty store", totals(empty), (0, [0; 3], 0, 0));
    lab.ended("done", "Completed").await;
    lab.ended("failed", "Failed").await;
    lab.ended("failed too", "Failed").await;
    lab.looping("running", 2).await;
    lab.step("running", commit().in_execution(2).event(note(2))).await;
    for id in ["running too", "running as well"] {
        lab.begin(id).await;
    }
    let full = lab.ok("get_system_metrics", lab.admin().get_system_metrics().await);
    lab.same(
        "the totals (instances, running/completed/failed, executions, events)",
        totals(full),
        (6, [3, 1, 2], 7, 8),
    );
    let running = lab.admin().count_running_instances().await;
    let running = lab.ok("count_running_instances", running);
    lab.same("the running instances, counted for themselves (R8.141)", running, 3);
}

/// Depths count what is queued, due and not locked.
pub async fn test_get_queue_depths<F: ProviderFactory>(factory: &F) {
    let says =
        "get_queue_depths counts the unlocked rows of both queues, messages from when they are due";
    let lab = lab(factory, Promise { rule: "§6.7", says, section: SECTION }).await.patient();
    let depths = async || {
        let depths = lab.ok("get_queue_depths", lab.admin().get_queue_depths().await);
        let QueueDepths { orchestrator_queue, worker_queue, timer_queue } = depths;
        [orchestrator_queue, worker_queue, timer_queue]
    };
    let what = "the depths (messages, activities, timers)";
    lab.same(what, depths().await, [0, 0, 0]);
    lab.begin("a").await;
    lab.begin("b").await;
    lab.same(what, depths().await, [0, 0, 0]);
    for item in [raise("a", "x"), raise("a", "y"), raise("b", "x")] {
        lab.send(item).await;
    }
    lab.queue(activity("a", 2)).await;
    lab.queue(activity("a", 3)).await;
    lab.same(what, depths().await, [3, 2, 0]);
    // A timer that is not due waits for nobody.
    let later = Duration::from_secs(600);
    lab.send_later(timer_fired("b", 0), later).await;
    lab.same(what, depths().await, [3, 2, 0]);
    let (turn, job) = (lab.turn_of("a").await, lab.job().await);
    lab.same(what, depths().await, [1, 1, 0]);
    lab.committed(&turn, commit()).await;
    lab.ok("ack_work_item", lab.ack_work_item(&job.token, None).await);
    lab.same(what, depths().await, [1, 1, 0]);
    // What was given back for a while still waits to be done.
    let (turn, job) = (lab.turn_of("b").await, lab.job().await);
    lab.same(what, depths().await, [0, 0, 0]);
    let given_back = lab.abandon_orchestration_item(&turn.token, Some(later), false).await;
    lab.ok("abandon_orchestration_item", given_back);
    let given_back = lab.abandon_work_item(&job.token, Some(later), false).await;
    lab.ok("abandon_work_item", given_back);
    lab.same(what, depths().await, [1, 1, 0]);
}

/// There are no statistics of what is not there.
pub async fn test_get_instance_stats_nonexistent<F: ProviderFactory>(factory: &F) {
    let says = "an unknown instance has no statistics, and asking is no error";
    let lab = lab(factory, Promise { rule: "R6.41", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    let stats = lab.ok("get_instance_stats", lab.get_instance_stats("?").await);
    lab.same("the statistics", stats, None);
    lab.send(start("queued")).await;
    let stats = lab.ok("get_instance_stats", lab.get_instance_stats("queued").await);
    lab.same("the statistics of an instance that is only queued", stats, None);
}

/// Statistics give length and size of the current execution's history.
pub async fn test_get_instance_stats_history<F: ProviderFactory>(factory: &F) {
    let says = "statistics give length and size of the current execution's history";
    let lab = lab(factory, Promise { rule: "R8.116", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    let small = lab.stats("a").await;
    lab.same("the number of events", small.history_event_count, 1);
    lab.expect(0 < small.history_size_bytes, "a size", small.history_size_bytes);
    let values = (small.kv_user_key_count, small.kv_total_value_bytes);
    lab.same("keys and bytes without values", values, (0, 0));

    let text = "x".repeat(10_000);
    let big = EventKind::ExternalEvent { name: "n".into(), data: text };
    lab.step("a", commit().event(event(2, big)).event(note(3))).await;
    let large = lab.stats("a").await;
    lab.same("the number of events", large.history_event_count, 3);
    let growth = large.history_size_bytes.saturating_sub(small.history_size_bytes);
    lab.expect(10_000 <= growth, "10000 bytes of data to make the history as much larger", growth);

    lab.continue_as_new("a", 2, commit().event(started("a"))).await;
    let next = lab.stats("a").await;
    lab.same("the number of events of the next execution", next.history_event_count, 1);
    lab.expect(next.history_size_bytes < 10_000, "a small size", next.history_size_bytes);
}

/// Statistics count keys and bytes of values exactly.
pub async fn test_get_instance_stats_kv<F: ProviderFactory>(factory: &F) {
    let says = "statistics count keys and bytes of values exactly";
    let lab = lab(factory, Promise { rule: "R8.116", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    let values = commit().event(set(2, "long key", "12345")).event(set(3, "k", "äß"));
    lab.step("a", values.event(set(4, "empty", "")).ends("Completed", "out")).await;
    let stats = lab.stats("a").await;
    lab.same("the number of keys", stats.kv_user_key_count, 3);
    lab.same("the bytes of values", stats.kv_total_value_bytes, 5 + 4);
}

/// Pending messages are those that the current execution's start carried over.
pub async fn test_get_instance_stats_carry_forward<F: ProviderFactory>(factory: &F) {
    let says = "queue_pending_count is the number of messages that the start event carried over";
    let lab = lab(factory, Promise { rule: "R6.42", says, section: SECTION }).await.patient();
    let carrying = |names: &[&str]| {
        let mut event = started("a");
        if let EventKind::OrchestrationStarted { carry_forward_events, .. } = &mut event.kind {
            let pairs = names.iter().map(|name| ((*name).to_owned(), "data".to_owned()));
            *carry_forward_events = Some(pairs.collect());
        }
        commit().event(event)
    };
    lab.begin("a").await;
    let first = lab.stats("a").await;
    lab.same("the count of a first execution", first.queue_pending_count, 0);
    lab.continue_as_new("a", 2, carrying(&["q", "q", "r"])).await;
    lab.send(queue_message("a", "later")).await;
    let second = lab.stats("a").await;
    lab.same("the count after three were carried over", second.queue_pending_count, 3);
    lab.continue_as_new("a", 3, carrying(&["q"])).await;
    let third = lab.stats("a").await;
    lab.same("the count of the next execution", third.queue_pending_count, 1);
}

/// Statistics see what the running execution wrote.
pub async fn test_get_instance_stats_kv_delta_only<F: ProviderFactory>(factory: &F) {
    let says = "statistics count the values of an execution that still runs";
    let lab = lab(factory, Promise { rule: "R8.116", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.step("a", commit().event(set(2, "k1", "abc")).event(set(3, "k2", "defg"))).await;
    let stats = lab.stats("a").await;
    let counted = (stats.kv_user_key_count, stats.kv_total_value_bytes);
    lab.same("keys and bytes", counted, (2, 7));
    lab.step("a", commit().event(clear(4, "k1"))).await;
    let stats = lab.stats("a").await;
    let counted = (stats.kv_user_key_count, stats.kv_total_value_bytes);
    lab.same("keys and bytes after one was cleared", counted, (1, 4));
}

/// A key that was written again is counted once.
pub async fn test_get_instance_stats_kv_merged<F: ProviderFactory>(factory: &F) {
    let says = "a key that a later execution overwrites or clears is counted as it is seen outside";
    let lab = lab(factory, Promise { rule: "R8.116", says, section: SECTION }).await.patient();
    let counted = async || {
        let stats = lab.stats("a").await;
        (stats.kv_user_key_count, stats.kv_total_value_bytes)
    };
    lab.begin("a").await;
    let values = commit().event(set(2, "k1", "abc")).event(set(3, "k2", "defg"));
    lab.step("a", values.event(set(4, "k3", "hi"))).await;
    lab.continue_as_new("a", 2, commit().event(started("a"))).await;
    lab.same("keys and bytes of the first execution", counted().await, (3, 9));
    let changes = commit().in_execution(2).event(set(2, "k1", "longer")).event(clear(3, "k3"));
    lab.step("a", changes).await;
    lab.same("keys and bytes while the second runs", counted().await, (2, 10));
    lab.step("a", commit().in_execution(2).ends("Completed", "out")).await;
    lab.same("keys and bytes after the second ended", counted().await, (2, 10));
}
