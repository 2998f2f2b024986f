//! Instances and their executions: what outlives the queues.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use semver::Version;

use super::history::History;
use super::kv::Kv;

/// An instance id, shared by all that refer to it.
pub(super) type Id = Arc<str>;

/// Status of an execution that has not ended.
pub(super) const RUNNING: &str = "Running";

/// All stored about one instance id. Histories and values can exist before the row does (R8.44).
#[derive(Debug, Default)]
pub(super) struct Instance {
    pub(super) row: Option<Row>,
    pub(super) executions: BTreeMap<u64, Execution>,
    pub(super) kv: Kv,
    /// Queue position of the first message of the turn that brought it into being: no other has it
    /// (R8.143). 0 until then.
    pub(super) incarnation: u64,
    /// Number of its latest commit among all commits of the store (R8.134).
    pub(super) last_commit: u64,
}

/// The instance row, made by the first commit that brings name and version (R8.43).
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) current_execution: u64,
    pub(super) parent: Option<Id>,
    pub(super) custom_status: Option<String>,
    pub(super) custom_status_version: u64,
    pub(super) created_at: u64,
    pub(super) updated_at: u64,
    /// Position among all rows ever made; times can coincide, this cannot.
    serial: u64,
}

/// One execution with its history.
#[derive(Debug)]
pub(super) struct Execution {
    pub(super) status: String,
    pub(super) output: Option<String>,
    pub(super) pin: Option<Version>,
    pub(super) started_at: u64,
    pub(super) completed_at: Option<u64>,
    pub(super) history: History,
}

impl Execution {
    /// An execution that begins now.
    pub(super) fn new(now: u64) -> Self {
        Self {
            status: RUNNING.to_owned(),
            output: None,
            pin: None,
            started_at: now,
            completed_at: None,
            history: History::default(),
        }
    }

    /// Whether it has not ended.
    pub(super) fn is_running(&self) -> bool {
        self.status == RUNNING
    }
}

impl Instance {
    /// The execution a turn belongs to: the row's, else the newest one (R8.24, R8.25).
    pub(super) fn current(&self) -> Option<(u64, &Execution)> {
        match &self.row {
            Some(row) => {
                let number = row.current_execution;
                self.executions.get(&number).map(|execution| (number, execution))
            }
            None => self.newest(),
        }
    }

    /// Whether its current execution has completed or failed. One that continues as new goes on.
    pub(super) fn has_ended(&self) -> bool {
        self.current().is_some_and(|(_, execution)| {
            matches!(execution.status.as_str(), "Completed" | "Failed")
        })
    }

    /// The execution with the highest number (R8.95).
    pub(super) fn newest(&self) -> Option<(u64, &Execution)> {
        self.executions.last_key_value().map(|(number, execution)| (*number, execution))
    }

    /// Whether a turn can run without a start message: there is a row, or a start event (R8.25).
    pub(super) fn is_known(&self) -> bool {
        self.row.is_some() || self.newest().is_some_and(|(_, e)| e.history.start().is_some())
    }

    /// Whether its current execution has not ended.
    pub(super) fn is_running(&self) -> bool {
        self.current().is_some_and(|(_, execution)| execution.is_running())
    }

    /// When its current execution ended.
    pub(super) fn completed_at(&self) -> Option<u64> {
        self.current()?.1.completed_at
    }

    /// Number of stored events.
    pub(super) fn event_count(&self) -> u64 {
        self.executions.values().map(|execution| execution.history.raw().len() as u64).sum()
    }
}

/// All instances, with the orders in which they are asked for.
#[derive(Debug, Default)]
pub(super) struct Instances {
    by_id: HashMap<Id, Instance>,
    /// Rows in order of creation.
    by_age: BTreeMap<u64, Id>,
    /// Rows that name a parent, in order of creation.
    children: HashMap<Id, BTreeMap<u64, Id>>,
    next_serial: u64,
}

impl Instances {
    pub(super) fn get(&self, id: &str) -> Option<&Instance> {
        self.by_id.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut Instance> {
        self.by_id.get_mut(id)
    }

    /// The instance, made empty if there is nothing yet.
    pub(super) fn entry(&mut self, id: &Id) -> &mut Instance {
        self.by_id.entry(Id::clone(id)).or_default()
    }

    /// The row of an instance.
    pub(super) fn row(&self, id: &str) -> Option<&Row> {
        self.get(id)?.row.as_ref()
    }

    /// The shared form of an id.
    pub(super) fn shared_id(&self, id: &str) -> Option<Id> {
        self.by_id.get_key_value(id).map(|(id, _)| Id::clone(id))
    }

    /// Everything stored, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Id, &Instance)> {
        self.by_id.iter()
    }

    /// Instances with a row, oldest first.
    pub(super) fn rows(&self) -> impl DoubleEndedIterator<Item = (&Id, &Instance)> {
        self.by_age.values().filter_map(|id| self.by_id.get_key_value(id))
    }

    /// Makes the row of an instance (R8.43).
    pub(super) fn create_row(&mut self, id: &Id, row: NewRow, now: u64) {
        let serial = self.next_serial;
        self.next_serial += 1;
        self.by_age.insert(serial, Id::clone(id));
        if let Some(parent) = &row.parent {
            self.children.entry(Id::clone(parent)).or_default().insert(serial, Id::clone(id));
        }
        self.entry(id).row = Some(Row {
            name: row.name,
            version: row.version,
            current_execution: row.current_execution,
            parent: row.parent,
            custom_status: None,
            custom_status_version: 0,
            created_at: now,
            updated_at: now,
            serial,
        });
    }

    /// Removes everything stored about an instance.
    pub(super) fn remove(&mut self, id: &str) -> Option<Instance> {
        let instance = self.by_id.remove(id)?;
        if let Some(row) = &instance.row {
            self.by_age.remove(&row.serial);
            if let Some(parent) = &row.parent {
                self.forget_child(parent, row.serial);
            }
        }
        Some(instance)
    }

    /// Direct children, oldest first.
    pub(super) fn children(&self, id: &str) -> impl Iterator<Item = &Id> {
        self.children.get(id).into_iter().flat_map(BTreeMap::values)
    }

    /// An instance and its descendants, level by level; just the id if it is unknown (R8.97).
    pub(super) fn tree(&self, root: &str) -> Vec<Id> {
        let root = self.shared_id(root).unwrap_or_else(|| Id::from(root));
        let mut seen = HashSet::from([Id::clone(&root)]);
        let mut tree = vec![Id::clone(&root)];
        let mut to_visit = VecDeque::from([root]);
        while let Some(id) = to_visit.pop_front() {
            for child in self.children(&id) {
                if seen.insert(Id::clone(child)) {
                    tree.push(Id::clone(child));
                    to_visit.push_back(Id::clone(child));
                }
            }
        }
        tree
    }

    fn forget_child(&mut self, parent: &str, serial: u64) {
        if let Some(siblings) = self.children.get_mut(parent) {
            siblings.remove(&serial);
            if siblings.is_empty() {
                self.children.remove(parent);
            }
        }
    }
}

/// What a row begins with.
#[derive(Debug)]
pub(super) struct NewRow {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) current_execution: u64,
    pub(super) parent: Option<Id>,
}
