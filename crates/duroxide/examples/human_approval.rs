//! Waiting for a human, but not for ever: an external event races a durable timer.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{Client, Either2, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus};
use serde::{Deserialize, Serialize};

const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Serialize, Deserialize)]
struct Request {
    euros: u32,
    answer_within: Duration,
}

#[derive(Serialize, Deserialize)]
struct Decision {
    approved: bool,
    by: String,
}

async fn expense(ctx: OrchestrationContext, request: Request) -> Result<String, String> {
    // Status and wait are stored together: whoever sees the one can answer the other.
    ctx.set_custom_status(format!("{} euros, who approves?", request.euros));
    let decision = ctx.schedule_wait_typed::<Decision>("Decision");
    let deadline = ctx.schedule_timer(request.answer_within);

    // The loser is dropped, and with it the wait or the timer.
    Ok(match ctx.select2(decision, deadline).await {
        Either2::First(Decision { approved: true, by }) => format!("approved by {by}"),
        Either2::First(Decision { approved: false, by }) => format!("refused by {by}"),
        Either2::Second(()) => "nobody answered, passed on to the board".to_owned(),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let activities = ActivityRegistry::builder().build();
    let orchestrations =
        OrchestrationRegistry::builder().register_typed("Expense", expense).build();
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);

    // Somebody answers in time.
    let dinner = Request { euros: 80, answer_within: Duration::from_secs(24 * 3600) };
    client.start_orchestration_typed("dinner", "Expense", dinner).await?;
    let status = client.wait_for_status_change("dinner", 0, PATIENCE, PATIENCE).await?;
    if let OrchestrationStatus::Running { custom_status: Some(question), .. } = status {
        println!("dinner: {question}");
    }
    let decision = Decision { approved: true, by: "Ada".to_owned() };
    client.raise_event_typed("dinner", "Decision", &decision).await?;
    let outcome: String = client.wait_for_orchestration_typed("dinner", PATIENCE).await??;
    println!("dinner: {outcome}");
    assert_eq!(outcome, "approved by Ada");

    // Nobody does.
    let yacht = Request { euros: 900_000, answer_within: Duration::from_millis(50) };
    client.start_orchestration_typed("yacht", "Expense", yacht).await?;
    let outcome: String = client.wait_for_orchestration_typed("yacht", PATIENCE).await??;
    println!("yacht: {outcome}");
    assert_eq!(outcome, "nobody answered, passed on to the board");

    runtime.shutdown(None).await;
    Ok(())
}
