//! One of everything.

use std::time::Duration;

use duroxide::providers::ProviderError;

use crate::support::faults::{Fault, Faults, FaultyProvider, busy};
use crate::support::{kinds, world};

#[tokio::test]
async fn one_of_everything() {
    let world = world()
        .echo("A")
        .orchestration("Child", |_ctx, input| async move { Ok(format!("child:{input}")) })
        .orchestration("Main", |ctx, input| async move {
            ctx.set_custom_status("busy");
            ctx.set_kv_value("k", "v");
            let guid = ctx.new_guid().await?;
            let a = ctx.schedule_activity("A", input).await?;
            ctx.schedule_timer(Duration::from_millis(10)).await;
            let child = ctx.schedule_sub_orchestration("Child", a).await?;
            let event = ctx.schedule_wait("Go").await;
            assert_eq!(guid.len(), 36);
            Ok(format!("{child}+{event}"))
        })
        .start()
        .await;
    world.begin("m", "Main", "x").await;
    world
        .until("m", |history| {
            kinds(history).last().is_some_and(|kind| kind == "ExternalSubscribed")
        })
        .await;
    world.client.raise_event("m", "Go", "now").await.unwrap();
    assert_eq!(world.output("m").await, "child:A:x+now");
    world.finish().await;
}

#[tokio::test]
async fn a_third_party_store_that_stumbles() {
    let faults = Faults::default();
    let world = world()
        .echo("A")
        .orchestration("Main", |ctx, input| async move { ctx.schedule_activity("A", input).await })
        .through(|store| FaultyProvider::wrap(store, &faults))
        .start()
        .await;
    faults.next("ack_orchestration_item", [busy(), busy()]);
    faults.next("ack_work_item", [Fault::After(ProviderError::retryable("t", "lost answer"))]);
    assert_eq!(world.run("m", "Main", "x").await, "A:x");
    assert_eq!(faults.fired(), 3);
    world.finish().await;
}
