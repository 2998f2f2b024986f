//! Folders as they are, byte for byte; and stores worth damaging.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use duroxide::providers::{Provider, WorkItem};
use duroxide_sqlite::{SqliteError, SqliteProvider};

use super::{Folder, stranger};

/// All files of a folder with their contents.
pub(crate) fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|path| path.is_file());
    files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Opens what must not open: an error, which names the file, and nothing changed.
pub(crate) async fn refusal(folder: &Folder, url: &str) -> SqliteError {
    let before = contents(folder.path());
    let error = SqliteProvider::new(url, None).await.expect_err("this must not open");
    let text = error.to_string();
    assert!(text.contains(&folder.path().display().to_string()), "names no file: {text}");
    assert_eq!(before, contents(folder.path()), "{error}: the folder has changed");
    error
}

/// A message that starts an instance.
pub(crate) fn start(instance: &str, input: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: "Main".to_owned(),
        input: input.to_owned(),
        version: Some("1.0.0".to_owned()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

/// A store with some hundred rows, closed.
pub(crate) async fn filled(folder: &Folder, name: &str) -> PathBuf {
    let store = SqliteProvider::new(&folder.url(name), None).await.unwrap();
    for n in 0..200 {
        let input = format!("{name} {n} {}", "x".repeat(200));
        store.enqueue_for_orchestrator(start(&format!("{name}-{n}"), &input), None).await.unwrap();
    }
    drop(store);
    folder.file(name)
}

/// The same, but with its log still beside it, as a killed process leaves it.
pub(crate) async fn filled_and_killed(folder: &Folder, name: &str) -> PathBuf {
    let elsewhere = Folder::new();
    let store = SqliteProvider::new(&elsewhere.url(name), None).await.unwrap();
    for n in 0..20 {
        store.enqueue_for_orchestrator(start(&format!("{name}-{n}"), "x"), None).await.unwrap();
    }
    for ending in ["", "-wal"] {
        let file = format!("{name}{ending}");
        std::fs::copy(elsewhere.file(&file), folder.file(&file)).unwrap();
    }
    assert!(0 < std::fs::metadata(folder.file(&format!("{name}-wal"))).unwrap().len());
    folder.file(name)
}

/// Sets a mark in the header of a closed database.
pub(crate) fn set_pragma(path: &Path, name: &str, value: i64) {
    let connection = stranger(path);
    connection.pragma_update(None, name, value).unwrap();
}
