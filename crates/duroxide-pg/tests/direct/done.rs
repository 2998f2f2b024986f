//! What is done, and all that may be.

use std::sync::Arc;

use duroxide::providers::{
    Provider, ScheduledActivityIdentifier, SessionFetchConfig, TurnCommit, WorkItem,
};
use duroxide::{Event, EventKind};

use crate::stage::{
    LOCK, LONG, NOW, PLAIN, begin, direct, event_ids, locked_activity, named, opened, refused,
    started,
};
use crate::support::words::{activity, outcome, start};

#[tokio::test]
async fn r8_142_alone_it_is_done_and_hands_out_the_next() {
    let Some((_schema, store, client)) = opened().await else { return };
    begin(&store, "i", &[2]).await;
    let mut token = locked_activity(&store).await;
    for id in 2..6 {
        let turn = direct(&store, ("i", id), &token, &[id + 1]).await;
        let waiting = Arc::clone(&store);
        let waiting =
            tokio::spawn(async move { waiting.fetch_work_item(LOCK, LONG, None, &PLAIN).await });
        tokio::task::yield_now().await;
        store.commit_direct_turn(turn).await.unwrap();
        let (item, next, attempts) = waiting.await.unwrap().unwrap().unwrap();
        assert_eq!((item, attempts), (activity("i", id + 1), 1));
        assert_eq!(event_ids(&store, "i").await, (1..=id).collect::<Vec<_>>());
        let refused = store.ack_work_item(&token, None).await.unwrap_err();
        assert!(refused.message.contains("Invalid lock token"), "{refused}");
        token = next;
    }
    assert!(store.fetch_turn(LOCK, NOW, None).await.unwrap().is_none());
    let left = "SELECT count(*), (SELECT count(*) FROM work) FROM message";
    let left = client.query_one(left, &[]).await.unwrap();
    assert_eq!((left.get::<_, i64>(0), left.get::<_, i64>(1)), (0, 1));

    // A message finds the instance as usual.
    store.ack_work_item(&token, Some(outcome("i", 6))).await.unwrap();
    let turn = store.fetch_turn(LOCK, NOW, None).await.unwrap().unwrap();
    assert_eq!((turn.last_event_id, turn.item.messages.len()), (5, 1));
}

#[tokio::test]
async fn r8_142_many_at_a_time_are_done_as_each_alone() {
    let Some((_schema, store, _)) = opened().await else { return };
    let ids: Vec<String> = (0..8).map(|number| format!("i{number}")).collect();
    let mut turns = Vec::new();
    for id in &ids {
        begin(&store, id, &[2]).await;
        let token = locked_activity(&store).await;
        let mut turn = direct(&store, (id, 2), &token, &[3]).await;
        turn.commit.orchestrator_items.push(start(&format!("child of {id}")));
        turns.push(turn);
    }
    // One is wrong, which is nothing to the others.
    turns[3].last_event_at_ms += 1;
    let commits = turns.into_iter().map(|turn| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.commit_direct_turn(turn).await })
    });
    let commits: Vec<_> = commits.collect();
    for (number, commit) in commits.into_iter().enumerate() {
        assert_eq!(commit.await.unwrap().is_ok(), number != 3, "{number}");
    }
    for (number, id) in ids.iter().enumerate() {
        let events = if number == 3 { vec![1] } else { vec![1, 2] };
        assert_eq!(event_ids(&store, id).await, events);
    }
    let all = store.fetch_work_items(LOCK, NOW, None, &PLAIN, 20).await.unwrap();
    assert_eq!(all.len(), 7, "what they asked for");
    let all = store.fetch_turns(LOCK, NOW, None, 20).await.unwrap();
    assert_eq!(all.len(), 7, "whom they wrote to");
}

#[tokio::test]
async fn r8_142_whatever_a_turn_may_hold_a_direct_one_may() {
    let Some((_schema, store, client)) = opened().await else { return };
    begin(&store, "i", &[2, 7]).await;
    store.enqueue_for_orchestrator(outcome("i", 9), Some(LONG)).await.unwrap();
    let token = locked_activity(&store).await;
    let mut turn = direct(&store, ("i", 2), &token, &[3]).await;
    let set = EventKind::KeyValueSet {
        key: "k".to_owned(),
        value: "v".to_owned(),
        last_updated_at_ms: 7,
    };
    turn.commit.history_delta.push(Event::with_event_id(3, "i", 1, None, set));
    turn.commit.cancelled_activities = vec![ScheduledActivityIdentifier {
        instance: "i".to_owned(),
        execution_id: 1,
        activity_id: 7,
    }];
    turn.commit.orchestrator_items = vec![start("child"), outcome("i", 8)];
    turn.commit.metadata.status = Some("ContinuedAsNew".to_owned());
    turn.commit.successor = Some(Box::new(TurnCommit {
        execution_id: 2,
        history_delta: vec![started("i", 2)],
        worker_items: vec![activity("child", 4)],
        metadata: named(),
        ..TurnCommit::default()
    }));

    // The successor's event is taken: neither happens.
    store.append_with_execution("i", 2, vec![started("i", 2)]).await.unwrap();
    refused(&store, &client, &turn, "duplicate event id 1 in execution 2").await;
    client.batch_execute("DELETE FROM history WHERE execution = 2").await.unwrap();
    store.commit_direct_turn(turn).await.unwrap();

    assert_eq!(event_ids(&store, "i").await, [1]);
    let before = store.read_with_execution("i", 1).await.unwrap();
    assert_eq!(before.len(), 3);
    assert_eq!(store.get_kv_value("i", "k").await.unwrap().as_deref(), Some("v"));
    let work = store.fetch_work_items(LOCK, NOW, None, &PLAIN, 9).await.unwrap();
    let work: Vec<WorkItem> = work.into_iter().map(|(item, _, _)| item).collect();
    assert_eq!(work, [activity("i", 3), activity("child", 4)]);
    let turns = store.fetch_turns(LOCK, NOW, None, 9).await.unwrap();
    let ids = turns.iter().map(|turn| (&*turn.item.instance, turn.item.execution_id));
    assert_eq!(ids.collect::<Vec<_>>(), [("child", 1), ("i", 2)]);
}

#[tokio::test]
async fn r8_85_a_session_is_touched() {
    let Some((_schema, store, client)) = opened().await else { return };
    begin(&store, "i", &[]).await;
    let mut work = activity("i", 2);
    if let WorkItem::ActivityExecute { session_id, .. } = &mut work {
        *session_id = Some("s".to_owned());
    }
    store.enqueue_for_worker(work).await.unwrap();
    let session = SessionFetchConfig { owner_id: "me".to_owned(), lock_timeout: LOCK };
    let job = store.fetch_work_item(LOCK, NOW, Some(&session), &PLAIN).await.unwrap().unwrap();
    client.execute("UPDATE session SET last_activity = 1", &[]).await.unwrap();
    let turn = direct(&store, ("i", 2), &job.1, &[]).await;
    store.commit_direct_turn(turn).await.unwrap();
    let touched = client.query_one("SELECT last_activity FROM session", &[]).await.unwrap();
    assert!(1 < touched.get::<_, i64>(0));
}

// Who lost the answer asks whether it was done: by what the turn made up, which nobody else has.
#[tokio::test]
async fn r8_142_a_turn_that_was_done_can_be_told_from_one_that_was_not() {
    let Some((_schema, store, client)) = opened().await else { return };
    begin(&store, "i", &[2, 3]).await;
    // Both activities are fetched with one secret.
    let jobs = store.fetch_work_items(LOCK, NOW, None, &PLAIN, 2).await.unwrap();
    let secret = |token: &str| token.rsplit_once('_').unwrap().1.to_owned();
    assert_eq!(secret(&jobs[0].1), secret(&jobs[1].1));
    let marks = async || {
        let row = client.query_one("SELECT done::text FROM mailbox", &[]).await.unwrap();
        row.get::<_, String>(0).replace('-', "")
    };
    let mut seen = vec![secret(&jobs[0].1), marks().await];
    for (id, (_, token, _)) in (2..).zip(&jobs) {
        let turn = direct(&store, ("i", id), token, &[]).await;
        store.commit_direct_turn(turn).await.unwrap();
        let mark = marks().await;
        let asked = "SELECT was_committed_directly('i', $1::text::uuid)";
        assert!(client.query_one(asked, &[&mark]).await.unwrap().get::<_, bool>(0));
        assert!(!client.query_one(asked, &[&seen[0]]).await.unwrap().get::<_, bool>(0));
        assert!(!seen.contains(&mark));
        seen.push(mark);
    }
}
