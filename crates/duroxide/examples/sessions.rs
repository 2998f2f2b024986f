//! State in a worker's memory: all activities of a session go to the node that holds the session.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::Provider;
use duroxide::providers::memory::MemoryProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
};
use tokio::sync::Mutex;

const MOVES: [&str; 4] = ["e4", "Nf3", "Bb5", "O-O"];

/// A game. Its board is too big to be passed along with every move, so it stays with one node.
async fn game(ctx: OrchestrationContext, _input: String) -> Result<Vec<String>, String> {
    let session = ctx.instance_id();
    let mut answers = Vec::new();
    for next in MOVES {
        answers.push(ctx.schedule_activity_on_session("Play", next, session.as_str()).await?);
    }
    Ok(answers)
}

/// One machine: a runtime with boards in memory, by session.
async fn node(name: &'static str, store: Arc<dyn Provider>) -> Arc<Runtime> {
    let boards: Arc<Mutex<HashMap<String, Vec<String>>>> = Arc::default();
    let activities = ActivityRegistry::builder()
        .register("Play", move |ctx: ActivityContext, next: String| {
            let boards = Arc::clone(&boards);
            async move {
                let session = ctx.session_id().ok_or("not on a session")?.to_owned();
                let mut boards = boards.lock().await;
                let board = boards.entry(session).or_default();
                board.push(next);
                Ok(format!("{name}: {}", board.join(" ")))
            }
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register_typed("Game", game).build();
    // A stable name: all slots of this node share its sessions.
    let options = RuntimeOptions { worker_node_id: Some(name.to_owned()), ..Default::default() };
    Runtime::start_with_options(store, activities, orchestrations, options).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Arc::new(MemoryProvider::new());
    let nodes = [node("node-a", store.clone()).await, node("node-b", store.clone()).await];
    let client = Client::new(store);

    let games = ["game-1", "game-2", "game-3", "game-4"];
    for game in games {
        client.start_orchestration(game, "Game", "").await?;
    }
    for game in games {
        let answers: Vec<String> =
            client.wait_for_orchestration_typed(game, Duration::from_secs(5)).await??;
        let last = answers.last().ok_or("no move was played")?;
        println!("{game} on {last}");
        // Every move found the board that the moves before had left: all were played by one node.
        assert!(last.ends_with(": e4 Nf3 Bb5 O-O"), "{answers:?}");
    }
    for node in nodes {
        node.shutdown(None).await;
    }
    Ok(())
}
