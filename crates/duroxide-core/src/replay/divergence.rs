//! Where code and history parted, for people and tools.

use std::fmt;
use std::panic::Location;

use crate::context::Emitted;
use crate::model::{Event, EventKind};

/// How many agreeing rows a report shows before the divergence.
const CONTEXT_ROWS: usize = 8;

/// What history recorded and what the code did, side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DivergenceReport {
    /// The instance.
    pub instance: String,
    /// Its execution.
    pub execution_id: u64,
    /// Registered name of the code.
    pub orchestration: String,
    /// Version of the code.
    pub version: String,
    /// The error's text.
    pub message: String,
    /// The payload that could not be decoded, if that is what led the code astray.
    pub undecoded: Option<String>,
    /// The last rows on which both agreed, then the one on which they do not.
    pub rows: Vec<DivergenceRow>,
}

/// One step of history and code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DivergenceRow {
    /// Event id, if history has this step.
    pub event_id: Option<u64>,
    /// What history recorded.
    pub recorded: Option<String>,
    /// What the code did.
    pub emitted: Option<String>,
    /// Where in the code.
    pub location: Option<SourceLocation>,
    /// Whether this is where they parted.
    pub diverges: bool,
}

/// A place in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// File as the compiler knows it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl From<&Location<'_>> for SourceLocation {
    fn from(location: &Location<'_>) -> Self {
        let (line, column) = (location.line(), location.column());
        Self { file: location.file().to_owned(), line, column }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl fmt::Display for DivergenceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} {} (instance {}, execution {}) no longer does what its history says: {}",
            self.orchestration, self.version, self.instance, self.execution_id, self.message
        )?;
        let width = self.rows.iter().map(|row| text(row.recorded.as_ref()).chars().count()).max();
        let width = width.unwrap_or(0).max("history".len());
        writeln!(f, "     {:>6}  {:<width$}  code", "event", "history")?;
        for row in &self.rows {
            let mark = if row.diverges { ">>>" } else { "   " };
            let id = row.event_id.map_or_else(String::new, |id| id.to_string());
            let recorded = text(row.recorded.as_ref());
            write!(f, "  {mark}{id:>6}  {recorded:<width$}  {}", text(row.emitted.as_ref()))?;
            match &row.location {
                Some(location) => writeln!(f, "  at {location}")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

fn text(side: Option<&String>) -> &str {
    side.map_or("(nothing)", String::as_str)
}

/// A divergence as the engine finds it.
#[derive(Debug)]
pub(super) struct Divergence {
    pub(super) message: String,
    event: Option<(u64, EventKind)>,
    /// What the code did, and where, if that is known.
    action: Option<(String, Option<&'static Location<'static>>)>,
}

impl Divergence {
    pub(super) fn new(message: impl Into<String>) -> Box<Self> {
        Box::new(Self { message: message.into(), event: None, action: None })
    }

    /// The event at which it was found.
    pub(super) fn at(mut self: Box<Self>, event: &Event) -> Box<Self> {
        self.event = Some((event.event_id, event.kind.clone()));
        self
    }

    /// The action that did not fit.
    pub(super) fn by(mut self: Box<Self>, emitted: &Emitted) -> Box<Self> {
        self.action = Some((format!("{:?}", emitted.action), Some(emitted.location)));
        self
    }

    /// What the code did instead of going on.
    pub(super) fn ending_with(mut self: Box<Self>, end: impl Into<String>) -> Box<Self> {
        self.action = Some((end.into(), None));
        self
    }

    pub(super) fn row(&self) -> DivergenceRow {
        DivergenceRow {
            event_id: self.event.as_ref().map(|(id, _)| *id),
            recorded: self.event.as_ref().map(|(_, kind)| format!("{kind:?}")),
            emitted: self.action.as_ref().map(|(action, _)| action.clone()),
            location: self.action.as_ref().and_then(|(_, at)| at.map(SourceLocation::from)),
            diverges: true,
        }
    }
}

/// The last schedule events that code and history agreed on.
pub(super) fn agreed_rows<'a>(
    matched: &[(u64, &'static Location<'static>)],
    history: impl Iterator<Item = &'a Event> + Clone,
) -> Vec<DivergenceRow> {
    let recent = &matched[matched.len().saturating_sub(CONTEXT_ROWS)..];
    recent
        .iter()
        .map(|(event_id, location)| {
            let event = history.clone().find(|event| event.event_id == *event_id);
            let recorded = event.map(|event| format!("{:?}", event.kind));
            DivergenceRow {
                event_id: Some(*event_id),
                emitted: recorded.as_ref().map(|_| "the same".to_owned()),
                recorded,
                location: Some(SourceLocation::from(*location)),
                diverges: false,
            }
        })
        .collect()
}
