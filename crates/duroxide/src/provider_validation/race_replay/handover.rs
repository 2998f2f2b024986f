//! From one execution to the next: nothing that arrives in between is lost.

use duroxide_core::model::version::BUILD_VERSION;
use duroxide_core::model::{Event, EventKind};

use super::scene::{Scene, begun, scene, signal, start_as};
use crate::OrchestrationContext;
use crate::provider_validation::ProviderFactory;
use crate::provider_validation::words::*;

/// Continues as a version that may not be known here; that one reads two messages.
async fn upgrade(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.continue_as_new_versioned("2.0.0", "next").await
}

async fn read_two(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let first = ctx.dequeue_event("q").await;
    Ok(format!("{first} {}", ctx.dequeue_event("q").await))
}

/// Messages for a successor that nobody here can run wait until somebody can.
pub async fn test_continue_as_new_unregistered_backoff<F: ProviderFactory>(factory: &F) {
    let says = "messages that arrive while the successor's start is backed off are kept for it";
    let scene = scene(factory, ("R4.69", says), upgrade).await;
    let lab = &scene.lab;
    scene.batch([start("a")]).await;
    let first = scene.history("a").await;
    lab.expect(continued(&first), "an execution that ends by continuing as new", &first);
    scene.send(["one", "two"].map(|data| queue_message("a", data))).await;
    let running = scene.run().await;
    // Start and messages, together or apart, were given back more than once.
    let tried = async || running.turns_taken() >= 4;
    scene.until("a start nobody can run to be given back and taken again", tried).await;
    running.stop().await;
    lab.same("the history meanwhile", scene.history("a").await, first);

    let scene = scene.knows("Orch", "2.0.0", read_two);
    successor_comes_to(&scene, Ok("one two")).await;
    scene.replays(2, r#"Completed("one two")"#).await;
    let version = scene.execution(2).await.first().and_then(begun).map(|(_, version, _)| version);
    scene.lab.same("the version of the successor", version.as_deref(), Some("2.0.0"));
}

/// A successor that nobody can run fails as an execution of its own.
pub async fn test_continue_as_new_poisoned_successor_is_own_execution<F: ProviderFactory>(
    factory: &F,
) {
    let says = "a successor given up as poison fails as execution 2; execution 1 stays as it ended";
    // With its start in hand, and with another start that must not stand in for it.
    for (has_start, input) in [(true, "next"), (false, "")] {
        let mut scene = scene(factory, ("R7.75", says), upgrade).await;
        scene.options.max_attempts = 2;
        if has_start {
            scene.batch([start("a")]).await;
        } else {
            scene.between_executions(BUILD_VERSION).await;
            scene.send([start_as("Orch", "1.0.0", "again")]).await;
        }
        let lab = &scene.lab;
        let first = scene.execution(1).await;
        let outcome = scene.outcome("a").await;
        let poisoned = outcome.as_ref().is_err_and(|error| error.starts_with("poison"));
        lab.expect(poisoned, "the successor to fail as poison", outcome);
        lab.same("the first execution", scene.execution(1).await, first);
        let second = scene.execution(2).await;
        let start = second.first().and_then(begun).map(|(name, _, input)| (name, input));
        let expected = Some(("Orch".to_owned(), input.to_owned()));
        lab.same("name and input of the second", start, expected);
        let failed =
            second.len() == 2 && matches!(second[1].kind, EventKind::OrchestrationFailed { .. });
        lab.expect(failed, "the second execution to be a start and a failure", &second);
        for (execution, expected) in [(1, "ContinuedAsNew"), (2, "Failed")] {
            let info = lab.admin().get_execution_info("a", execution).await;
            let status = lab.ok("get_execution_info", info).status;
            lab.same(&format!("the status of execution {execution}"), status, expected);
        }
    }
}

/// Messages that come after one execution has ended and before the next has begun go to the next.
/// `stamp` is the version that ran the first.
pub async fn test_continue_as_new_transition_delivery<F: ProviderFactory>(
    factory: &F,
    stamp: &str,
) {
    let says = "what arrives between two executions is delivered to the second";
    let rule = ("R1.25", says);
    let messages = scene(factory, rule, read_two).await;
    messages.between_executions(stamp).await;
    // A signal, and a completion of the first execution that is late, between two messages.
    let gap =
        [queue_message("a", "one"), signal("s", "x"), done("a", 2), queue_message("a", "two")];
    messages.send(gap).await;
    begin_successor_late(&messages).await;
    successor_comes_to(&messages, Ok("one two")).await;
    messages.replays(2, r#"Completed("one two")"#).await;
    let second = messages.execution(2).await;
    let signal = EventKind::ExternalEvent { name: "s".into(), data: "x".into() };
    let kept = second.iter().any(|event| event.kind == signal);
    messages.lab.expect(kept, "the signal to be recorded by the second execution", &second);

    let cancelled = scene(factory, rule, read_two).await;
    cancelled.between_executions(stamp).await;
    cancelled.send([cancel("a")]).await;
    begin_successor_late(&cancelled).await;
    successor_comes_to(&cancelled, Err("canceled: because")).await;
}

/// Lets a runtime see the gap, more than once, before the successor's start arrives.
async fn begin_successor_late(scene: &Scene) {
    let first = scene.execution(1).await;
    let running = scene.run().await;
    let tried = async || running.turns_taken() >= 2;
    scene.until("messages in the gap to be given back and taken again", tried).await;
    running.stop().await;
    scene.lab.same("the history meanwhile", scene.history("a").await, first);
    scene.send([continue_as_new("a")]).await;
}

async fn successor_comes_to(scene: &Scene, expected: Result<&str, &str>) {
    let outcome = scene.outcome("a").await;
    let outcome = outcome.as_deref().map_err(String::as_str);
    scene.lab.same("what came of the successor", outcome, expected);
    scene.lab.same("the executions", executions(scene).await, [1, 2]);
}

async fn executions(scene: &Scene) -> Vec<u64> {
    let executions = scene.lab.admin().list_executions("a").await;
    scene.lab.ok("list_executions", executions)
}

fn continued(history: &[Event]) -> bool {
    let last = history.last().map(|event| &event.kind);
    matches!(last, Some(EventKind::OrchestrationContinuedAsNew { .. }))
}
