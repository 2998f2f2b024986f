//! A store written from nothing, the one that `docs/guide/writing-a-provider.md` builds: plain
//! tables under one lock. Runs an orchestration on it, then every check of the validation suite;
//! with the argument `stress`, the stress harness instead.

mod store;
mod turns;
mod commit;
mod reads;
mod work;
mod sessions;
mod kv;
mod admin;
mod delete;
mod provider;
mod factory;
mod stress;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use duroxide::provider_validation::{Outcome, run_all_validations};
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};

use tracing_subscriber::filter::LevelFilter;

use factory::TableFactory;
use store::TableStore;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    // The checks provoke trouble on purpose, and the log would be full of it.
    tracing_subscriber::fmt().with_max_level(LevelFilter::OFF).init();
    println!("{}", greet_twice().await?);
    if std::env::args().nth(1).as_deref() == Some("stress") {
        stress::compare().await?;
        return Ok(ExitCode::SUCCESS);
    }
    let report = run_all_validations(&TableFactory::default()).await;
    for result in &report.results {
        if let Outcome::Skipped(why) = result.outcome {
            println!("skipped {}::{}: {why}", result.category, result.name);
        }
    }
    println!("{report}");
    Ok(if report.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// An orchestration with two activities and a timer, on a store of our own.
async fn greet_twice() -> Result<String, Box<dyn Error>> {
    let activities = ActivityRegistry::builder()
        .register("Greet", |_ctx: ActivityContext, name: String| async move {
            Ok(format!("Hello, {name}!"))
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("GreetTwice", |ctx: OrchestrationContext, name: String| async move {
            let first = ctx.schedule_activity("Greet", name).await?;
            ctx.schedule_timer(Duration::from_millis(100)).await;
            let second = ctx.schedule_activity("Greet", "again").await?;
            Ok(format!("{first} {second}"))
        })
        .build();

    let store = Arc::new(TableStore::new());
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);
    client.start_orchestration("greet-1", "GreetTwice", "world").await?;
    let output = client.wait_for_orchestration_typed("greet-1", Duration::from_secs(10)).await?;
    runtime.shutdown(None).await;
    Ok(output?)
}
