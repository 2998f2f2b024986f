//! The smallest workflow: one activity, awaited.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let activities = ActivityRegistry::builder()
        .register("Greet", |_ctx: ActivityContext, name: String| async move {
            Ok(format!("Hello, {name}!"))
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("HelloWorld", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity("Greet", name).await
        })
        .build();

    // Gone at the end. To keep it: `SqliteProvider::new("sqlite:hello.db?mode=rwc", None)`.
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;

    let client = Client::new(store);
    client.start_orchestration("hello-1", "HelloWorld", "world").await?;
    let status = client.wait_for_orchestration("hello-1", Duration::from_secs(5)).await?;

    let OrchestrationStatus::Completed { output, .. } = status else {
        return Err(format!("unexpected: {status:?}").into());
    };
    println!("{output}");
    assert_eq!(output, "Hello, world!");
    runtime.shutdown(None).await;
    Ok(())
}
