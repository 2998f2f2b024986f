//! Key-value reads and sizes.

use std::collections::HashMap;
use std::time::Duration;

use super::fake::{Fake, corrupt};
use crate::client::ClientError;

fn value(text: &str) -> Result<Option<String>, duroxide_core::provider::ProviderError> {
    Ok(Some(text.to_owned()))
}

fn assert_mismatch<T: std::fmt::Debug>(answer: Result<T, ClientError>) {
    match answer {
        Err(ClientError::InvalidInput { message }) => {
            assert!(message.starts_with("KV deserialization error: "), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn r6_40_values_are_read_as_committed() {
    let (_, client) = Fake::new().with_values([Ok(None), value("red")]).client();
    assert_eq!(client.get_kv_value("a", "colour").await.unwrap(), None);
    assert_eq!(client.get_kv_value("a", "colour").await.unwrap().as_deref(), Some("red"));
    let all = client.get_kv_all_values("a").await.unwrap();
    assert_eq!(all, HashMap::from([("colour".to_owned(), "red".to_owned())]));
}

#[tokio::test]
async fn r6_40_r2_93_typed_values_are_plain_json() {
    let answers = [Ok(None), value("3"), value("\"red\""), value("red")];
    let (_, client) = Fake::new().with_values(answers).client();
    assert_eq!(client.get_kv_value_typed::<u32>("a", "n").await.unwrap(), None);
    assert_eq!(client.get_kv_value_typed::<u32>("a", "n").await.unwrap(), Some(3));
    let text = client.get_kv_value_typed::<String>("a", "n").await.unwrap();
    assert_eq!(text.as_deref(), Some("red"));
    assert_mismatch(client.get_kv_value_typed::<String>("a", "n").await);
}

#[tokio::test(start_paused = true)]
async fn r6_33_a_wait_ends_when_the_key_has_a_value() {
    let (store, client) = Fake::new().with_values([Ok(None), Ok(None), value("red")]).client();
    let found = client.wait_for_kv_value("a", "colour", Duration::from_secs(1)).await;
    assert_eq!(found.unwrap(), "red");
    assert_eq!(store.looks_ms(), [0, 5, 15]);
}

#[tokio::test(start_paused = true)]
async fn r6_33_typed_waits_decode_time_out_and_fail() {
    let second = Duration::from_secs(1);
    let (_, client) = Fake::new().with_values([value("3")]).client();
    assert_eq!(client.wait_for_kv_value_typed::<u32>("a", "n", second).await.unwrap(), 3);
    assert_mismatch(client.wait_for_kv_value_typed::<Vec<u32>>("a", "n", second).await);

    let (_, client) = Fake::new().client();
    let answer = client.wait_for_kv_value_typed::<u32>("a", "n", second).await;
    assert!(matches!(answer, Err(ClientError::Timeout)), "{answer:?}");

    let (store, client) = Fake::new().with_values([Err(corrupt())]).client();
    let answer = client.wait_for_kv_value("a", "n", second).await;
    assert!(matches!(answer, Err(ClientError::Provider(_))), "{answer:?}");
    assert_eq!(store.looks_ms(), [0]);
}

#[tokio::test]
async fn r6_41_sizes_come_from_the_store() {
    let (_, client) = Fake::new().client();
    let stats = client.get_orchestration_stats("a").await.unwrap().unwrap();
    assert_eq!((stats.history_event_count, stats.kv_total_value_bytes), (1, 5));
    assert_eq!(stats.queue_pending_count, 3); // R6.42: the store's number, unchanged
    let mut store = Fake::new();
    store.broken = Some(corrupt());
    assert!(store.client().1.get_orchestration_stats("a").await.is_err());
}
