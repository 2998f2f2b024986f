//! New code while instances run: each execution stays on the version it began with, new ones take
//! the newest, and continue-as-new moves a running instance over.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::Provider;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{Client, OrchestrationContext, OrchestrationRegistry, OrchestrationRegistryBuilder};

const PATIENCE: Duration = Duration::from_secs(5);

/// The old code.
async fn subscription_v1(ctx: OrchestrationContext, customer: String) -> Result<String, String> {
    ctx.set_custom_status("active");
    match ctx.dequeue_event("mail").await.as_str() {
        "renew" => ctx.continue_as_new(customer).await,
        _ => Ok(format!("{customer} left, on paper")),
    }
}

/// The new code. It waits for a timer first: replaying an old history with it would fail.
async fn subscription_v2(ctx: OrchestrationContext, customer: String) -> Result<String, String> {
    ctx.schedule_timer(Duration::from_millis(10)).await;
    ctx.set_custom_status("active");
    match ctx.dequeue_event("mail").await.as_str() {
        "renew" => ctx.continue_as_new(customer).await,
        _ => Ok(format!("{customer} left, online")),
    }
}

async fn deploy(
    store: &Arc<SqliteProvider>,
    orchestrations: OrchestrationRegistryBuilder,
) -> Arc<Runtime> {
    let store: Arc<dyn Provider> = store.clone();
    let activities = ActivityRegistry::builder().build();
    Runtime::start_with_store(store, activities, orchestrations.build()).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let client = Client::new(store.clone());
    let v1 =
        || OrchestrationRegistry::builder().register_versioned("Sub", "1.0.0", subscription_v1);

    // Two customers subscribe while there is only version 1.
    let runtime = deploy(&store, v1()).await;
    for customer in ["Ada", "Bob"] {
        client.start_orchestration(customer, "Sub", customer).await?;
        client.wait_for_status_change(customer, 0, PATIENCE, PATIENCE).await?;
    }
    runtime.shutdown(None).await;

    // The next deployment knows both; new executions take the newest.
    let both = v1().register_versioned("Sub", "2.0.0", subscription_v2);
    let runtime = deploy(&store, both).await;
    client.start_orchestration("Cleo", "Sub", "Cleo").await?;
    client.wait_for_status_change("Cleo", 0, PATIENCE, PATIENCE).await?;
    client.enqueue_event("Bob", "mail", "renew").await?;

    let expected = [
        ("Ada", "Ada left, on paper", "began on 1.0.0, stayed there"),
        ("Bob", "Bob left, online", "renewed, so the next execution took 2.0.0"),
        ("Cleo", "Cleo left, online", "began on 2.0.0"),
    ];
    for (customer, expected, story) in expected {
        client.enqueue_event(customer, "mail", "quit").await?;
        let output: String = client.wait_for_orchestration_typed(customer, PATIENCE).await??;
        println!("{output} ({story})");
        assert_eq!(output, expected);
    }
    runtime.shutdown(None).await;
    Ok(())
}
