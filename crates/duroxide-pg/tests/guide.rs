//! The statements of the guide do what it says, on a server of their own.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::Provider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
};
use duroxide_pg::{MigrationPolicy, PgError, PostgresProvider, ProviderConfig};
use duroxide_pg_testserver::{Options, Server};

const GUIDE: &str = include_str!("../../../docs/guide/postgres.md");

/// The block of SQL that has these words in it.
fn block(words: &str) -> &'static str {
    let mut blocks = GUIDE.split("```sql\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.find(|block| block.contains(words)).unwrap()
}

fn url(server: &Server, user: &str) -> String {
    format!("postgres://{user}:secret@127.0.0.1:{}/app", server.port())
}

async fn hello(store: Arc<dyn Provider>) {
    let echo = |_: ActivityContext, input: String| async move { Ok(input) };
    let activities = ActivityRegistry::builder().register("Echo", echo).build();
    let hello = |ctx: OrchestrationContext, input: String| async move {
        ctx.set_kv_value("key", "value");
        ctx.schedule_timer(Duration::from_millis(1)).await;
        ctx.schedule_activity_on_session("Echo", input, "session").await
    };
    let orchestrations = OrchestrationRegistry::builder().register("Hello", hello).build();
    let runtime = Runtime::start_with_store(Arc::clone(&store), activities, orchestrations).await;
    let client = Client::new(store);
    client.start_orchestration("hello", "Hello", "hello").await.unwrap();
    let end = client.wait_for_orchestration("hello", Duration::from_secs(10)).await.unwrap();
    assert!(matches!(end, OrchestrationStatus::Completed { .. }), "{end:?}");
    client.delete_instance("hello", false).await.unwrap();
    runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_with_the_grants_of_the_guide_can_work() {
    let options = Options { durable: false, ..Options::default() };
    let Some(server) = Server::start(&options).unwrap() else { return };
    server.psql("postgres", "CREATE DATABASE app").unwrap();
    let (roles, grants) = block("GRANT USAGE ON SCHEMA").split_once("-- After").unwrap();
    server.psql("app", &roles.replace('…', "secret")).unwrap();
    let mut config = ProviderConfig::new(url(&server, "duroxide_app"));
    config.migrations = MigrationPolicy::Verify;
    let refused = PostgresProvider::new_with_config(config.clone()).await.unwrap_err();
    assert!(matches!(refused, PgError::OldSchema { found: 0, .. }), "{refused}");
    drop(PostgresProvider::new(&url(&server, "duroxide_owner")).await.unwrap());
    let (_, grants) = grants.split_once('\n').unwrap();
    server.psql("app", grants).unwrap();
    let store = PostgresProvider::new_with_config(config).await.unwrap();
    hello(Arc::new(store)).await;
    for statement in block("SELECT kind, state").split(";\n") {
        server.psql("app", &format!("SET search_path = duroxide; {statement}")).unwrap();
    }
}
