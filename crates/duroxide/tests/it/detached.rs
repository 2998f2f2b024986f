//! Orchestrations started without waiting for them, and children left behind by a successor.

use duroxide::OrchestrationContext;

use crate::support::{WorldBuilder, kinds, world};

async fn waits(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    Ok(ctx.schedule_wait("go").await)
}

fn family() -> WorldBuilder {
    world()
        .orchestration("Waits", waits)
        .orchestration("Echo", |_ctx, input| async move { Ok(format!("echo {input}")) })
}

#[tokio::test(start_paused = true)]
async fn r4_61_r4_63_detached_orchestrations_live_their_own_lives() {
    let world = family()
        .orchestration_version("Two", "2.0.0", |_ctx, input| async move { Ok(input) })
        .orchestration("Main", |ctx, input| async move {
            ctx.schedule_orchestration("Waits", "apart", "");
            ctx.schedule_orchestration_typed("Echo", "typed", &7);
            ctx.schedule_orchestration_versioned("Two", Some("2.0.0".into()), "two", "v");
            waits(ctx, input).await
        })
        .start()
        .await;
    world.begin("m", "Main", "").await;
    world.until_kind("apart", "ExternalSubscribed").await;
    world.client.cancel_instance("m", "x").await.unwrap();
    world.error("m").await;
    world.client.raise_event("apart", "go", "alive").await.unwrap();
    assert_eq!(world.output("apart").await, "alive");
    assert_eq!(world.output("typed").await, "echo 7");
    assert_eq!(world.output("two").await, "v");
    let info = world.client.get_instance_info("apart").await.unwrap();
    assert_eq!(info.parent_instance_id, None);
    assert_eq!(kinds(&world.history("m").await)[1], "OrchestrationChained"); // R2.46
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_62_a_reserved_detached_id_panics() {
    let world = family()
        .orchestration("Main", |ctx, _input| async move {
            ctx.schedule_orchestration("Echo", "x::sub::1", "");
            Ok(String::new())
        })
        .start()
        .await;
    let error = world.run_to_error("m", "Main", "").await.display_message();
    assert!(error.contains("uses the reserved sub-orchestration marker"), "{error}");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn l34_r3_111_a_turn_that_continues_starts_what_it_promised() {
    let world = family()
        .orchestration("Main", |ctx, input| async move {
            if !input.is_empty() {
                return Ok(input);
            }
            ctx.schedule_orchestration("Echo", "apart", "x");
            let _kept = ctx.schedule_sub_orchestration_with_id("Echo", "kept", "y");
            drop(ctx.schedule_sub_orchestration_with_id("Echo", "dropped", "z"));
            ctx.continue_as_new("second").await
        })
        .start()
        .await;
    world.begin("m", "Main", "").await;
    assert_eq!(world.output("m").await, "second");
    assert_eq!(world.output("apart").await, "echo x");
    assert_eq!(world.output("kept").await, "echo y");
    let store = world.settled().await; // The late result of `kept` is dropped as stale.
    assert!(!store.instances.contains_key("dropped"));
    world.finish().await;
}
