//! Who has the store open: each owner keeps a file beside the database locked as long as it lives.
//!
//! The kernel lets go of a lock when its process ends, however it ends. So a file that can be locked
//! belonged to a process that is gone, and its leases are free at once instead of when they run out.
//! Whoever was only slow is fenced off by its tokens.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Our own place among the owners, until dropped.
#[derive(Debug)]
pub(crate) struct Owner {
    /// Names this owner in leases.
    pub(crate) id: i64,
    /// Locked file; `None` for a store in memory, which nobody shares.
    held: Option<(PathBuf, File)>,
}

impl Owner {
    /// The owner of a store nobody else can open.
    pub(crate) fn alone(id: i64) -> Self {
        Self { id, held: None }
    }

    /// Makes and locks the file that says we live.
    pub(crate) fn of_file(database: &Path, id: i64) -> io::Result<Self> {
        let path = lock_file(database, id);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
        file.lock()?;
        Ok(Self { id, held: Some((path, file)) })
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.held {
            // Left behind, it does no harm: the next owner finds it free and removes it.
            if let Err(error) = std::fs::remove_file(path) {
                tracing::debug!(target: "duroxide::providers", %error, "lock file not removed");
            }
        }
    }
}

/// Whether another owner still lives. A file that cannot be looked at counts as living: its leases
/// run out by time.
pub(crate) fn lives(database: &Path, id: i64) -> bool {
    let path = lock_file(database, id);
    let file = match OpenOptions::new().write(true).open(&path) {
        Ok(file) => file,
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    match file.try_lock() {
        Ok(()) => {
            // Removed while we hold it. Should this fail, somebody else removes it.
            if let Err(error) = std::fs::remove_file(&path) {
                tracing::debug!(target: "duroxide::providers", %error, "lock file not removed");
            }
            false
        }
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
    }
}

/// A fresh id that no other owner has.
pub(crate) fn fresh_id() -> i64 {
    let bits = u128::from_be_bytes(crate::token::fresh_secret());
    (bits as u64 >> 1).max(1) as i64
}

fn lock_file(database: &Path, id: i64) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(format!("-owner-{id:x}"));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_lives_until_dropped() {
        let folder = std::env::temp_dir().join(format!("duroxide-owners-{:x}", fresh_id()));
        std::fs::create_dir(&folder).unwrap();
        let database = folder.join("a.db");
        let owner = Owner::of_file(&database, 7).unwrap();
        assert!(lives(&database, 7));
        assert!(!lives(&database, 8));
        drop(owner);
        assert!(!lives(&database, 7));
        std::fs::write(lock_file(&database, 9), "").unwrap(); // as a killed process leaves it
        assert!(!lives(&database, 9));
        std::fs::remove_dir(&folder).unwrap(); // empty again
    }
}
