//! Many activities at once: schedule them all, then wait for all of them.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};

const PAGES: [&str; 4] = [
    "the quick brown fox",
    "jumps over the lazy dog",
    "and runs",
    "until it finds the end of the page",
];

/// One page: the work that is spread over workers, on any number of machines.
async fn count_words(_ctx: ActivityContext, page: String) -> Result<usize, String> {
    Ok(page.split_whitespace().count())
}

/// The book: asks for all pages before it waits for any, then adds up.
async fn count_book(ctx: OrchestrationContext, pages: Vec<String>) -> Result<usize, String> {
    let counts = pages.iter().map(|page| ctx.schedule_activity_typed("CountWords", page)).collect();
    // One result per page, in the order of the pages, whichever worker was fastest.
    let counts: Result<Vec<usize>, String> = ctx.join(counts).await.into_iter().collect();
    Ok(counts?.into_iter().sum())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let activities = ActivityRegistry::builder().register_typed("CountWords", count_words).build();
    let orchestrations =
        OrchestrationRegistry::builder().register_typed("CountBook", count_book).build();
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;

    let client = Client::new(store);
    client.start_orchestration_typed("book-1", "CountBook", PAGES).await?;
    let words: usize =
        client.wait_for_orchestration_typed("book-1", Duration::from_secs(5)).await??;

    println!("{words} words on {} pages", PAGES.len());
    assert_eq!(words, 19);
    runtime.shutdown(None).await;
    Ok(())
}
