//! An instance without an end: it takes commands from a queue, shows its state as status, and
//! starts afresh now and then, so that its history stays short.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus};
use serde::{Deserialize, Serialize};

const PATIENCE: Duration = Duration::from_secs(5);
const COMMANDS_PER_EXECUTION: usize = 3;

#[derive(Serialize, Deserialize)]
enum Command {
    Deposit(i64),
    Withdraw(i64),
    Close,
}

async fn account(ctx: OrchestrationContext, mut balance: i64) -> Result<String, String> {
    ctx.set_custom_status(format!("balance {balance}"));
    for _ in 0..COMMANDS_PER_EXECUTION {
        match ctx.dequeue_event_typed("commands").await {
            Command::Deposit(amount) => balance += amount,
            Command::Withdraw(amount) => balance -= amount,
            Command::Close => return Ok(format!("closed with {balance}")),
        }
        ctx.set_custom_status(format!("balance {balance}"));
    }
    // A new execution with an empty history. Commands that are still in the queue come along.
    ctx.continue_as_new_typed(&balance).await
}

/// Waits until the account shows this status.
async fn shows(client: &Client, expected: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut seen = 0;
    loop {
        match client.wait_for_status_change("account-7", seen, PATIENCE, PATIENCE).await? {
            OrchestrationStatus::Running { custom_status, custom_status_version } => {
                if custom_status.as_deref() == Some(expected) {
                    println!("{expected}");
                    return Ok(());
                }
                seen = custom_status_version;
            }
            other => return Err(format!("never showed {expected}: {other:?}").into()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let activities = ActivityRegistry::builder().build();
    let orchestrations =
        OrchestrationRegistry::builder().register_typed("Account", account).build();
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);

    client.start_orchestration_typed("account-7", "Account", 100).await?;
    shows(&client, "balance 100").await?;
    for amount in 1..=7 {
        client.enqueue_event_typed("account-7", "commands", &Command::Deposit(amount)).await?;
    }
    shows(&client, "balance 128").await?;
    client.enqueue_event_typed("account-7", "commands", &Command::Withdraw(28)).await?;
    client.enqueue_event_typed("account-7", "commands", &Command::Close).await?;

    let output: String = client.wait_for_orchestration_typed("account-7", PATIENCE).await??;
    let executions = client.list_executions("account-7").await?;
    println!("{output}, after {} executions", executions.len());
    assert_eq!(output, "closed with 100");
    // Nine commands, three an execution.
    assert_eq!(executions, [1, 2, 3]);
    runtime.shutdown(None).await;
    Ok(())
}
