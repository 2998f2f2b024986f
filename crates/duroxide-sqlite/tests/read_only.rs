//! Files and folders that cannot be written, as a user whom permissions bind (R10.12).
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use duroxide::providers::Provider;
use duroxide_sqlite::{SqliteError, SqliteProvider};
use support::Folder;
use support::again::{as_nobody, inner_folder};
use support::files::{filled, refusal, start};

/// Whether permissions bind this process; if they do not, the test is run again where they do.
fn bound(test: &str) -> Option<Folder> {
    if let Some(folder) = inner_folder() {
        return Some(folder);
    }
    let folder = Folder::new();
    std::fs::write(folder.file("probe"), "").unwrap();
    allow(&folder.file("probe"), 0o400);
    if std::fs::OpenOptions::new().write(true).open(folder.file("probe")).is_err() {
        return Some(folder);
    }
    if !as_nobody(test) {
        eprintln!("{test}: skipped, permissions do not bind this user and no other can be had");
    }
    None
}

fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn r10_12_a_read_only_file() {
    let Some(folder) = bound("r10_12_a_read_only_file") else { return };
    let path = filled(&folder, "a.db").await;
    for mode in [0o400, 0o000] {
        allow(&path, mode);
        let url = folder.url("a.db");
        if mode == 0 {
            let error = SqliteProvider::new(&url, None).await.unwrap_err();
            assert!(matches!(error, SqliteError::ReadOnly { .. }), "{error}");
            continue;
        }
        let error = refusal(&folder, &url).await;
        assert!(matches!(error, SqliteError::ReadOnly { .. }), "{error}");
        assert!(!error.is_retryable());
    }
}

#[tokio::test]
async fn r10_12_a_read_only_folder() {
    let Some(folder) = bound("r10_12_a_read_only_folder") else { return };
    filled(&folder, "a.db").await;
    allow(folder.path(), 0o500);
    for name in ["a.db", "new.db"] {
        let error = refusal(&folder, &folder.url(name)).await;
        assert!(matches!(error, SqliteError::ReadOnly { .. }), "{name}: {error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    allow(folder.path(), 0o700);
    SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
}

#[tokio::test]
async fn r10_12_a_folder_that_cannot_be_entered() {
    let Some(folder) = bound("r10_12_a_folder_that_cannot_be_entered") else { return };
    let inner = Folder::inside(folder.path());
    filled(&inner, "a.db").await;
    allow(inner.path(), 0o000);
    let error = SqliteProvider::new(&inner.url("a.db"), None).await.unwrap_err();
    assert!(matches!(error, SqliteError::ReadOnly { .. }), "{error}");
    allow(inner.path(), 0o700);
}

#[tokio::test]
async fn r10_12_a_store_turned_read_only_is_not_tried_for_ever() {
    let Some(folder) = bound("r10_12_a_store_turned_read_only_is_not_tried_for_ever") else {
        return;
    };
    let path = filled(&folder, "a.db").await;
    let reader = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    // A store that has the file open may go on; a connection opened anew may not write.
    reader.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap();
    allow(&path, 0o400);
    let error = reader.checkpoint().await.unwrap_err();
    assert!(matches!(error, SqliteError::ReadOnly { .. }), "{error}");
    assert!(!error.is_retryable());
}
