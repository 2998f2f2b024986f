//! The story on a terminal: with colours if it is one, as plain text otherwise.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use duroxide::RuntimeOptions;

use crate::journal::{Line, Mark};
use crate::worker::Worker;
use crate::workflow::{ORDERS, STEPS, TIME_TO_RECONSIDER};

const BOLD: &str = "1";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const CYAN: &str = "36";
const GREY: &str = "90";

/// What was shown, and how.
pub(crate) struct Screen {
    has_colours: bool,
    /// So many lines of the journal were looked at.
    seen: usize,
    /// When worker 1, 2, … was started.
    started_us: Vec<u64>,
    /// Replays that were shown: worker, order, step.
    replays: BTreeSet<(usize, String, String)>,
}

impl Screen {
    /// An empty one.
    pub(crate) fn new() -> Self {
        let wants_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let has_colours = std::io::stdout().is_terminal() && !wants_none;
        Self { has_colours, seen: 0, started_us: Vec::new(), replays: BTreeSet::new() }
    }

    /// What this is about.
    pub(crate) fn title(&self, text: &str) {
        say(&self.paint(BOLD, text));
    }

    /// A worker was started.
    pub(crate) fn enter(&mut self, worker: &Worker) {
        self.started_us.push(worker.started_us);
        let who = format!("worker {}", worker.number);
        say(&format!("\n{}  process {}", self.paint(BOLD, &who), worker.process_id()));
    }

    /// A worker was killed.
    pub(crate) fn kill(&self, lines: &[Line], worker: usize, moment: &str) {
        say(&format!("  {}  {moment}", self.paint(RED, "SIGKILL")));
        for line in lines.iter().filter(|line| line.worker == worker && is_cut_off(lines, line)) {
            self.row(line, RED, "cut off", "begun, not ended");
        }
    }

    /// Something that needs no worker.
    pub(crate) fn aside(&self, text: &str) {
        say(&format!("  {text}"));
    }

    /// Shows what was added to the journal.
    pub(crate) fn news(&mut self, lines: &[Line]) {
        for line in &lines[self.seen.min(lines.len())..] {
            self.show(lines, line);
        }
        self.seen = lines.len();
    }

    /// Who did what: one column for each worker.
    pub(crate) fn table(&self, lines: &[Line]) {
        let mut heading = format!("\n{:<18}", "who did what");
        for worker in 1..=self.started_us.len() {
            heading += &format!("{:<18}", format!("worker {worker}"));
        }
        say(&self.paint(BOLD, heading.trim_end()));
        for order in ORDERS {
            let mut name = order;
            for step in STEPS {
                let about = |line: &&Line| line.order == order && line.step == step;
                if !lines.iter().any(|line| about(&line)) {
                    continue;
                }
                let mut row = format!("  {name:<6}{step:<10}");
                name = "";
                for worker in 1..=self.started_us.len() {
                    let (colour, text) = cell(lines, order, step, worker);
                    row += &self.paint(colour, &format!("{text:<18}"));
                }
                say(row.trim_end());
            }
        }
    }

    /// What became of the orders.
    pub(crate) fn outputs(&self, outputs: &[(&str, String)]) {
        say(&format!("\n{}", self.paint(BOLD, "outputs")));
        for (order, output) in outputs {
            say(&format!("  {order:<6}{output}"));
        }
    }

    /// The end, if all is well.
    pub(crate) fn verdict(&self, lines: &[Line], took: Duration) {
        let ran = lines.iter().filter(|line| line.mark == Mark::Ran).count();
        let (title, took) = (self.paint(GREEN, "right"), took.as_secs_f64());
        say(&format!(
            "\n{title}  Two kills, {took:.1} s, and {ran} effects in the world, each once."
        ));
        say("       An activity that had ended was never run again: its result was replayed.");
        say("       The one that was cut off was run again: activities run at least once.");
    }

    fn show(&mut self, lines: &[Line], line: &Line) {
        let step = line.step.as_str();
        match line.mark {
            Mark::Began => {
                if let Some(note) = self.taken_up(lines, line) {
                    self.row(line, GREEN, "again", &note);
                }
            }
            Mark::Ran => self.row(line, GREEN, "ran", &line.note),
            Mark::Failed => self.row(line, YELLOW, "failed", &line.note),
            Mark::Waits => {
                let note = format!("to {TIME_TO_RECONSIDER:?}; also waits for approval");
                self.row(line, CYAN, "set", &note);
            }
            Mark::Passed if step == "timer" => {
                self.row(line, CYAN, "fired", &set_before(lines, line));
            }
            Mark::Passed if step == "approval" => {
                self.row(line, CYAN, "received", "raised while no worker lived");
            }
            Mark::Passed if step == "Ship" => self.row(line, CYAN, "ended", "child orchestration"),
            Mark::Passed => {}
            Mark::Replayed => {
                let key = (line.worker, line.order.clone(), line.step.clone());
                if let Some(by) = done_before(lines, line)
                    && self.replays.insert(key)
                {
                    self.row(line, GREY, "replayed", &format!("from history: done by worker {by}"));
                }
            }
        }
    }

    /// How soon something was taken up again that a killed worker had in hand.
    fn taken_up(&self, lines: &[Line], line: &Line) -> Option<String> {
        let before = lines.iter().find(|other| {
            other.worker < line.worker
                && other.is(Mark::Began, &line.step, &line.order)
                && is_cut_off(lines, other)
        })?;
        let lease = RuntimeOptions::default().worker_lock_timeout.as_secs_f64();
        let left = lease - seconds(before.at_us, line.at_us);
        let (ms, by) = (self.ms_after_start(line), before.worker);
        Some(format!("{ms} ms after the restart; the lease of worker {by} had {left:.1} s to go"))
    }

    fn row(&self, line: &Line, colour: &str, what: &str, note: &str) {
        let ms = self.ms_after_start(line);
        let what = self.paint(colour, &format!("{what:<9}"));
        let (order, step) = (&line.order, &line.step);
        say(&format!("  {ms:>5} ms  {what} {order:<6} {step:<9} {note}"));
    }

    fn ms_after_start(&self, line: &Line) -> u64 {
        let started_us = self.started_us.get(line.worker - 1).copied().unwrap_or(line.at_us);
        line.at_us.saturating_sub(started_us) / 1000
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.has_colours { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Whether this is the beginning of an activity that has no end, its worker being gone.
fn is_cut_off(lines: &[Line], line: &Line) -> bool {
    // One worker has at most one attempt at an activity of an order at a time.
    let begun_here = |other: &&Line| {
        (other.worker, &other.order, &other.step) == (line.worker, &line.order, &line.step)
            && other.place > line.place
    };
    line.mark == Mark::Began
        && !lines
            .iter()
            .filter(begun_here)
            .any(|other| matches!(other.mark, Mark::Ran | Mark::Failed))
}

/// What a worker had to do with a step.
fn cell(lines: &[Line], order: &str, step: &str, worker: usize) -> (&'static str, String) {
    let here = lines
        .iter()
        .filter(|line| line.worker == worker && line.order == order && line.step == step);
    let (mut colour, mut words) = (GREY, Vec::new());
    for line in here.clone() {
        let (its_colour, word) = match (line.mark, step) {
            (Mark::Ran, _) => (GREEN, "ran"),
            (Mark::Failed, _) => (YELLOW, "failed"),
            (Mark::Began, _) if is_cut_off(lines, line) => (RED, "cut off"),
            (Mark::Waits, _) => (CYAN, "set"),
            (Mark::Passed, "timer") => (CYAN, "fired"),
            (Mark::Passed, "approval") => (CYAN, "received"),
            (Mark::Passed, "Ship") => (CYAN, "child ended"),
            _ => continue,
        };
        colour = its_colour;
        words.push(word);
    }
    let was_replayed = here.clone().any(|line| line.mark == Mark::Replayed);
    match words[..] {
        [] if was_replayed => (GREY, "replayed".to_owned()),
        [] => (GREY, "-".to_owned()),
        _ => (colour, words.join(", ")),
    }
}

/// The earlier worker that got past a step first, if it was an earlier one: within one worker, too,
/// every turn replays the ones before, but that is not what we are here to see.
fn done_before(lines: &[Line], line: &Line) -> Option<usize> {
    let first = lines.iter().find(|other| other.is(Mark::Passed, &line.step, &line.order))?;
    (first.worker < line.worker).then_some(first.worker)
}

/// When the timer that fired was set.
fn set_before(lines: &[Line], line: &Line) -> String {
    match lines.iter().find(|other| other.is(Mark::Waits, &line.step, &line.order)) {
        Some(set) => {
            let after = seconds(set.at_us, line.at_us);
            format!("{after:.2} s after worker {} set it to {TIME_TO_RECONSIDER:?}", set.worker)
        }
        None => String::new(),
    }
}

fn seconds(from_us: u64, to_us: u64) -> f64 {
    Duration::from_micros(to_us.saturating_sub(from_us)).as_secs_f64()
}

/// Prints a line; nobody has to listen.
fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").ok();
}
