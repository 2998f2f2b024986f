//! Files that cannot be opened: said at once, with name and remedy, and left as they are (R10.12).
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::Path;

use duroxide::providers::{Provider, ProviderAdmin};
use duroxide_sqlite::{SqliteError, SqliteProvider};
use support::files::{contents, filled, filled_and_killed, refusal, set_pragma};
use support::{Folder, stranger};

fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

#[tokio::test]
async fn r10_2_a_file_that_is_not_there_is_not_made_unless_asked() {
    let folder = Folder::new();
    let error = refusal(&folder, &url(&folder.file("a.db"))).await;
    assert!(matches!(error, SqliteError::NotFound { .. }), "{error}");
    assert!(error.to_string().contains("?mode=rwc"), "{error}");
    assert_eq!(format!("{error:?}"), error.to_string()); // R6.90
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn r10_12_a_folder_that_is_not_there() {
    let folder = Folder::new();
    std::fs::write(folder.file("file"), "text").unwrap();
    for name in ["none/a.db", "file/a.db"] {
        for mode in ["", "?mode=rwc"] {
            let error = refusal(&folder, &(url(&folder.file(name)) + mode)).await;
            assert!(matches!(error, SqliteError::NoFolder { .. }), "{error}");
            assert!(error.to_string().contains("make it first"), "{error}");
        }
    }
}

#[tokio::test]
async fn r10_12_what_is_no_database() {
    let folder = Folder::new();
    let noise: Vec<u8> =
        (0..9000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(folder.file("noise.db"), noise).unwrap();
    std::fs::write(folder.file("text.db"), "Dear diary,\n").unwrap();
    std::fs::write(folder.file("byte.db"), "S").unwrap();
    std::fs::write(folder.file("short.db"), "Dear diary, ".repeat(5)).unwrap();
    std::fs::write(folder.file("blank.db"), [0; 50]).unwrap();
    std::fs::create_dir(folder.file("folder.db")).unwrap();
    for name in ["noise.db", "text.db", "byte.db", "short.db", "blank.db", "folder.db"] {
        for mode in ["", "?mode=rwc"] {
            let error = refusal(&folder, &(url(&folder.file(name)) + mode)).await;
            assert!(matches!(error, SqliteError::NotADatabase { .. }), "{name}: {error}");
            assert!(!error.is_retryable());
        }
    }
    // Not a file at all: must not wait for another process to write to it, either.
    let error = SqliteProvider::new("sqlite:/dev/null", None).await.unwrap_err();
    assert!(matches!(error, SqliteError::NotADatabase { .. }), "{error}");
}

#[tokio::test]
async fn r10_12_a_file_cut_short() {
    let folder = Folder::new();
    let whole = std::fs::read(filled(&folder, "a.db").await).unwrap();
    for length in [50, 99, 100, 511, 4096, 4097, whole.len() / 2, whole.len() - 4096] {
        let path = folder.file("cut.db");
        std::fs::write(&path, &whole[..length]).unwrap();
        let error = refusal(&folder, &folder.url("cut.db")).await;
        assert!(matches!(error, SqliteError::Corrupt { .. }), "{length}: {error}");
        assert!(error.to_string().contains("restore it"), "{error}");
    }
}

#[tokio::test]
async fn r10_12_an_empty_file_with_a_log_is_no_new_store() {
    let folder = Folder::new();
    let path = filled_and_killed(&folder, "a.db").await;
    std::fs::write(&path, "").unwrap();
    let error = refusal(&folder, &folder.url("a.db")).await;
    assert!(matches!(error, SqliteError::Corrupt { .. }), "{error}");
}

#[tokio::test]
async fn r10_12_bits_that_hold_the_file_together() {
    let folder = Folder::fast();
    let whole = std::fs::read(filled(&folder, "a.db").await).unwrap();
    // In each page: its kind, its number of cells, and the place of its first cell.
    let mut damaged = 0;
    for page in 0..whole.len() / 4096 {
        let start = page * 4096 + if page == 0 { 100 } else { 0 };
        for (offset, bit) in [(0, 0x40), (3, 0x10), (8, 0x80), (12, 0x80)] {
            let mut flipped = whole.clone();
            flipped[start + offset] ^= bit;
            let is_leaf = matches!(whole[start], 10 | 13);
            let is_about_cells = offset == 0 || offset == 3;
            std::fs::write(folder.file("a.db"), &flipped).unwrap();
            if is_about_cells || is_leaf && offset == 8 && whole[start + 3..start + 5] != [0, 0] {
                let error = refusal(&folder, &folder.url("a.db")).await;
                let kind =
                    matches!(error, SqliteError::Corrupt { .. } | SqliteError::NotADatabase { .. });
                assert!(kind, "page {page} offset {offset}: {error}");
                damaged += 1;
            }
        }
    }
    assert!(50 < damaged, "only {damaged} cases");
}

#[tokio::test]
async fn r10_12_any_bit_opens_with_an_error_or_works() {
    let folder = Folder::fast();
    let whole = std::fs::read(filled(&folder, "a.db").await).unwrap();
    let header = 0..100;
    let scattered = (100..whole.len()).step_by(whole.len() / 100);
    let (mut refused, mut opened) = (0, 0);
    for at in header.chain(scattered) {
        let path = folder.file("a.db");
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        std::fs::write(&path, flipped).unwrap();
        let before = contents(folder.path());
        match SqliteProvider::new(&url(&path), None).await {
            Err(error) => {
                refused += 1;
                assert!(error.to_string().contains("a.db"), "{error}");
                assert_eq!(before, contents(folder.path()), "byte {at}: {error}");
            }
            Ok(store) => {
                opened += 1;
                // An answer or an error, whatever it is.
                store.list_instances().await.map(drop).unwrap_or_default();
                store
                    .fetch_turn(std::time::Duration::from_secs(1), std::time::Duration::ZERO, None)
                    .await
                    .map(drop)
                    .unwrap_or_default();
            }
        }
    }
    assert!(20 < refused && 20 < opened, "{refused} refused, {opened} opened");
}

#[tokio::test]
async fn r10_12_a_log_of_another_file() {
    // A log with only some pages of the other store, and one with all of them.
    for other_is_fresh in [false, true] {
        let (folder, elsewhere) = (Folder::new(), Folder::new());
        filled(&folder, "a.db").await;
        if !other_is_fresh {
            filled(&elsewhere, "b.db").await;
        }
        let other = SqliteProvider::new(&elsewhere.url("b.db"), None).await.unwrap();
        let start = support::files::start("x", "y");
        other.enqueue_for_orchestrator(start, None).await.unwrap();
        std::fs::copy(elsewhere.file("b.db-wal"), folder.file("a.db-wal")).unwrap();
        let error = refusal(&folder, &folder.url("a.db")).await;
        assert!(matches!(error, SqliteError::Corrupt { .. }), "{error}");
    }
}

#[tokio::test]
async fn r10_12_a_log_that_is_gone_leaves_a_store_of_before() {
    let folder = Folder::new();
    let path = filled_and_killed(&folder, "a.db").await;
    std::fs::remove_file(folder.file("a.db-wal")).unwrap();
    let before = stranger_id(&path);
    let store = SqliteProvider::new(&url(&path), None).await.unwrap();
    store.list_instances().await.unwrap();
    drop(store);
    assert_eq!(before, stranger_id(&path), "a new store was made over the old one");
}

#[tokio::test]
async fn r10_4_a_log_left_by_a_killed_process_is_taken_up() {
    let folder = Folder::new();
    let path = filled_and_killed(&folder, "a.db").await;
    let store = SqliteProvider::new(&url(&path), None).await.unwrap();
    assert_eq!(store.get_queue_depths().await.unwrap().orchestrator_queue, 20);
}

fn stranger_id(path: &Path) -> Vec<u8> {
    stranger(path).query_row("SELECT store FROM identity", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn r10_12_a_database_of_something_else() {
    let folder = Folder::new();
    let path = folder.file("a.db");
    let connection = stranger(&path);
    connection
        .execute_batch("CREATE TABLE invoices (id); INSERT INTO invoices VALUES (1)")
        .unwrap();
    drop(connection);
    let error = refusal(&folder, &folder.url("a.db")).await;
    assert!(matches!(error, SqliteError::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("invoices"), "{error}");

    // In use by its owner, with a log.
    let connection = stranger(&path);
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.execute_batch("INSERT INTO invoices VALUES (2)").unwrap();
    assert!(folder.file("a.db-wal").exists());
    let error = refusal(&folder, &folder.url("a.db")).await;
    assert!(matches!(error, SqliteError::Foreign { .. }), "{error}");
    drop(connection);

    set_pragma(&path, "application_id", 77);
    let error = refusal(&folder, &folder.url("a.db")).await;
    assert!(error.to_string().contains("application id 77"), "{error}");
}

#[tokio::test]
async fn r10_7_other_versions_of_the_schema() {
    let folder = Folder::new();
    let path = filled(&folder, "a.db").await;
    set_pragma(&path, "user_version", 1_000);
    let error = refusal(&folder, &folder.url("a.db")).await;
    assert!(matches!(error, SqliteError::NewerSchema { found: 1_000, .. }), "{error}");
    assert!(error.to_string().contains("use a newer library"), "{error}");
    for garbage in [0, -1, i64::from(i32::MIN)] {
        set_pragma(&path, "user_version", garbage);
        let error = refusal(&folder, &folder.url("a.db")).await;
        assert!(matches!(error, SqliteError::Corrupt { .. }), "{garbage}: {error}");
    }
}

#[tokio::test]
async fn r10_7_a_table_that_is_gone() {
    let folder = Folder::new();
    let path = filled(&folder, "a.db").await;
    stranger(&path).execute_batch("DROP INDEX mailboxes_ready").unwrap();
    let error = refusal(&folder, &folder.url("a.db")).await;
    assert!(error.to_string().contains("mailboxes_ready"), "{error}");
}
