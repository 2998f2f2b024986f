//! Processes of a fleet: this test binary once more, in a role.
//!
//! A process ends when its standard input does. So none outlives the test, however that ends.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::roles::{FOLDER, ROLE};

/// Longest time anything may take that ought to happen soon, on a machine that is busy with other
/// things.
pub const SOON: Duration = Duration::from_secs(120);

/// Lets one test of this binary run at a time: they need the machine.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process in a role, killed when dropped.
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    log: PathBuf,
}

impl Process {
    /// Starts a process on a folder's store. What it prints goes to `<role>-<id>.log`.
    pub fn start(folder: &Path, role: &str, settings: &[(&str, &str)]) -> Self {
        static STARTED: Mutex<u32> = Mutex::new(0);
        let number = {
            let mut started = STARTED.lock().unwrap();
            *started += 1;
            *started
        };
        let log = folder.join(format!("{role}-{number}.log"));
        let output = File::create(&log).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "role", "--ignored", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(FOLDER, folder)
            .envs(settings.iter().copied())
            .stdin(Stdio::piped())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        Self { stdin: child.stdin.take(), child, log }
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Tells it something.
    pub fn tell(&mut self, line: &str) {
        self.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// SIGKILL; returns when the process is gone.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGSTOP: it lives, but does nothing.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    /// Asks it to end, and expects that it does, in good order.
    pub fn finish(mut self) {
        let status = self.close();
        assert!(status.success(), "{status}: {}", self.read_log());
    }

    /// Asks it to end; how it did.
    pub fn close(&mut self) -> ExitStatus {
        self.stdin = None;
        self.wait()
    }

    /// How it ended by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < 2 * SOON, "does not end: {}", self.read_log());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// What it printed.
    pub fn read_log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.id().to_string()]).status();
        assert!(status.unwrap().success(), "kill {signal}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
