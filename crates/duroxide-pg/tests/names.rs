//! Names and values of every kind, through every interface, come back as they were (R10.20).
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;

use duroxide_fleet::names::{live_and_leave, tell_apart};
use support::TestSchema;

#[tokio::test(flavor = "multi_thread")]
async fn r10_20_names_of_every_kind() {
    let Some(schema) = TestSchema::new() else { return };
    live_and_leave(Arc::new(schema.open().await)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_20_names_of_every_kind_in_a_schema_of_any_name() {
    let name = format!("'; DROP SCHEMA public; -- \"$1\" {}", std::process::id());
    let Some(schema) = TestSchema::named(&name) else { return };
    let store = Arc::new(schema.open().await);
    live_and_leave(store.clone()).await;
    store.cleanup_schema().await.unwrap();
}

#[tokio::test]
async fn r10_20_tags_that_look_alike_are_told_apart() {
    let Some(schema) = TestSchema::new() else { return };
    tell_apart(&schema.open().await).await;
}
