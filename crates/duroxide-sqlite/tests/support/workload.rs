//! Workflows with one of everything, and a runtime that runs them.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::providers::{Provider, TagFilter};
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    RuntimeOptions,
};

/// Longest a test waits for something that should happen at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Activities, a session, a tag, a timer, a child, key-value data, a status and a queue.
async fn main_workflow(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.set_custom_status("busy");
    ctx.set_kv_value("k", input.clone());
    let session = format!("session of {}", ctx.instance_id());
    let a = ctx.schedule_activity("A", input);
    let b = ctx.schedule_activity_on_session("A", "b", session);
    let c = ctx.schedule_activity("A", "c").with_tag("tagged");
    let abc = ctx.join(vec![a, b, c]).await;
    let abc: Vec<String> = abc.into_iter().collect::<Result<_, _>>()?;
    ctx.schedule_timer(Duration::from_millis(1)).await;
    let child = ctx.schedule_sub_orchestration("Child", abc.join(",")).await?;
    let message = ctx.dequeue_event("Q").await;
    Ok(format!("{child}+{message}"))
}

/// What `Main` answers to an input and a message in its queue `Q`.
pub(crate) fn answer(input: &str, message: &str) -> String {
    format!("child:A:{input},A:b,A:c+{message}")
}

/// Short pauses, everything taken, nothing logged.
pub(crate) fn options() -> RuntimeOptions {
    RuntimeOptions {
        dispatcher_min_poll_interval: Duration::from_millis(1),
        worker_tag_filter: TagFilter::Any,
        ..RuntimeOptions::default()
    }
}

/// A runtime that runs the workflows.
pub(crate) async fn runtime(store: Arc<dyn Provider>) -> Arc<Runtime> {
    runtime_with(store, options()).await
}

/// The same, with options.
pub(crate) async fn runtime_with(
    store: Arc<dyn Provider>,
    options: RuntimeOptions,
) -> Arc<Runtime> {
    let activities = ActivityRegistry::builder()
        .register(
            "A",
            |_ctx: ActivityContext, input: String| async move { Ok(format!("A:{input}")) },
        )
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Main", main_workflow)
        .register("Child", |_ctx, input: String| async move { Ok(format!("child:{input}")) })
        .register("Hello", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("A", input).await
        })
        .build();
    Runtime::start_with_options(store, activities, orchestrations, options).await
}

/// Starts `Main` and puts a message into its queue, however often that takes.
pub(crate) async fn begin(client: &Client, instance: &str) {
    insist(|| client.start_orchestration(instance, "Main", "x")).await;
    insist(|| client.enqueue_event(instance, "Q", "m")).await;
}

/// Waits until an instance ends, however often one has to ask.
pub(crate) async fn ended(client: &Client, instance: &str) -> OrchestrationStatus {
    insist(|| client.wait_for_orchestration(instance, PATIENCE)).await
}

/// Calls until it works. Errors are expected, but not for ever.
pub(crate) async fn insist<T, E, F>(call: impl Fn() -> F) -> T
where
    E: std::fmt::Display,
    F: Future<Output = Result<T, E>>,
{
    let began = Instant::now();
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(error) => assert!(began.elapsed() < PATIENCE, "still: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
