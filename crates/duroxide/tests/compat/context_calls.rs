//! Every call on the orchestration context, with the result types callers name. Compiled, not run;
//! that it can be spawned proves that all of it is `Send`.

use std::time::{Duration, SystemTime};

use duroxide::{
    ActivityContext, BackoffStrategy, Client, DurableFuture, Either2, Either3,
    OrchestrationContext, RetryPolicy,
};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Order {
    id: u32,
}

type Text = Result<String, String>;

async fn activities(ctx: OrchestrationContext, name: String) -> Text {
    let order = Order { id: 1 };
    let plain: DurableFuture<Text> = ctx.schedule_activity("A", "in");
    let owned: DurableFuture<Text> = ctx.schedule_activity(name.clone(), name.clone());
    let borrowed: DurableFuture<Text> = ctx.schedule_activity(&name, &name);
    let typed: DurableFuture<Result<Order, String>> = ctx.schedule_activity_typed("A", &order);
    let by_turbofish = ctx.schedule_activity_typed::<Order, Vec<u8>>("A", &order);
    let session: DurableFuture<Text> = ctx.schedule_activity_on_session("A", "in", "s");
    let session_typed: DurableFuture<Result<Order, String>> =
        ctx.schedule_activity_on_session_typed("A", &order, name.clone());
    let tagged: DurableFuture<Text> = ctx.schedule_activity("A", "in").with_tag("gpu");
    let mapped: DurableFuture<usize> =
        ctx.schedule_activity("A", "in").map(|result| result.map_or(0, |text| text.len()));
    let timer: DurableFuture<()> = ctx.schedule_timer(Duration::from_secs(1));

    let policy = RetryPolicy::new(3)
        .with_backoff(BackoffStrategy::Fixed { delay: Duration::from_millis(5) })
        .with_timeout(Duration::from_secs(1));
    let retried: Text = ctx.schedule_activity_with_retry("A", "in", policy.clone()).await;
    let retried_typed: Result<Order, String> =
        ctx.schedule_activity_with_retry_typed("A", &order, policy.clone()).await;
    let retried_on: Text =
        ctx.schedule_activity_with_retry_on_session("A", "in", policy.clone(), "s").await;
    let retried_on_typed: Result<Order, String> =
        ctx.schedule_activity_with_retry_on_session_typed("A", &order, policy, "s").await;
    drop((retried, retried_typed?, retried_on, retried_on_typed?));

    plain.await?;
    owned.await?;
    borrowed.await?;
    let _: (Order, Vec<u8>, String, Order) =
        (typed.await?, by_turbofish.await?, session.await?, session_typed.await?);
    tagged.await?;
    let _: usize = mapped.await;
    timer.await;
    Ok(String::new())
}

async fn children_and_events(ctx: OrchestrationContext, _input: String) -> Text {
    let order = Order { id: 1 };
    let version = Some(String::from("2.0.0"));
    let _: String = ctx.schedule_sub_orchestration("C", "in").await?;
    let _: String = ctx.schedule_sub_orchestration_with_id("C", "c-1", "in").await?;
    let _: String = ctx.schedule_sub_orchestration_versioned("C", version.clone(), "in").await?;
    let _: String =
        ctx.schedule_sub_orchestration_versioned_with_id("C", version.clone(), "c-2", "in").await?;
    let _: Order = ctx.schedule_sub_orchestration_typed("C", &order).await?;
    let _: Order = ctx.schedule_sub_orchestration_with_id_typed("C", "c-3", &order).await?;
    let () = ctx.schedule_orchestration("O", "o-1", "in");
    let () = ctx.schedule_orchestration_typed("O", "o-2", &order);
    let () = ctx.schedule_orchestration_versioned("O", version.clone(), "o-3", "in");
    let () = ctx.schedule_orchestration_versioned_typed("O", version, "o-4", &order);

    let _: String = ctx.schedule_wait("Go").await;
    let _: Order = ctx.schedule_wait_typed::<Order>("Go").await;
    let _: String = ctx.dequeue_event("q").await;
    let _: Order = ctx.dequeue_event_typed("q").await;
    #[allow(deprecated)]
    {
        let _: String = ctx.schedule_wait_persistent("q").await;
        let _: Order = ctx.schedule_wait_persistent_typed::<Order>("q").await;
    }
    #[cfg(feature = "replay-version-test")]
    {
        let future: DurableFuture<String> = ctx.schedule_wait2("n", "t");
        let _: String = future.await;
    }
    ctx.continue_as_new("next").await
}

async fn races(ctx: OrchestrationContext, _input: String) -> Text {
    let timer = || ctx.schedule_timer(Duration::from_secs(1));
    let all: Vec<Text> = ctx.join(vec![ctx.schedule_activity("A", "1")]).await;
    let two: (Text, ()) = ctx.join2(ctx.schedule_activity("A", "1"), timer()).await;
    let three: ((), (), String) = ctx.join3(timer(), timer(), ctx.schedule_wait("Go")).await;
    match ctx.select2(ctx.schedule_activity("A", "1"), timer()).await {
        Either2::First(result) => drop(result),
        Either2::Second(()) => return Err("timeout".into()),
    }
    let won: Either3<Text, String, ()> =
        ctx.select3(ctx.schedule_activity("A", "1"), ctx.dequeue_event("q"), timer()).await;
    drop((all, two, three, won));
    ctx.continue_as_new_versioned("2.0.0", "next").await
}

async fn state_and_identity(ctx: OrchestrationContext, _input: String) -> Text {
    let order = Order { id: 1 };
    ctx.set_custom_status(format!("{}%", 50));
    ctx.set_kv_value("k", "v");
    ctx.set_kv_value_typed("o", &order);
    ctx.clear_kv_value(String::from("k"));
    let _: Option<Order> = ctx.get_kv_value_typed("o")?;
    let other: DurableFuture<Result<Option<String>, String>> =
        ctx.get_kv_value_from_instance("other", "k");
    let other_typed: DurableFuture<Result<Option<Order>, String>> =
        ctx.get_kv_value_from_instance_typed("other", "k");
    let _: (Option<String>, Option<Order>) = (other.await?, other_typed.await?);
    let _: String = ctx.new_guid().await?;
    let _: SystemTime = ctx.utc_now().await?;
    ctx.trace_info("m");
    ctx.trace_warn(String::from("m"));
    ctx.trace_error(format!("m{}", 1));
    ctx.trace_debug("m");
    ctx.trace("INFO", "m");
    ctx.continue_as_new_typed(&order).await
}

async fn activity(ctx: ActivityContext, _input: String) -> Text {
    ctx.trace_info("m");
    ctx.trace_warn(String::from("m"));
    ctx.trace_error("m");
    ctx.trace_debug("m");
    let token: CancellationToken = ctx.cancellation_token();
    let client: Client = ctx.get_client();
    tokio::select! {
        () = ctx.cancelled() => Err("cancelled".into()),
        () = token.cancelled() => Err("cancelled".into()),
        status = client.get_orchestration_status("i") => Ok(format!("{status:?}")),
    }
}

/// Orchestrations are spawned and moved between threads.
#[allow(dead_code)]
fn all_are_send(ctx: OrchestrationContext, activity_ctx: ActivityContext) {
    tokio::spawn(activities(ctx.clone(), String::new()));
    tokio::spawn(children_and_events(ctx.clone(), String::new()));
    tokio::spawn(races(ctx.clone(), String::new()));
    tokio::spawn(state_and_identity(ctx, String::new()));
    tokio::spawn(activity(activity_ctx, String::new()));
}

#[test]
fn they_can_be_registered() {
    let orchestrations = duroxide::OrchestrationRegistry::builder()
        .register("activities", activities)
        .register("children_and_events", children_and_events)
        .register("races", races)
        .register("state_and_identity", state_and_identity)
        .build_result();
    assert_eq!(orchestrations.map(|registry| registry.count()), Ok(4));
    let activities = duroxide::runtime::registry::ActivityRegistry::builder()
        .register("activity", activity)
        .build_result();
    assert_eq!(activities.map(|registry| registry.list_names()), Ok(vec!["activity".to_owned()]));
}
