//! Names and values of every kind, through every interface, come back as they were (R10.20).
#![cfg(feature = "test-hooks")] // Once is enough: it takes its time.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;

use duroxide_fleet::names::{live_and_leave, tell_apart};
use duroxide_sqlite::SqliteProvider;
use support::Folder;

#[tokio::test(flavor = "multi_thread")]
async fn r10_20_names_of_every_kind_on_a_file() {
    let folder = Folder::fast();
    let store = Arc::new(SqliteProvider::new(&folder.url("a.db"), None).await.unwrap());
    live_and_leave(store.clone()).await;
    store.debug_dump().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_20_names_of_every_kind_in_memory() {
    live_and_leave(Arc::new(SqliteProvider::new_in_memory().await.unwrap())).await;
}

#[tokio::test]
async fn r10_20_tags_that_look_alike_are_told_apart() {
    tell_apart(&SqliteProvider::new_in_memory().await.unwrap()).await;
}

#[tokio::test]
async fn r10_20_the_path_may_have_any_name_too() {
    let folder = Folder::fast();
    for name in ["it's.db", "a b.db", "日本語.db", "100%.db", "what?.db", "#1.db", "file:x?y=z.db"]
    {
        let encoded: String = name
            .bytes()
            .map(|byte| match byte {
                b'%' | b'?' | b'#' => format!("%{byte:02x}"),
                byte if byte.is_ascii() => char::from(byte).to_string(),
                byte => format!("%{byte:02x}"),
            })
            .collect();
        let url = format!("sqlite:{}/{encoded}?mode=rwc", folder.path().display());
        drop(SqliteProvider::new(&url, None).await.unwrap());
        assert!(folder.file(name).exists(), "{name}");
        SqliteProvider::new(&url, None).await.unwrap();
    }
}
