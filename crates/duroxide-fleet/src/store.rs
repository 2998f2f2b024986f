//! What a store brings along: how it is opened, and how its tables are read without it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use duroxide::providers::Provider;

/// A kind of store. A folder stands for one store of that kind, wherever its tables are.
#[async_trait]
pub trait Store: Sync {
    /// Opens the store of a folder.
    async fn open(&self, folder: &Path) -> Arc<dyn Provider>;

    /// All there is to know of a store, read with SQL.
    fn read(&self, folder: &Path) -> Tables;

    /// Rows that say something is still to be done: not at rest while there are any.
    fn open_work(&self, folder: &Path) -> i64;

    /// Looks at a store in use, now and then.
    fn watch(&self, _folder: &Path) {}
}

/// Where an instance stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Status of its latest execution.
    pub status: String,
    /// What came out, or what went wrong.
    pub output: Option<String>,
}

/// An event as it is stored.
#[derive(Debug, Clone)]
pub struct Event {
    /// Id of the instance.
    pub instance: String,
    /// Number of the execution.
    pub execution: u64,
    /// Its id there.
    pub event: u64,
    /// The event it answers.
    pub source: Option<u64>,
    /// When it was recorded, in milliseconds since the epoch.
    pub at_ms: u64,
    /// The rest.
    pub body: serde_json::Value,
}

/// What the tables of a store say.
#[derive(Debug, Default)]
pub struct Tables {
    /// Where each instance stands, by id.
    pub ends: HashMap<String, End>,
    /// All events.
    pub events: Vec<Event>,
    /// What should not be there when everything is over.
    pub leftovers: Vec<String>,
}

impl Tables {
    /// Events of a kind.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Event> {
        self.events.iter().filter(move |event| event.body["type"] == kind)
    }

    /// How late timers fired, in milliseconds; negative if early.
    pub fn lateness_ms(&self) -> Vec<i64> {
        let fired = self.of_kind("TimerFired");
        let due = |event: &Event| event.body["fire_at_ms"].as_i64().unwrap();
        fired.map(|event| event.at_ms as i64 - due(event)).collect()
    }

    /// An event by its place.
    pub(crate) fn by_place(&self) -> HashMap<(&str, u64, u64), &Event> {
        let place = |event: &'_ Event| (event.execution, event.event);
        let all = self.events.iter();
        all.map(|e| ((e.instance.as_str(), place(e).0, place(e).1), e)).collect()
    }
}
