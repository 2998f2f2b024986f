//! What all processes of a test write down: one file, one line and one `write` per event.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use duroxide::clock::{Clock, WallClock};

/// The journal of a folder, to write in.
#[derive(Clone)]
pub struct Journal {
    file: std::sync::Arc<File>,
    path: PathBuf,
}

/// A line: time, process, words.
#[derive(Debug, Clone)]
pub struct Line {
    /// Milliseconds since the epoch.
    pub at_ms: u64,
    /// The process that wrote it.
    pub process: u32,
    /// What it says.
    pub words: Vec<String>,
}

impl Journal {
    /// The journal of a folder; made if there is none.
    pub fn open(folder: &Path) -> Self {
        let path = folder.join("journal");
        let file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        Self { file: file.into(), path }
    }

    /// Writes a line; the words of `text` are separated by spaces.
    pub fn note(&self, text: impl fmt::Display) {
        let line = format!("{} {} {text}\n", now_ms(), std::process::id());
        (&*self.file).write_all(line.as_bytes()).unwrap();
    }

    /// All lines so far.
    pub fn read(&self) -> Vec<Line> {
        let text = std::fs::read_to_string(&self.path).unwrap();
        // A line that is being written has no end yet.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(Line::parse).collect()
    }

    /// Waits until the lines say what is waited for.
    pub fn wait_for<T>(
        &self,
        what: &str,
        limit: Duration,
        find: impl Fn(&[Line]) -> Option<T>,
    ) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = find(&self.read()) {
                return found;
            }
            assert!(began.elapsed() < limit, "no sign of {what} in {limit:?}\n{}", self.tail());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn tail(&self) -> String {
        let lines = self.read();
        let last = lines.iter().skip(lines.len().saturating_sub(20));
        last.map(|line| format!("{line:?}\n")).collect()
    }
}

impl Line {
    fn parse(line: &str) -> Self {
        let mut words = line.split(' ').map(str::to_owned);
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).unwrap();
        let (at_ms, process) = (number(), number() as u32);
        Self { at_ms, process, words: words.collect() }
    }

    /// The word at a place, or nothing.
    pub fn word(&self, place: usize) -> &str {
        self.words.get(place).map_or("", String::as_str)
    }

    /// Whether the line begins with these words.
    pub fn says(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(place, word)| self.word(place) == *word)
    }
}

/// Middle and largest of some numbers.
pub fn middle_and_max(numbers: &[u64]) -> (u64, u64) {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    (sorted.get(sorted.len() / 2).copied().unwrap_or(0), sorted.last().copied().unwrap_or(0))
}

/// The time of all journals.
pub fn now_ms() -> u64 {
    WallClock.now_ms()
}
