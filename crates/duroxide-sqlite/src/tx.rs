//! A transaction in progress, as operations see it: the data, the time, and its effects for later.

use std::sync::Arc;

use semver::Version;

use duroxide_core::provider::DeadLetter;

use crate::database::Db;
use crate::long_text::LongText;
use crate::tables::instances::{self, Instance};
use crate::tables::{Sql, dead_letters, executions, hidden, long_texts, nodes, pins};

/// What every transaction of a store has in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// The id of this process in leases.
    pub(crate) node: i64,
    /// How long messages for no instance are kept (R8.29).
    pub(crate) orphan_retention_ms: u64,
}

/// A transaction in progress.
pub(crate) struct Tx<'c> {
    pub(crate) connection: Db<'c>,
    pub(crate) settings: Settings,
    /// The time at which all of it happens.
    pub(crate) now: u64,
    pub(crate) effects: TxEffects,
    /// First queue position not used, and how far the table knows.
    positions: Option<Positions>,
    /// Versions that make no sense are `None`.
    pins: Option<Vec<(i64, Option<Version>)>>,
    /// Whether what time brings has been done to messages: it stands still within a transaction.
    pub(crate) messages_are_due: bool,
    /// Whether it has been done to activities.
    pub(crate) work_is_due: bool,
    /// Whether any message is due that has not been delivered, once that was asked.
    overdue: Option<bool>,
    /// Whether what cannot be delivered has been given up.
    pub(crate) has_dead_lettered: bool,
    /// The long text kept last, with its instance and its key: the next row often has the same.
    kept: Option<(i64, Arc<LongText>, i64)>,
    /// Rows the connection had changed before.
    changes: u64,
}

/// What follows from a transaction once it is committed.
#[derive(Debug, Default)]
pub(crate) struct TxEffects {
    /// A turn has become fetchable.
    pub(crate) turns_ready: bool,
    /// An activity has become fetchable, for some worker.
    pub(crate) work_ready: bool,
    /// Instances of which something changed that can be waited for (R8.134).
    pub(crate) committed: Vec<String>,
    /// To be logged.
    pub(crate) dead_letters: Vec<DeadLetter>,
    /// Whether there is anything to commit.
    pub(crate) has_written: bool,
}

#[derive(Debug, Clone, Copy)]
struct Positions {
    stored: i64,
    next: i64,
}

impl<'c> Tx<'c> {
    /// A transaction that has just begun.
    pub(crate) fn new(connection: Db<'c>, settings: Settings, now: u64) -> Self {
        let (effects, changes) = (TxEffects::default(), connection.total_changes());
        Self {
            connection,
            settings,
            now,
            effects,
            positions: None,
            pins: None,
            messages_are_due: false,
            work_is_due: false,
            overdue: None,
            has_dead_lettered: false,
            kept: None,
            changes,
        }
    }

    /// The next queue position, or key of an instance: later ones are larger, in all processes.
    pub(crate) fn next_seq(&mut self) -> Sql<i64> {
        let mut positions = match self.positions {
            Some(positions) => positions,
            None => {
                let stored = nodes::next_seq(self.connection)?;
                Positions { stored, next: stored }
            }
        };
        let seq = positions.next;
        positions.next = seq.saturating_add(1);
        self.positions = Some(positions);
        Ok(seq)
    }

    /// An instance by its id, noted as a name if it is new.
    pub(crate) fn instance(&mut self, id: &str) -> Sql<Instance> {
        self.child(id, None)
    }

    /// The same for an instance that is about to begin, as the child of another one if it has a parent.
    pub(crate) fn child(&mut self, id: &str, parent: Option<&str>) -> Sql<Instance> {
        if let Some(known) = instances::by_id(self.connection, id)? {
            return Ok(known);
        }
        // A key is never used again: tokens and rows of a deleted instance fit no other (R8.143).
        let key = self.next_seq()?;
        instances::insert_name(self.connection, key, id, parent)?;
        Ok(Instance { key, id: id.to_owned(), identity: None, pin: 0, is_new: true })
    }

    /// Whether a turn of the instance can run without a start message (R8.25).
    pub(crate) fn is_known(&self, instance: &Instance) -> Sql<bool> {
        if instance.identity.is_some() {
            return Ok(true);
        }
        let newest = executions::newest(self.connection, instance.key)?;
        Ok(newest.is_some_and(|execution| execution.started.is_some()))
    }

    /// Whether a message of this instance is due and has not been delivered. Time stands still within a
    /// transaction, so that nothing becomes due meanwhile: mostly, no message is, of any instance.
    pub(crate) fn has_overdue(&mut self, key: i64) -> Sql<bool> {
        let any = match self.overdue {
            Some(any) => any,
            None => hidden::is_any_due(self.connection, self.now)?,
        };
        self.overdue = Some(any);
        Ok(any && hidden::is_due(self.connection, key, self.now)?)
    }

    /// The numbers of the pins that are accepted, and 0 for no pin.
    pub(crate) fn accepted_pins(&mut self, accepts: impl Fn(&Version) -> bool) -> Sql<Vec<i64>> {
        if self.pins.is_none() {
            let stored = pins::list(self.connection)?.into_iter();
            self.pins = Some(stored.map(|(id, text)| (id, Version::parse(&text).ok())).collect());
        }
        let known = self.pins.iter().flatten();
        // A pin that cannot be read is let through: the history of its instance tells.
        let accepted = known.filter(|(_, version)| version.as_ref().is_none_or(&accepts));
        let accepted = accepted.map(|(id, _)| *id);
        Ok(std::iter::once(0).chain(accepted).collect())
    }

    /// The number of a pin.
    pub(crate) fn pin(&mut self, version: &Version) -> Sql<i64> {
        let mut known = self.pins.iter().flatten();
        if let Some((id, _)) = known.find(|(_, known)| known.as_ref() == Some(version)) {
            return Ok(*id);
        }
        self.pins = None; // Read again when it is needed next: it may be new.
        pins::number_of(self.connection, &version.to_string())
    }

    /// Keeps the long text of a row, if it has one; its key.
    pub(crate) fn keep(&mut self, instance: i64, long: Option<&Arc<LongText>>) -> Sql<Option<i64>> {
        let Some(long) = long else { return Ok(None) };
        if let Some((owner, known, key)) = &self.kept
            && *owner == instance
            && Arc::ptr_eq(known, long)
        {
            return Ok(Some(*key));
        }
        let key = long_texts::keep(self.connection, instance, long.hash, &long.text)?;
        self.kept = Some((instance, Arc::clone(long), key));
        Ok(Some(key))
    }

    /// Forgets the long texts of an instance that is no more.
    pub(crate) fn delete_long_texts(&mut self, instance: i64) -> Sql<()> {
        self.kept = None;
        long_texts::delete_all(self.connection, instance)?;
        Ok(())
    }

    /// Takes a message out of circulation, for people to look at (R8.137).
    pub(crate) fn dead_letter(&mut self, instance: &str, payload: String, reason: &str) -> Sql<()> {
        let letter = DeadLetter {
            instance: Some(instance.to_owned()),
            payload,
            reason: reason.to_owned(),
            at_ms: self.now,
        };
        dead_letters::insert(self.connection, &letter)?;
        self.effects.dead_letters.push(letter);
        Ok(())
    }

    /// Writes down what was counted in memory, and the transaction's number, which tells later
    /// whether it was committed; comes last. A transaction that did nothing writes nothing.
    pub(crate) fn finish(mut self, batch: i64) -> Sql<TxEffects> {
        if let Some(Positions { stored, next }) = self.positions
            && stored != next
        {
            nodes::set_next_seq(self.connection, next)?;
        }
        // A look that found nothing must not look like news to other processes.
        self.effects.has_written = self.connection.total_changes() != self.changes;
        if self.effects.has_written {
            nodes::mark(self.connection, self.settings.node, batch)?;
        }
        Ok(self.effects)
    }
}
