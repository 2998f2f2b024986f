//! What orchestration code holds, from the core, with examples that need a runtime.

#[doc(hidden)]
pub use duroxide_core::context::CompletionResult;
pub use duroxide_core::context::{
    ContinuingAsNew, Either2, Either3, RetryingActivity, ScheduleKind,
};

/// The handle through which an orchestration does anything durable.
///
/// # Activities, timers, children
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// # use duroxide::{*, providers::memory::MemoryProvider};
/// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
/// async fn order(ctx: OrchestrationContext, item: String) -> Result<String, String> {
///     // One after the other...
///     let price = ctx.schedule_activity("Price", item.as_str()).await?;
///     ctx.schedule_timer(Duration::from_millis(10)).await;
///
///     // ... or all at once: scheduled here, awaited below.
///     let parcels = ["book", "invoice"].map(|what| ctx.schedule_activity("Pack", what));
///     let parcels: Result<Vec<String>, String> =
///         ctx.join(parcels.into_iter().collect()).await.into_iter().collect();
///
///     // Another orchestration: its own history, its own retries, cancelled with its parent.
///     let tour = ctx.schedule_sub_orchestration("Deliver", parcels?.join(" and ")).await?;
///     Ok(format!("{tour}, for {price}"))
/// }
///
/// async fn deliver(_ctx: OrchestrationContext, parcels: String) -> Result<String, String> {
///     Ok(format!("delivered {parcels}"))
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// #     let activities = ActivityRegistry::builder()
/// #         .register("Price", |_ctx, _item| async move { Ok("9 euros".into()) })
/// #         .register("Pack", |_ctx, what| async move { Ok(what) })
/// #         .build();
/// #     let orchestrations = OrchestrationRegistry::builder()
/// #         .register("Order", order)
/// #         .register("Deliver", deliver)
/// #         .build();
/// #     let store = Arc::new(MemoryProvider::new());
/// #     let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
/// #     let client = Client::new(store);
/// #     client.start_orchestration("o", "Order", "book").await?;
/// #     let output: String =
/// #         client.wait_for_orchestration_typed("o", Duration::from_secs(5)).await??;
/// #     assert_eq!(output, "delivered book and invoice, for 9 euros");
/// #     runtime.shutdown(None).await;
/// #     Ok(())
/// # }
/// ```
///
/// # Events, races, retries
///
/// An external event reaches whoever waits for it at that moment. The loser of a race is dropped,
/// which cancels it.
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// # use duroxide::{*, providers::memory::MemoryProvider};
/// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
/// async fn payment(ctx: OrchestrationContext, amount: String) -> Result<String, String> {
///     ctx.set_custom_status("who approves?");
///     let approval = ctx.schedule_wait("Approval");
///     let deadline = ctx.schedule_timer(Duration::from_secs(24 * 3600));
///     let by = match ctx.select2(approval, deadline).await {
///         Either2::First(by) => by,
///         Either2::Second(()) => return Err("nobody approved in time".into()),
///     };
///     let policy = RetryPolicy::new(3)
///         .with_backoff(BackoffStrategy::Fixed { delay: Duration::from_millis(5) })
///         .with_timeout(Duration::from_secs(30));
///     let receipt = ctx.schedule_activity_with_retry("Pay", amount, policy).await?;
///     Ok(format!("{receipt}, approved by {by}"))
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// #     let tries = std::sync::atomic::AtomicUsize::new(0);
/// #     let activities = ActivityRegistry::builder()
/// #         .register("Pay", move |_ctx, amount| {
/// #             let attempt = tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
/// #             async move { if attempt < 2 { Err("busy".into()) } else { Ok(format!("paid {amount}")) } }
/// #         })
/// #         .build();
/// #     let orchestrations = OrchestrationRegistry::builder().register("Payment", payment).build();
/// #     let store = Arc::new(MemoryProvider::new());
/// #     let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
/// #     let client = Client::new(store);
/// #     let patience = Duration::from_secs(5);
/// #     client.start_orchestration("p", "Payment", "9").await?;
/// #     client.wait_for_status_change("p", 0, patience, patience).await?;
/// #     client.raise_event("p", "Approval", "Ada").await?;
/// #     let output: String = client.wait_for_orchestration_typed("p", patience).await??;
/// #     assert_eq!(output, "paid 9, approved by Ada");
/// #     runtime.shutdown(None).await;
/// #     Ok(())
/// # }
/// ```
///
/// # Queues, state, many executions
///
/// Messages of a queue wait until they are read, also over
/// [`continue_as_new`](OrchestrationContext::continue_as_new). Key-value pairs belong to the
/// instance, outlive its executions and can be read from outside.
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// # use duroxide::{*, providers::memory::MemoryProvider};
/// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
/// async fn counter(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
///     let count: u64 = ctx.get_kv_value_typed("count")?.unwrap_or(0);
///     ctx.set_custom_status(format!("at {count}"));
///     match ctx.dequeue_event("commands").await.as_str() {
///         "add" => {
///             ctx.set_kv_value_typed("count", &(count + 1));
///             ctx.continue_as_new("").await // Ends this execution; the next begins.
///         }
///         _ => Ok(count.to_string()),
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// #     let activities = ActivityRegistry::builder().build();
/// #     let orchestrations = OrchestrationRegistry::builder().register("Counter", counter).build();
/// #     let store = Arc::new(MemoryProvider::new());
/// #     let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
/// #     let client = Client::new(store);
/// #     let patience = Duration::from_secs(5);
/// #     client.start_orchestration("c", "Counter", "").await?;
/// #     client.wait_for_status_change("c", 0, patience, patience).await?;
/// #     for command in ["add", "add", "add", "stop"] {
/// #         client.enqueue_event("c", "commands", command).await?;
/// #     }
/// #     let output: String = client.wait_for_orchestration_typed("c", patience).await??;
/// #     assert_eq!(output, "3");
/// #     assert_eq!(client.get_kv_value("c", "count").await?.as_deref(), Some("3"));
/// #     assert_eq!(client.list_executions("c").await?.len(), 4);
/// #     runtime.shutdown(None).await;
/// #     Ok(())
/// # }
/// ```
pub use duroxide_core::context::OrchestrationContext;

/// What scheduling returns: a future like any other, whose work is recorded.
///
/// The work is asked for by the call that makes the future, not by awaiting it. Futures may be kept,
/// boxed, borrowed, passed to helpers and raced.
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// # use duroxide::{*, providers::memory::MemoryProvider};
/// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
/// # use duroxide::providers::TagFilter;
/// async fn render(ctx: OrchestrationContext, scene: String) -> Result<String, String> {
///     // Only workers that accept the tag take it.
///     let image: DurableFuture<Result<String, String>> =
///         ctx.schedule_activity("Render", scene).with_tag("gpu");
///     // Still the same activity, with another value.
///     let mut size: DurableFuture<usize> = image.map(|image| image.map_or(0, |i| i.len()));
///
///     let mut reminders = 0;
///     loop {
///         let mut reminder = ctx.schedule_timer(Duration::from_secs(3600));
///         tokio::select! {
///             biased; // The order of polls has to be the same every time.
///             size = &mut size => return Ok(format!("{size} bytes, {reminders} reminders")),
///             () = &mut reminder => reminders += 1,
///         }
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// #     let activities = ActivityRegistry::builder()
/// #         .register("Render", |_ctx, scene| async move { Ok(scene) })
/// #         .build();
/// #     let orchestrations = OrchestrationRegistry::builder().register("Render", render).build();
/// #     let store = Arc::new(MemoryProvider::new());
/// #     let options = RuntimeOptions { worker_tag_filter: TagFilter::tags(["gpu"]), ..Default::default() };
/// #     let runtime =
/// #         Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
/// #     let client = Client::new(store);
/// #     client.start_orchestration("r", "Render", "teapot").await?;
/// #     let output: String =
/// #         client.wait_for_orchestration_typed("r", Duration::from_secs(5)).await??;
/// #     assert_eq!(output, "6 bytes, 0 reminders");
/// #     runtime.shutdown(None).await;
/// #     Ok(())
/// # }
/// ```
pub use duroxide_core::context::DurableFuture;
