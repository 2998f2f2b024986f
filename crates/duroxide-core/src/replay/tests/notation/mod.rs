//! A notation for histories and messages: one line each, made of words and quoted texts.
//!
//! ```text
//! stamp 0.1.30                     settings of the execution come first (see `Settings`)
//! 1 started O v1.0.0 "in"          then its events: id, word, what the event says
//! 2 activity A "in" tag=gpu        optional parts are `name=value`
//! 3 activity-completed 2 "a"       answers name the schedule event they answer
//! 4 timer 60s                      times count from the turn's time
//! ```

mod parse;
mod print;

use crate::model::version::BUILD_VERSION;
use crate::model::{Event, EventKind, KvEntry, WorkItem};
use std::collections::HashMap;

pub(crate) use parse::Words;
pub(crate) use print::{action, events, result, work_item};

/// The time of a turn that does not say otherwise, milliseconds since the epoch.
pub(crate) const NOW_MS: u64 = 1_000_000;
/// The instance of every case.
pub(crate) const INSTANCE: &str = "i";

/// A history as written, with the settings above it.
pub(crate) struct Story {
    pub(crate) settings: Settings,
    pub(crate) events: Vec<Event>,
}

/// What a case may set in lines before the events.
pub(crate) struct Settings {
    /// `stamp 0.1.30`: version of the library that wrote the events.
    pub(crate) stamp: String,
    /// `exec 2`: the execution that runs.
    pub(crate) execution_id: u64,
    /// `persisted 3`: events stored before this turn; all, if not said.
    pub(crate) persisted_len: Option<usize>,
    /// `now 5s`: time of the turn.
    pub(crate) now_ms: u64,
    /// `kv k "v" 0s`: an entry of completed executions.
    pub(crate) kv_snapshot: HashMap<String, KvEntry>,
    /// `system-calls`: they are answered within the turn.
    pub(crate) system_calls: bool,
    /// `foreign-wait-fails`.
    pub(crate) foreign_wait_fails: bool,
}

impl Story {
    pub(crate) fn read(text: &str) -> Self {
        let mut story = Self { settings: Settings::default(), events: Vec::new() };
        for line in lines(text) {
            let mut words = Words::of(line);
            let first = words.word();
            match first.parse::<u64>().ok().or((first == "max").then_some(u64::MAX)) {
                Some(event_id) => story.push(event_id, &mut words),
                None => story.settings.take(&first, &mut words),
            }
            words.expect_end(line);
        }
        story
    }

    fn push(&mut self, event_id: u64, words: &mut Words) {
        let (source_event_id, kind) = parse::event(words);
        let settings = &self.settings;
        self.events.push(event(settings, event_id, source_event_id, kind));
    }
}

impl Settings {
    fn take(&mut self, setting: &str, words: &mut Words) {
        match setting {
            "stamp" => self.stamp = words.word(),
            "exec" => self.execution_id = words.number(),
            "persisted" => self.persisted_len = Some(words.number() as usize),
            "now" => self.now_ms = words.time(),
            "system-calls" => self.system_calls = true,
            "foreign-wait-fails" => self.foreign_wait_fails = true,
            "kv" => {
                let (key, value, last_updated_at_ms) = (words.word(), words.word(), words.time());
                self.kv_snapshot.insert(key, KvEntry { value, last_updated_at_ms });
            }
            other => panic!("no such setting: {other}"),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            stamp: BUILD_VERSION.to_owned(),
            execution_id: 1,
            persisted_len: None,
            now_ms: NOW_MS,
            kv_snapshot: HashMap::new(),
            system_calls: false,
            foreign_wait_fails: false,
        }
    }
}

/// Reads messages, one per line. `exec 2` before one says which execution it is for.
pub(crate) fn messages(text: &str, execution_id: u64) -> Vec<WorkItem> {
    let read = |line| {
        let mut words = Words::of(line);
        let item = parse::message(&mut words, execution_id);
        words.expect_end(line);
        item
    };
    lines(text).map(read).collect()
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn event(
    settings: &Settings,
    event_id: u64,
    source_event_id: Option<u64>,
    kind: EventKind,
) -> Event {
    Event {
        event_id,
        source_event_id,
        instance_id: INSTANCE.to_owned(),
        execution_id: settings.execution_id,
        timestamp_ms: NOW_MS,
        duroxide_version: settings.stamp.clone(),
        kind,
    }
}
