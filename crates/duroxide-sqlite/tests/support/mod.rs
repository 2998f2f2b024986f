//! Folders for stores, removed when dropped; and a store's file as a stranger sees it.
#![allow(dead_code)] // Each test binary uses a part.

pub(crate) mod again;
pub(crate) mod files;
pub(crate) mod sampler;
pub(crate) mod workload;

use std::path::{Path, PathBuf};

use rusqlite::Connection;

/// A folder of its own, removed with everything in it when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        Self::inside(&std::env::temp_dir())
    }

    /// A folder on a file system without a disk, if there is one: for tests that open a lot.
    pub(crate) fn fast() -> Self {
        let memory = Path::new("/dev/shm");
        Self::inside(&if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() })
    }

    /// A folder inside another.
    pub(crate) fn inside(folder: &Path) -> Self {
        let random = rusqlite::Connection::open_in_memory()
            .unwrap()
            .query_row("SELECT hex(randomblob(8))", [], |row| row.get::<_, String>(0))
            .unwrap();
        let path = folder.join(format!("duroxide-sqlite-{random}"));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A database file in the folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The URL that opens it, or creates it.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("sqlite:{}?mode=rwc", self.file(name).display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// A connection that knows nothing of the provider.
pub(crate) fn stranger(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    connection
}
