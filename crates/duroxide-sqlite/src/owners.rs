//! Which processes have the store open: each is an owner and keeps a file beside the database locked
//! as long as it lives.
//!
//! The kernel releases a lock when its process ends, however it ends. So a file that can be locked
//! belonged to a process that is gone, and its leases are free at once instead of when they run out.
//! A process that was only slow is fenced off by its tokens.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// What stands between the name of a database and the id of an owner, in the name of its file.
const MARK: &str = "-owner-";

/// This process among the owners, until dropped.
#[derive(Debug)]
pub(crate) struct Owner {
    /// Names this owner in leases.
    pub(crate) id: i64,
    /// Locked file; `None` for a store in memory, which no other process shares.
    held: Option<(PathBuf, File)>,
}

impl Owner {
    /// The owner of a store that no other process can open.
    pub(crate) fn alone(id: i64) -> Self {
        Self { id, held: None }
    }

    /// Makes and locks the file that says that this process lives.
    pub(crate) fn of_file(database: &Path, id: i64) -> io::Result<Self> {
        let path = lock_file(database, id);
        loop {
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
            file.lock()?;
            // Before it was locked, a sweep may have found it free and removed it.
            if path.exists() {
                return Ok(Self { id, held: Some((path, file)) });
            }
        }
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
            // Removed while it is locked here. Should this fail, another process removes it.
            if let Err(error) = std::fs::remove_file(&path) {
                tracing::debug!(target: "duroxide::providers", %error, "lock file not removed");
            }
            false
        }
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
    }
}

/// Removes the files of owners that died before the store knew of them, so that no process asks.
pub(crate) fn sweep(database: &Path) {
    let (Some(folder), Some(name)) = (database.parent(), database.file_name()) else { return };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    // Should this fail, the files do no harm.
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let prefix = format!("{}{MARK}", name.to_string_lossy());
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        if let Some(id) = id.and_then(|id| i64::from_str_radix(id, 16).ok()) {
            lives(database, id);
        }
    }
}

/// A fresh id that no other owner has.
pub(crate) fn fresh_id() -> i64 {
    let bits = u128::from_be_bytes(crate::token::fresh_secret());
    (bits as u64 >> 1).max(1) as i64
}

fn lock_file(database: &Path, id: i64) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(format!("{MARK}{id:x}"));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

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

    #[test]
    fn a_sweep_takes_what_the_dead_left_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("duroxide-owners-{:x}", fresh_id()));
        std::fs::create_dir(&folder).unwrap();
        let database = folder.join("a.db");
        let owner = Owner::of_file(&database, 7).unwrap();
        let others = [folder.join("b.db-owner-9"), folder.join("a.db-owner-x")];
        others.iter().for_each(|other| std::fs::write(other, "").unwrap());
        std::fs::write(lock_file(&database, 9), "").unwrap(); // killed before its row was written
        sweep(&database);
        assert!(!lock_file(&database, 9).exists());
        assert!(lives(&database, 7) && others.iter().all(|other| other.exists()));
        drop(owner);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn owners_that_begin_during_sweeps_live() {
        let folder = std::env::temp_dir().join(format!("duroxide-owners-{:x}", fresh_id()));
        std::fs::create_dir(&folder).unwrap();
        let database = folder.join("a.db");
        let done = AtomicBool::new(false);
        let lived = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    sweep(&database);
                }
            });
            let begin = |id| Owner::of_file(&database, id).map(|_owner| lives(&database, id));
            let lived: Vec<_> = (1..=500).map(begin).collect();
            done.store(true, Ordering::Relaxed);
            lived
        });
        assert!(lived.into_iter().all(|lived| lived.unwrap()));
        std::fs::remove_dir(&folder).unwrap();
    }
}
