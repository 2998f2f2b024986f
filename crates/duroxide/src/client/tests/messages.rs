//! What starts, signals and cancellations put into the queue.

use std::collections::BTreeMap;

use duroxide_core::model::WorkItem;
use duroxide_core::provider::ProviderError;

use super::fake::Fake;
use crate::client::ClientError;

fn start(instance: &str, version: Option<&str>, input: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: "Order".to_owned(),
        input: input.to_owned(),
        version: version.map(str::to_owned),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

/// What JSON cannot express: a map with keys that are not strings.
fn not_json() -> BTreeMap<(u8, u8), u8> {
    BTreeMap::from([((1, 2), 3)])
}

fn invalid(error: ClientError) -> String {
    match error {
        ClientError::InvalidInput { message } => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn r6_1_every_start_is_one_message() {
    let (store, client) = Fake::new().client();
    client.start_orchestration("a", "Order", "x").await.unwrap();
    client.start_orchestration_versioned("b", "Order", "1.2.0", "x").await.unwrap(); // R6.5
    client.start_orchestration_typed("c", "Order", [1, 2]).await.unwrap();
    client.start_orchestration_versioned_typed("d", "Order", "2.0.0", "raw").await.unwrap();
    // R6.4: an id that exists is not looked up. R6.6: nothing is delayed.
    client.start_orchestration("a", "Order", "x").await.unwrap();
    let expected = [
        (start("a", None, "x"), None),
        (start("b", Some("1.2.0"), "x"), None),
        (start("c", None, "[1,2]"), None),
        (start("d", Some("2.0.0"), "raw"), None),
        (start("a", None, "x"), None),
    ];
    assert_eq!(*store.sent.lock().unwrap(), expected);
    assert!(store.looks_ms().is_empty());
}

#[tokio::test]
async fn r6_2_reserved_ids_are_refused() {
    let (store, client) = Fake::new().client();
    for id in ["sub::1", "a::sub::1"] {
        let error = client.start_orchestration(id, "Order", "").await.unwrap_err();
        let message =
            format!("instance id '{id}' uses the reserved sub-orchestration marker 'sub::'");
        assert_eq!(error.to_string(), format!("Invalid input: {message}"));
        assert_eq!(invalid(error), message);
        assert!(client.start_orchestration_versioned(id, "Order", "1.0.0", "").await.is_err());
        assert!(client.start_orchestration_typed(id, "Order", 1).await.is_err());
        assert!(client.start_orchestration_versioned_typed(id, "Order", "1.0.0", 1).await.is_err());
    }
    assert!(store.sent.lock().unwrap().is_empty());
    client.start_orchestration("a::b", "Order", "").await.unwrap(); // R2.104
}

#[tokio::test]
async fn r6_3_r6_13_a_payload_that_cannot_be_encoded_is_invalid_input() {
    let (store, client) = Fake::new().client();
    let errors = [
        client.start_orchestration_typed("a", "Order", not_json()).await,
        client.start_orchestration_versioned_typed("a", "Order", "1.0.0", not_json()).await,
        client.raise_event_typed("a", "go", &not_json()).await,
        client.enqueue_event_typed("a", "inbox", &not_json()).await,
    ];
    for error in errors {
        let message = invalid(error.unwrap_err());
        assert!(message.starts_with("encode: "), "{message}");
    }
    assert!(store.sent.lock().unwrap().is_empty());
}

#[tokio::test]
async fn r6_10_r6_11_r6_12_signals_are_one_message_each() {
    let (store, client) = Fake::new().client();
    client.raise_event("ghost", "go", "now").await.unwrap();
    client.raise_event_typed("a", "go", &7).await.unwrap();
    client.enqueue_event("a", "inbox", "m").await.unwrap();
    client.enqueue_event_typed("a", "inbox", &"text").await.unwrap();
    #[expect(deprecated, reason = "the old name must keep working")]
    client.raise_event_persistent("a", "inbox", "m").await.unwrap();
    client.cancel_instance("ghost", "enough").await.unwrap(); // R6.14: unknown is fine
    client.cancel_instance("ghost", "enough").await.unwrap();

    let raised = |instance: &str, data: &str| WorkItem::ExternalRaised {
        instance: instance.to_owned(),
        name: "go".to_owned(),
        data: data.to_owned(),
    };
    let queued = |data: &str| WorkItem::QueueMessage {
        instance: "a".to_owned(),
        name: "inbox".to_owned(),
        data: data.to_owned(),
    };
    let cancel =
        WorkItem::CancelInstance { instance: "ghost".to_owned(), reason: "enough".to_owned() };
    let expected = [
        raised("ghost", "now"),
        raised("a", "7"),
        queued("m"),
        queued("text"),
        queued("m"),
        cancel.clone(),
        cancel,
    ];
    let sent: Vec<_> = store.sent.lock().unwrap().drain(..).collect();
    assert!(sent.iter().all(|(_, delay)| delay.is_none()));
    assert_eq!(sent.into_iter().map(|(item, _)| item).collect::<Vec<_>>(), expected);
}

#[cfg(feature = "replay-version-test")]
#[tokio::test]
async fn r2_60_second_generation_events_carry_a_topic() {
    let (store, client) = Fake::new().client();
    client.raise_event2("a", "go", "orders", "now").await.unwrap();
    let expected = WorkItem::ExternalRaised2 {
        instance: "a".to_owned(),
        name: "go".to_owned(),
        topic: "orders".to_owned(),
        data: "now".to_owned(),
    };
    assert_eq!(store.sent.lock().unwrap()[0].0, expected);
}

#[tokio::test]
async fn a_store_error_is_handed_on_with_its_retryability() {
    for error in [ProviderError::retryable("enqueue", "busy"), ProviderError::permanent("e", "x")] {
        let mut store = Fake::new();
        store.broken = Some(error.clone());
        let (_, client) = store.client();
        let answer = client.raise_event("a", "go", "now").await.unwrap_err();
        assert_eq!(answer.is_retryable(), error.retryable);
        assert_eq!(answer.to_string(), error.to_string());
    }
}

/// Callers spawn these futures, so they must be `Send`; chapter 6: a client is shared by threads.
#[test]
fn clients_and_their_futures_cross_threads() {
    fn send_sync<T: Send + Sync + Clone>(_: &T) {}
    fn send<T: Send>(_: T) {}
    let (_, client) = Fake::new().client();
    send_sync(&client);
    send(client.start_orchestration_typed("a", "Order", 1));
    send(client.raise_event_typed("a", "go", &1));
    send(client.wait_for_orchestration_typed::<u32>("a", std::time::Duration::ZERO));
    send(client.wait_for_kv_value_typed::<u32>("a", "k", std::time::Duration::ZERO));
    send(client.delete_instance("a", true));
}
