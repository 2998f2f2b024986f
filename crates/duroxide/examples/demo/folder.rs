//! A fresh folder for the files of this run, removed whatever becomes of the run.
//!
//! A process that is interrupted or killed cannot clean up after itself. So a second process, the
//! sweeper, waits until the first is gone (its end of a pipe closes) and then removes the folder.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Failure, journal};

const PATIENCE: Duration = Duration::from_secs(10);

/// The folder, until it is removed or dropped.
pub(crate) struct Folder {
    path: PathBuf,
    sweeper: Child,
}

impl Folder {
    /// Makes the folder, and starts the sweeper.
    pub(crate) fn fresh() -> Result<Self, Failure> {
        let name = format!("duroxide-demo-{}-{}", std::process::id(), journal::now_us());
        let path = std::env::temp_dir().join(name);
        let mut sweeper = Command::new(std::env::current_exe()?);
        sweeper.arg("sweeper").arg(&path);
        sweeper.stdin(Stdio::piped()).stdout(Stdio::null());
        // Out of reach of Ctrl-C, which is sent to the whole group.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut sweeper, 0);
        // First the sweeper, then the folder: there is no instant at which it could stay behind.
        let folder = Self { sweeper: sweeper.spawn()?, path };
        std::fs::create_dir(&folder.path)
            .map_err(|error| format!("cannot make {}: {error}", folder.path.display()))?;
        Ok(folder)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, and makes sure of that.
    pub(crate) fn remove(mut self) -> Result<(), Failure> {
        drop(self.sweeper.stdin.take());
        let status = self.sweeper.wait()?;
        if !status.success() || self.path.exists() {
            return Err(format!("{} is still there ({status})", self.path.display()).into());
        }
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(self.sweeper.stdin.take());
        if let Err(error) = self.sweeper.wait() {
            eprintln!("sweeper: {error}");
        }
    }
}

/// The database in the folder.
pub(crate) fn store_url(folder: &Path) -> String {
    let path = folder.join("orders.db").display().to_string();
    format!("sqlite:{}?mode=rwc", path.replace('%', "%25").replace('?', "%3F"))
}

/// The journal in the folder.
pub(crate) fn journal_path(folder: &Path) -> PathBuf {
    folder.join("journal.txt")
}

/// The sweeper: waits until the narrator is gone, then removes the folder.
pub(crate) fn sweep(folder: &Path) -> Result<(), Failure> {
    std::io::stdin().read_to_end(&mut Vec::new())?;
    // A worker may be about to end, and write until then.
    let deadline = Instant::now() + PATIENCE;
    loop {
        match std::fs::remove_dir_all(folder) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) if Instant::now() > deadline => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
