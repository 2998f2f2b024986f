//! What really happened, outside of any history: a file of lines, each appended by one write.
//!
//! The journal stands for the world outside: banks and shelves do not roll back when a process dies.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use duroxide::OrchestrationContext;

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// An activity began.
    Began,
    /// An activity ended well: its effect is there.
    Ran,
    /// An activity ended with an error.
    Failed,
    /// An orchestration began to wait.
    Waits,
    /// An orchestration got past a step for the first time.
    Passed,
    /// An orchestration got past a step again, with the answer that history remembers.
    Replayed,
}

const MARKS: [(Mark, &str); 6] = [
    (Mark::Began, "began"),
    (Mark::Ran, "ran"),
    (Mark::Failed, "failed"),
    (Mark::Waits, "waits"),
    (Mark::Passed, "passed"),
    (Mark::Replayed, "replayed"),
];

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// Its place in the journal; clocks may be set back, this does not.
    pub(crate) place: usize,
    /// When, in microseconds since 1970.
    pub(crate) at_us: u64,
    /// Number of the worker that wrote it.
    pub(crate) worker: usize,
    /// What it is about.
    pub(crate) mark: Mark,
    /// Which of the steps.
    pub(crate) step: String,
    /// Which order.
    pub(crate) order: String,
    /// What the world answered.
    pub(crate) note: String,
}

impl Line {
    /// Whether this is about that step of that order.
    pub(crate) fn is(&self, mark: Mark, step: &str, order: &str) -> bool {
        self.mark == mark && self.step == step && self.order == order
    }
}

/// The journal, as a worker holds it.
#[derive(Clone)]
pub(crate) struct Journal {
    path: PathBuf,
    file: Arc<File>,
    worker: usize,
}

impl Journal {
    /// Opens it, or begins a new one.
    pub(crate) fn open(path: &Path, worker: usize) -> std::io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { path: path.to_owned(), file: Arc::new(file), worker })
    }

    /// Notes that an activity begins; for the how-manieth time.
    pub(crate) fn begin(&self, activity: &str, order: &str) -> usize {
        self.write(Mark::Began, activity, order, "");
        let lines = read(&self.path).unwrap_or_default();
        lines.iter().filter(|line| line.is(Mark::Began, activity, order)).count()
    }

    /// Notes that an orchestration begins to wait, unless it only remembers. This and the next are
    /// for the show: other orchestrations leave the world alone.
    pub(crate) fn waits(&self, ctx: &OrchestrationContext, step: &str, order: &str) {
        if !ctx.is_replaying() {
            self.write(Mark::Waits, step, order, "");
        }
    }

    /// Notes that an orchestration is past a step, and whether it has been there before.
    pub(crate) fn passed(&self, ctx: &OrchestrationContext, step: &str, order: &str) {
        let mark = if ctx.is_replaying() { Mark::Replayed } else { Mark::Passed };
        self.write(mark, step, order, "");
    }

    /// Adds a line. A worker without a journal is of no use here: it ends.
    pub(crate) fn write(&self, mark: Mark, step: &str, order: &str, note: &str) {
        let mark = MARKS.iter().find(|known| known.0 == mark).map_or("", |known| known.1);
        let (at_us, worker) = (now_us(), self.worker);
        let line = format!("{at_us}\t{worker}\t{mark}\t{step}\t{order}\t{note}\n");
        if let Err(error) = self.file.as_ref().write_all(line.as_bytes()) {
            eprintln!("worker: FAILED: {}: {error}", self.path.display());
            std::process::exit(1);
        }
    }
}

/// All complete lines so far; none if there is no journal yet.
pub(crate) fn read(path: &Path) -> std::io::Result<Vec<Line>> {
    match std::fs::read_to_string(path) {
        Ok(text) => {
            let complete = text.rfind('\n').map_or("", |end| &text[..end]);
            let lines = complete.lines().enumerate();
            lines.map(|(at, text)| parse(at, text).ok_or_else(|| unreadable(text))).collect()
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The time, in microseconds since 1970.
pub(crate) fn now_us() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX)
}

fn parse(place: usize, text: &str) -> Option<Line> {
    let mut fields = text.split('\t');
    let mut next = || fields.next();
    Some(Line {
        place,
        at_us: next()?.parse().ok()?,
        worker: next()?.parse().ok()?,
        mark: next().and_then(|name| MARKS.iter().find(|known| known.1 == name))?.0,
        step: next()?.to_owned(),
        order: next()?.to_owned(),
        note: next()?.to_owned(),
    })
}

fn unreadable(text: &str) -> std::io::Error {
    std::io::Error::other(format!("not a line of the journal: {text:?}"))
}
