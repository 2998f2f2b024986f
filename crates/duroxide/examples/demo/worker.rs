//! A worker in a process of its own: how it is started and killed, and what it does.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::Runtime;
use tokio::sync::oneshot;

use crate::folder::{journal_path, store_url};
use crate::journal::{Journal, now_us};
use crate::{Failure, workflow};

/// What the narrator says to a worker that may go home.
const GO_HOME: &[u8] = b"go home";

/// The process, as the narrator holds it. Killed when dropped.
pub(crate) struct Worker {
    /// The first is 1.
    pub(crate) number: usize,
    /// When it was started, in microseconds since 1970.
    pub(crate) started_us: u64,
    process: Child,
}

impl Worker {
    /// Starts a process that works on the files in `folder`.
    pub(crate) fn start(number: usize, folder: &Path) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("worker").arg(number.to_string()).arg(folder).stdin(Stdio::piped());
        if std::env::var_os("RUST_LOG").is_none() {
            command.env("RUST_LOG", "error");
        }
        Ok(Self { number, started_us: now_us(), process: command.spawn()? })
    }

    /// Its process id.
    pub(crate) fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// An error if it has ended by itself.
    pub(crate) fn check_alive(&mut self) -> Result<(), Failure> {
        match self.process.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("worker {} ended by itself: {status}", self.number).into()),
        }
    }

    /// SIGKILL: the process gets no chance to say or save anything.
    pub(crate) fn kill(mut self) -> Result<(), Failure> {
        self.check_alive()?;
        self.process.kill()?;
        let status = self.process.wait()?;
        if was_killed(status) {
            Ok(())
        } else {
            Err(format!("worker {} was to be killed, but: {status}", self.number).into())
        }
    }

    /// Lets it end in order.
    pub(crate) fn dismiss(mut self) -> Result<(), Failure> {
        if let Some(mut ear) = self.process.stdin.take() {
            ear.write_all(GO_HOME)?;
        }
        let status = self.process.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("worker {} ended badly: {status}", self.number).into())
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Both do nothing to a process that has been waited for.
        if let Err(error) = self.process.kill().and_then(|()| self.process.wait()) {
            eprintln!("worker {}: {error}", self.number);
        }
    }
}

/// The process itself: a runtime on the file, until told to go home. If the narrator is gone without
/// a word, so is the worker.
#[tokio::main]
pub(crate) async fn work(number: &str, folder: &Path) -> Result<(), Failure> {
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || {
        let mut heard = Vec::new();
        let outcome = std::io::stdin().read_to_end(&mut heard);
        if outcome.is_err() || heard != GO_HOME || tell.send(()).is_err() {
            std::process::exit(1);
        }
    });
    let journal = Journal::open(&journal_path(folder), number.parse()?)?;
    let store = Arc::new(SqliteProvider::new(&store_url(folder), None).await?);
    let activities = workflow::activities(&journal);
    let orchestrations = workflow::orchestrations(&journal);
    let runtime = Runtime::start_with_store(store, activities, orchestrations).await;
    told.await?;
    runtime.shutdown(None).await;
    Ok(())
}

#[cfg(unix)]
fn was_killed(status: ExitStatus) -> bool {
    std::os::unix::process::ExitStatusExt::signal(&status) == Some(9)
}

#[cfg(not(unix))]
fn was_killed(status: ExitStatus) -> bool {
    !status.success()
}
