//! Folders of their own for tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// If set, the folder of a test that fails stays.
const KEEP: &str = "FLEET_KEEP";

/// A folder of its own, removed with everything in it when dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A folder among temporary ones.
    #[expect(clippy::new_without_default, reason = "makes a folder")]
    pub fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let now = crate::now_ms();
        let name = format!("duroxide-fleet-{now}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() && std::env::var_os(KEEP).is_some() {
            println!("kept: {}", self.0.display());
            return;
        }
        std::fs::remove_dir_all(&self.0).ok();
    }
}
