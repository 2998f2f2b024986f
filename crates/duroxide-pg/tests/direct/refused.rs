//! What is refused, and changes nothing.

use duroxide::providers::{DirectTurn, Provider, TurnCommit};

use crate::stage::{AT_REST, LOCK, NOW, UNKNOWN, begin, direct, locked_activity, opened, refused};
use crate::support::words::outcome;

#[tokio::test]
async fn r8_142_what_is_refused_changes_nothing() {
    let Some((_schema, store, client)) = opened().await else { return };
    begin(&store, "i", &[2]).await;
    begin(&store, "other", &[]).await;
    let token = locked_activity(&store).await;
    let good = direct(&store, ("i", 2), &token, &[3]).await;
    let changed = |change: fn(&mut DirectTurn)| {
        let mut turn = good.clone();
        change(&mut turn);
        turn
    };
    for wrong in [
        changed(|turn| turn.last_event_id += 1),
        changed(|turn| turn.last_event_id = 0),
        changed(|turn| turn.last_event_at_ms += 1),
        changed(|turn| turn.commit.execution_id = 2),
        changed(|turn| turn.instance = "other".to_owned()),
        changed(|turn| turn.instance = "nobody".to_owned()),
    ] {
        refused(&store, &client, &wrong, AT_REST).await;
    }
    let wrong = changed(|turn| turn.work_token.replace_range(turn.work_token.len() - 4.., "0000"));
    refused(&store, &client, &wrong, UNKNOWN).await;
    let wrong = changed(|turn| turn.commit.history_delta[0].event_id = 1);
    refused(&store, &client, &wrong, "duplicate event id 1 in execution 1").await;
    let wrong = changed(|turn| turn.commit.history_delta[0].event_id = 0);
    refused(&store, &client, &wrong, "event id 0").await;

    // A message that has become due, and that nobody has looked at.
    store.enqueue_for_orchestrator(outcome("i", 9), Some(LOCK)).await.unwrap();
    client.execute("UPDATE hidden SET visible_at = 1", &[]).await.unwrap();
    refused(&store, &client, &good, AT_REST).await;
    // The same, locked.
    let turn = store.fetch_turn(LOCK, NOW, None).await.unwrap().unwrap();
    refused(&store, &client, &good, AT_REST).await;
    // The lock has run out, and nobody has looked.
    client.execute("UPDATE mailbox SET wake_at = 1 WHERE state = 2", &[]).await.unwrap();
    refused(&store, &client, &good, AT_REST).await;
    store.abandon_orchestration_item(&turn.lock_token, None, true).await.unwrap();
    refused(&store, &client, &good, AT_REST).await;
    let turn = store.fetch_turn(LOCK, NOW, None).await.unwrap().unwrap();
    let nothing = TurnCommit { execution_id: 1, ..TurnCommit::default() };
    store.commit_turn(&turn.lock_token, nothing).await.unwrap();
    client.execute("UPDATE work SET wake_at = 1", &[]).await.unwrap();
    refused(&store, &client, &good, "the lock has expired").await;
    store.renew_work_item_lock(&token, LOCK).await.unwrap_err();
    client.execute("UPDATE work SET wake_at = 4000000000000", &[]).await.unwrap();
    store.commit_direct_turn(good.clone()).await.unwrap();
    refused(&store, &client, &good, UNKNOWN).await;
}
