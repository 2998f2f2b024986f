//! A start that comes second starts nothing.

use duroxide_core::model::EventKind;
use duroxide_core::model::version::BUILD_VERSION;

use super::scene::{begun, scene, signal, start_as, start_as_child};
use crate::OrchestrationContext;
use crate::provider_validation::ProviderFactory;
use crate::provider_validation::words::*;

/// Starts after the first change neither handler nor version nor input, whenever they come.
pub async fn test_duplicate_start_preserves_pinned_handler<F: ProviderFactory>(factory: &F) {
    let says = "a start for an instance that exists changes neither its code nor its input";
    let scene = scene(factory, ("R1.51", says), |ctx, input| tell("the first", ctx, input))
        .await
        .knows("Orch", "2.0.0", |ctx, input| tell("a newer", ctx, input))
        .knows("Other", "1.0.0", |ctx, input| tell("another", ctx, input));
    let lab = &scene.lab;
    scene.batch([start("a")]).await;
    let again = [start_as("Other", "1.0.0", "other"), start_as("Orch", "2.0.0", "newer")];
    scene.send(again.clone()).await;
    let turn = lab.turn_of("a").await;
    lab.same("the fetched name", &turn.item.orchestration_name, "Orch");
    lab.same("the fetched version", &turn.item.version, "1.0.0");
    lab.abandon(&turn).await;
    scene.send([signal("go", "")]).await;
    let outcome = scene.outcome("a").await;
    lab.same("what came of the first start", outcome, Ok("the first: in".to_owned()));
    scene.replays(1, r#"Completed("the first: in")"#).await;

    let ended = scene.history("a").await;
    scene.send(again).await;
    let running = scene.run().await;
    scene
        .until("starts of an ended instance to be taken", async || running.turns_taken() > 0)
        .await;
    running.stop().await;
    lab.no_turn().await;
    lab.same("the history after more starts", scene.history("a").await, ended);
    let info = lab.ok("get_instance_info", lab.admin().get_instance_info("a").await);
    lab.same("the name", info.orchestration_name, "Orch");
    lab.same("the version", info.orchestration_version, "1.0.0");
    lab.same("the current execution", info.current_execution_id, 1);
}

async fn tell(who: &str, ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let told = format!("{who}: {input}");
    ctx.schedule_wait("go").await;
    Ok(told)
}

/// Between two executions the successor's start counts, whatever other starts are there, and the
/// parent behind one of those hears of it.
pub async fn test_continue_as_new_duplicate_start<F: ProviderFactory>(factory: &F) {
    let says = "of the starts in one batch the successor's counts, in whatever order they came";
    for successor_first in [false, true] {
        let scene = scene(factory, ("R1.51", says), parent_or_successor).await;
        let lab = &scene.lab;
        let child = EventKind::SubOrchestrationScheduled {
            name: "Orch".into(),
            instance: "a".into(),
            input: "child".into(),
        };
        lab.begin_as("p", first_commit("p").event(event(2, child))).await;
        scene.between_executions(BUILD_VERSION).await;
        let mut starts =
            [start_as("Orch", "1.0.0", "again"), start_as_child(), continue_as_new("a")];
        if successor_first {
            starts.reverse();
        }
        scene.send(starts).await;
        let outcome = scene.outcome("a").await;
        lab.same("what the successor made of its input", outcome, Ok("ran on next".to_owned()));
        let told = Ok("sub-orchestration instance id 'a' already exists".to_owned());
        lab.same("what the parent of the other start is told", scene.outcome("p").await, told);
        lab.same("the events of the first execution", scene.execution(1).await.len(), 2);
        let start = scene.execution(2).await.first().and_then(begun);
        let expected = ["Orch", "1.0.0", "next"].map(str::to_owned).into();
        lab.same("the start of the second", start, Some(expected));
    }
}

async fn parent_or_successor(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    if input != "in" {
        return Ok(format!("ran on {input}"));
    }
    let child = ctx.schedule_sub_orchestration_with_id("Orch", "a", "child").await;
    Ok(child.unwrap_or_else(|error| error))
}
