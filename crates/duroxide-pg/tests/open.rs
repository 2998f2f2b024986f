//! Opening a store: schemas made, found, refused; settings that make no sense; passwords.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use duroxide::providers::{Provider, ProviderAdmin, TagFilter, WorkItem};
use duroxide_pg::{MigrationPolicy, PasswordSource, PgError, PostgresProvider, ProviderConfig};
use support::{TestSchema, stranger};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn many_nodes_may_make_one_schema_at_once() {
    let Some(schema) = TestSchema::new() else { return };
    let open = |_| {
        let config = schema.config();
        tokio::spawn(async move { PostgresProvider::new_with_config(config).await.unwrap() })
    };
    for node in (0..10).map(open).collect::<Vec<_>>() {
        assert_eq!(node.await.unwrap().list_instances().await, Ok(vec![]));
    }
    let count = "SELECT count(*), max(version)::bigint FROM migration";
    let row = stranger(&schema.config()).await.query_one(count, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), row.get::<_, i64>(1));
}

#[tokio::test]
async fn a_schema_may_have_any_name() {
    for name in ["it's \"me\"", "%s $1; DROP SCHEMA public; --", "$body$ and 'duroxide.'", "ünï"]
    {
        let Some(schema) = TestSchema::named(&format!("{name} {}", std::process::id())) else {
            return;
        };
        let store = schema.open().await;
        assert_eq!(store.schema_name(), schema.name());
        let start = WorkItem::CancelInstance { instance: name.into(), reason: name.into() };
        store.enqueue_for_orchestrator(start, None).await.unwrap();
        let tags = TagFilter::Any;
        let lock = Duration::from_secs(1);
        assert_eq!(store.fetch_work_item(lock, Duration::ZERO, None, &tags).await, Ok(None));
        assert_eq!(store.get_queue_depths().await.unwrap().orchestrator_queue, 1);
        store.cleanup_schema().await.unwrap();
        store.initialize_schema().await.unwrap();
        assert_eq!(store.get_queue_depths().await.unwrap().orchestrator_queue, 0);
        store.cleanup_schema().await.unwrap();
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let Some(schema) = TestSchema::new() else { return };
    drop(schema.open().await);
    let client = stranger(&schema.config()).await;
    client.execute("INSERT INTO migration VALUES (1000, 'future')", &[]).await.unwrap();
    for policy in [MigrationPolicy::Apply, MigrationPolicy::Verify] {
        let mut config = schema.config();
        config.migrations = policy;
        let refused = PostgresProvider::new_with_config(config).await.unwrap_err();
        assert!(matches!(refused, PgError::NewerSchema { found: 1000, .. }), "{refused}");
        assert!(refused.to_string().contains("upgrade this program"), "{refused}");
    }
    client.execute("DELETE FROM migration WHERE version = 1000", &[]).await.unwrap();
}

#[tokio::test]
async fn who_only_verifies_makes_nothing() {
    let Some(schema) = TestSchema::new() else { return };
    let mut config = schema.config();
    config.migrations = MigrationPolicy::Verify;
    let refused = PostgresProvider::new_with_config(config.clone()).await.unwrap_err();
    assert!(matches!(refused, PgError::OldSchema { found: 0, .. }), "{refused}");
    drop(schema.open().await);
    assert!(PostgresProvider::new_with_config(config.clone()).await.is_ok());
    let client = stranger(&config).await;
    let last = "DELETE FROM migration WHERE version = (SELECT max(version) FROM migration)
         RETURNING version, name, digest";
    let row = client.query_one(last, &[]).await.unwrap();
    let refused = PostgresProvider::new_with_config(config).await.unwrap_err();
    assert!(matches!(refused, PgError::OldSchema { found: 1.., .. }), "{refused}");
    let again = "INSERT INTO migration (version, name, digest) VALUES ($1, $2, $3)";
    let (version, name, digest): (i32, &str, &str) = (row.get(0), row.get(1), row.get(2));
    client.execute(again, &[&version, &name, &digest]).await.unwrap();
}

// Migrations that are not released yet are changed in place: their number alone does not tell.
#[tokio::test]
async fn a_schema_of_another_build_is_refused_and_left_alone() {
    let Some(schema) = TestSchema::new() else { return };
    drop(schema.open().await);
    let client = stranger(&schema.config()).await;
    let refused = async |policy, change: &str| {
        client.batch_execute(change).await.unwrap();
        let mut config = schema.config();
        config.migrations = policy;
        let refused = PostgresProvider::new_with_config(config).await.unwrap_err();
        assert!(matches!(refused, PgError::OtherSchema { version: 3, .. }), "{refused}");
        assert!(refused.to_string().contains("another build"), "{refused}");
    };
    let digest = "SELECT digest FROM migration WHERE version = 3";
    let before: String = client.query_one(digest, &[]).await.unwrap().get(0);
    let change = "UPDATE migration SET digest = 'other' WHERE version = 3";
    refused(MigrationPolicy::Apply, change).await;
    refused(MigrationPolicy::Verify, change).await;
    // Also when there is something to add to it.
    let last = "DELETE FROM migration WHERE version = (SELECT max(version) FROM migration)";
    refused(MigrationPolicy::Apply, last).await;
    let mend = format!("UPDATE migration SET digest = '{before}' WHERE version = 3");
    client.batch_execute(&mend).await.unwrap();
    // Before there were digests.
    client.batch_execute("ALTER TABLE migration DROP COLUMN digest").await.unwrap();
    let refused = PostgresProvider::new_with_config(schema.config()).await.unwrap_err();
    assert!(matches!(refused, PgError::OtherSchema { version: 1, .. }), "{refused}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_the_cause() {
    let config = ProviderConfig::new("postgres://app:secret@127.0.0.1:1/orders");
    let refused = PostgresProvider::new_with_config(config).await.unwrap_err();
    let text = refused.to_string();
    for part in ["host 127.0.0.1", "port 1", "database orders", "user app", "refused"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("secret"), "{text}");
}

/// Answers the question for encryption, and hangs up.
async fn server_that_hangs_up(answer: &'static [u8]) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut question = [0; 8];
            stream.read_exact(&mut question).await.unwrap();
            stream.write_all(answer).await.unwrap();
        }
    });
    format!("postgres://app:secret@127.0.0.1:{port}/orders?sslmode=require")
}

// A server that goes away while encryption is agreed on is away; one that has none will not have it later.
#[tokio::test]
async fn trouble_on_the_way_is_no_trouble_with_encryption() {
    let open = async |answer| {
        let config = ProviderConfig::new(server_that_hangs_up(answer).await);
        PostgresProvider::new_with_config(config).await.unwrap_err()
    };
    let refused = open(b"S").await;
    assert!(matches!(refused, PgError::Connection { .. }), "{refused}");
    let refused = open(b"N").await;
    assert!(matches!(refused, PgError::Tls { .. }), "{refused}");
    let nonsense = open(b"Sthis is no handshake of any protocol").await;
    assert!(matches!(nonsense, PgError::Tls { .. }), "{nonsense}");
}

#[tokio::test]
async fn a_schema_with_tables_of_others_is_not_removed() {
    let Some(schema) = TestSchema::new() else { return };
    let store = schema.open().await;
    let client = stranger(&schema.config()).await;
    client.batch_execute("CREATE TABLE of_somebody_else (id integer)").await.unwrap();
    let refused = store.cleanup_schema().await.unwrap_err();
    assert!(matches!(refused, PgError::ForeignSchema { .. }), "{refused}");
    assert_eq!(store.list_instances().await, Ok(vec![]));
    client.batch_execute("DROP TABLE of_somebody_else").await.unwrap();
}

#[tokio::test]
async fn settings_that_make_no_sense_are_named() {
    let refused = async |change: fn(&mut ProviderConfig)| {
        let mut config = ProviderConfig::new("postgres://user:secret@127.0.0.1:1/none");
        change(&mut config);
        let error = PostgresProvider::new_with_config(config).await.unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
        error
    };
    let invalid =
        |error: PgError| assert!(matches!(error, PgError::InvalidConfig { .. }), "{error}");
    invalid(refused(|config| config.url = "nonsense://secret".to_owned()).await);
    invalid(refused(|config| config.url = "postgres://h/d?sslmode=perhaps".to_owned()).await);
    invalid(refused(|config| config.schema = String::new()).await);
    invalid(refused(|config| config.schema = "pg_catalog".to_owned()).await);
    invalid(refused(|config| config.pool_size = 0).await);
    let nobody = refused(|_| {}).await;
    assert!(matches!(nobody, PgError::Connection { .. }) && nobody.is_retryable(), "{nobody}");
}

/// Counts how often it was asked.
struct Source(AtomicU32, Option<String>);

#[async_trait]
impl PasswordSource for Source {
    async fn password(&self) -> Result<String, String> {
        self.0.fetch_add(1, Ordering::Relaxed);
        self.1.clone().ok_or_else(|| "the vault is closed".to_owned())
    }
}

#[tokio::test]
async fn every_connection_asks_for_its_password() {
    let Some(schema) = TestSchema::new() else { return };
    let mut config = schema.config();
    let Some((user, rest)) = config.url.split_once('@') else { panic!("a URL with a user") };
    let (user, password) = user.rsplit_once(':').unwrap();
    let password = password.to_owned();
    config.url = format!("{user}@{rest}");
    let refused = PostgresProvider::new_with_config(config.clone()).await;
    assert!(refused.is_err());
    for wrong in [None, Some("wrong".to_owned())] {
        config.password = Some(Arc::new(Source(AtomicU32::new(0), wrong)));
        let refused = PostgresProvider::new_with_config(config.clone()).await.unwrap_err();
        assert!(matches!(refused, PgError::Refused { .. }), "{refused}");
    }
    let source = Arc::new(Source(AtomicU32::new(0), Some(password)));
    config.password = Some(Arc::clone(&source) as Arc<dyn PasswordSource>);
    let store = PostgresProvider::new_with_config(config).await.unwrap();
    let (one, two) = tokio::join!(store.list_instances(), store.list_instances());
    assert_eq!((one, two), (Ok(vec![]), Ok(vec![])));
    assert!(2 <= source.0.load(Ordering::Relaxed)); // Lanes and the listener connect when they like.
}
