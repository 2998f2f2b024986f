//! Instances with activities in hand, and the turns their outcomes lead to.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::{DirectTurn, ExecutionMetadata, Provider, TagFilter, TurnCommit};
use duroxide::{Event, EventKind};
use duroxide_pg::PostgresProvider;
use tokio_postgres::Client;

use crate::support::words::{activity, start};
use crate::support::{TestSchema, stranger};

pub(crate) const LOCK: Duration = Duration::from_secs(600);
pub(crate) const LONG: Duration = Duration::from_secs(110);
pub(crate) const NOW: Duration = Duration::ZERO;
pub(crate) const PLAIN: TagFilter = TagFilter::DefaultOnly;

pub(crate) fn started(instance: &str, execution_id: u64) -> Event {
    let kind = EventKind::OrchestrationStarted {
        name: "Main".to_owned(),
        version: "1.0.0".to_owned(),
        input: "input".to_owned(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    Event::with_event_id(1, instance, execution_id, None, kind)
}

/// The event that an activity with this id is done.
pub(crate) fn done(instance: &str, event_id: u64, id: u64) -> Event {
    let kind = EventKind::ActivityCompleted { result: "result".to_owned() };
    Event::with_event_id(event_id, instance, 1, Some(id), kind)
}

pub(crate) fn named() -> ExecutionMetadata {
    ExecutionMetadata {
        orchestration_name: Some("Main".to_owned()),
        orchestration_version: Some("1.0.0".to_owned()),
        ..ExecutionMetadata::default()
    }
}

/// An instance whose first turn has asked for these activities.
pub(crate) async fn begin(store: &PostgresProvider, instance: &str, work: &[u64]) {
    store.enqueue_for_orchestrator(start(instance), None).await.unwrap();
    let turn = store.fetch_turn(LOCK, LONG, None).await.unwrap().unwrap();
    assert_eq!(turn.item.instance, instance);
    let commit = TurnCommit {
        execution_id: 1,
        history_delta: vec![started(instance, 1)],
        worker_items: work.iter().map(|id| activity(instance, *id)).collect(),
        metadata: named(),
        ..TurnCommit::default()
    };
    store.commit_turn(&turn.lock_token, commit).await.unwrap();
}

pub(crate) async fn locked_activity(store: &PostgresProvider) -> String {
    store.fetch_work_item(LOCK, NOW, None, &PLAIN).await.unwrap().unwrap().1
}

/// The turn after the last that is stored: activity `id` is done, `next` are asked for.
pub(crate) async fn direct(
    store: &PostgresProvider,
    (instance, id): (&str, u64),
    work_token: &str,
    next: &[u64],
) -> DirectTurn {
    let history = store.read(instance).await.unwrap();
    let last = history.last().unwrap();
    let commit = TurnCommit {
        execution_id: 1,
        history_delta: vec![done(instance, last.event_id + 1, id)],
        worker_items: next.iter().map(|id| activity(instance, *id)).collect(),
        ..TurnCommit::default()
    };
    DirectTurn {
        work_token: work_token.to_owned(),
        instance: instance.to_owned(),
        last_event_id: last.event_id,
        last_event_at_ms: last.timestamp_ms,
        commit,
    }
}

pub(crate) async fn event_ids(store: &PostgresProvider, instance: &str) -> Vec<u64> {
    store.read(instance).await.unwrap().iter().map(|event| event.event_id).collect()
}

/// Everything that is stored.
pub(crate) async fn everything(client: &Client) -> String {
    let tables = [
        "instance",
        "execution",
        "history",
        "mailbox",
        "message",
        "hidden",
        "work",
        "session",
        "kv",
        "kv_delta",
    ];
    let mut all = String::new();
    for table in tables {
        let sql =
            format!("SELECT coalesce(string_agg(t::text, '\n' ORDER BY t), '') FROM {table} t");
        all += &format!(
            "{table}:\n{}\n",
            client.query_one(&sql, &[]).await.unwrap().get::<_, &str>(0)
        );
    }
    all
}

pub(crate) async fn opened() -> Option<(TestSchema, Arc<PostgresProvider>, Client)> {
    let schema = TestSchema::new()?;
    let store = Arc::new(schema.open().await);
    let client = stranger(&schema.config()).await;
    Some((schema, store, client))
}

pub(crate) const AT_REST: &str = "is locked, has messages, or has gone on meanwhile";
pub(crate) const UNKNOWN: &str = "Invalid lock token";

/// Whether a turn is refused so, alone and among others, and nothing has changed.
pub(crate) async fn refused(
    store: &PostgresProvider,
    client: &Client,
    turn: &DirectTurn,
    why: &str,
) {
    let before = everything(client).await;
    let alone = store.commit_direct_turn(turn.clone()).await.unwrap_err();
    assert!(alone.message.contains(why) && !alone.is_retryable(), "{why}: {alone}");
    assert_eq!(everything(client).await, before, "{why}");
    // What others do in the same transaction is to be told from what it does.
    let (one, two) = tokio::join!(
        store.commit_direct_turn(turn.clone()),
        store.renew_work_item_lock("lock_w7fffffff_00000000000000000000000000000000", LOCK)
    );
    assert!(two.is_err());
    assert_eq!(one.unwrap_err().message, alone.message);
    assert_eq!(everything(client).await, before, "{why}, among others");
}
