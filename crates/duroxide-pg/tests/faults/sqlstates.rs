//! Every SQLSTATE that may come of a transaction: tried again or not, but no orchestration fails of
//! it. A trigger raises them, a few times each.

use std::sync::Arc;
use std::time::Duration;

use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
};
use duroxide_fleet::short_leases;
use tokio_postgres::Client as Stranger;

use crate::support::{TestSchema, stranger};

const CODES: &str = "40001 40P01 55P03 57014 57P01 57P02 57P03 53100 53200 53300 0A000 25006 08006 \
                     23505 42501 58030 XX000";
/// Tables whose rows are written by starts, turns and activities.
const TABLES: [&str; 3] = ["message", "history", "work"];
/// A sequence is the only thing that counts also what is undone.
const TRIGGER: &str = "
    CREATE SEQUENCE raised;
    CREATE TABLE to_raise (code text, times bigint);
    CREATE FUNCTION raise() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        wanted to_raise;
    BEGIN
        SELECT * INTO wanted FROM to_raise;
        IF FOUND AND nextval('raised') <= wanted.times THEN
            RAISE EXCEPTION 'raised on purpose' USING ERRCODE = wanted.code;
        END IF;
        RETURN NEW;
    END $$;";

async fn runtime(store: Arc<duroxide_pg::PostgresProvider>) -> Arc<Runtime> {
    let echo = |_: ActivityContext, input: String| async move { Ok(input) };
    let activities = ActivityRegistry::builder().register("Echo", echo).build();
    let hello = |ctx: OrchestrationContext, input: String| async move {
        ctx.schedule_activity("Echo", input).await
    };
    let orchestrations = OrchestrationRegistry::builder().register("Hello", hello).build();
    Runtime::start_with_options(store, activities, orchestrations, short_leases()).await
}

/// Lets the next writes fail so often.
async fn raise(stranger: &Stranger, code: &str, times: i64) {
    stranger.batch_execute("DELETE FROM to_raise; ALTER SEQUENCE raised RESTART").await.unwrap();
    stranger.execute("INSERT INTO to_raise VALUES ($1, $2)", &[&code, &times]).await.unwrap();
}

/// Starts an instance, trying again where the store says that it may help.
async fn insist(client: &Client, id: &str) {
    while let Err(error) = client.start_orchestration(id, "Hello", "hello").await {
        assert!(error.is_retryable(), "{id}: {error}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

// R8.6, and the table in `error.rs`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_orchestration_fails_of_a_passing_error() {
    let Some(schema) = TestSchema::new() else { return };
    let store = Arc::new(schema.open().await);
    let stranger = stranger(&schema.config()).await;
    stranger.batch_execute(&format!("SET search_path = \"{}\"", schema.name())).await.unwrap();
    let trigger = TRIGGER.replace("to_raise;", &format!("\"{0}\".to_raise;", schema.name()));
    let trigger = trigger.replace("FROM to_raise", &format!("FROM \"{}\".to_raise", schema.name()));
    let trigger = trigger.replace("'raised'", &format!("'\"{}\".raised'", schema.name()));
    stranger.batch_execute(&trigger).await.unwrap();
    for table in TABLES {
        let on = format!(
            "CREATE TRIGGER raise BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION raise()"
        );
        stranger.batch_execute(&on).await.unwrap();
    }
    let runtime = runtime(Arc::clone(&store)).await;
    let client = Client::new(store);
    for code in CODES.split_whitespace() {
        raise(&stranger, code, 6).await;
        let ids: Vec<String> = (0..3).map(|number| format!("{code}-{number}")).collect();
        for id in &ids {
            insist(&client, id).await;
        }
        for id in &ids {
            let end = client.wait_for_orchestration(id, Duration::from_secs(20)).await;
            let is_right = matches!(&end, Ok(OrchestrationStatus::Completed { output, .. })
                if output == "hello");
            assert!(is_right, "{id}: {end:?}");
        }
        let raised = stranger.query_one("SELECT last_value FROM raised", &[]).await.unwrap();
        assert!(6 <= raised.get::<_, i64>(0), "{code} was not raised");
    }
    stranger.batch_execute("DELETE FROM to_raise").await.unwrap();
    runtime.shutdown(Some(1_000)).await;
    for table in TABLES {
        stranger.batch_execute(&format!("DROP TRIGGER raise ON {table}")).await.unwrap();
    }
    let clean = "DROP FUNCTION raise; DROP TABLE to_raise; DROP SEQUENCE raised";
    stranger.batch_execute(clean).await.unwrap();
}
