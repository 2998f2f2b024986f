//! The next runnable instance and its messages, locked (R8.20 – R8.31).

use duroxide_core::model::limits::MAX_FETCH_BYTES;
use duroxide_core::model::{EventKind, KvEntry};
use duroxide_core::provider::SemverRange;

use super::{AbandonTurn, Lasts, Op};
use crate::error::{OpError, is_unreadable};
use crate::mailbox;
use crate::tables::instances::{self, Instance};
use crate::tables::mailboxes::{self, Lock};
use crate::tables::messages::{self, NextBatch, Taken};
use crate::tables::{Sql, executions, history, kv};
use crate::token::{Secret, fresh_secret};
use crate::tx::Tx;
use crate::writer::{QueuedOp, without_reply};

/// What a fetch asks for.
#[derive(Debug, Clone)]
pub(crate) struct FetchTurn {
    pub(crate) lock_ms: u64,
    /// Pins it can replay; `None` is all (R8.90).
    pub(crate) pins: Option<SemverRange>,
    /// How many instances at most.
    pub(crate) max: usize,
}

/// A locked turn. Its messages are yet to be decoded, its history to be read.
#[derive(Debug)]
pub(crate) struct TakenTurn {
    pub(crate) key: i64,
    pub(crate) secret: Secret,
    pub(crate) instance: String,
    /// Name, version and execution; `None` if only the messages can tell (R8.25).
    pub(crate) identity: Option<(String, String, u64)>,
    pub(crate) messages: Vec<Taken>,
    pub(crate) attempts: u32,
    /// Id and time.
    pub(crate) last_event: (u64, u64),
    pub(crate) kv: Vec<(String, KvEntry)>,
    /// What is wrong with the key-value data, if it makes no sense.
    pub(crate) unreadable: Option<String>,
}

impl Op for FetchTurn {
    type Output = Vec<TakenTurn>;

    fn apply(&self, tx: &mut Tx<'_>) -> Result<Vec<TakenTurn>, OpError> {
        mailbox::advance(tx)?;
        mailbox::dead_letter_undeliverable(tx)?;
        let (mut turns, mut room) = (Vec::new(), MAX_FETCH_BYTES);
        // Once more if some of the chosen keys turned out to belong to no instance.
        while turns.len() < self.max {
            let chosen = self.choose(tx, self.max - turns.len())?;
            if chosen.is_empty() {
                break;
            }
            for key in chosen {
                let Some(instance) = instances::by_key(tx.connection, key)? else {
                    mailbox::dead_letter_all(tx, key)?;
                    continue;
                };
                let is_known = || tx.is_known(&instance);
                let next = messages::next_batch(tx.connection, key, is_known)?;
                // A turn whose last lock ended without a commit comes alone (R8.146), and all together
                // is bounded (R8.147).
                let is_tried = next.is_tried() && mailboxes::is_moved(tx.connection, key)?;
                let bytes = next.bytes;
                if !turns.is_empty() {
                    if is_tried || room < bytes {
                        return Ok(turns);
                    }
                    room -= bytes;
                }
                turns.push(self.take(tx, instance, next)?);
                if is_tried {
                    return Ok(turns);
                }
            }
        }
        Ok(turns)
    }

    fn lasts(&self) -> Lasts {
        Lasts::No
    }

    fn is_worth_waiting_for(output: &Vec<TakenTurn>) -> bool {
        !output.is_empty()
    }

    fn undo(output: Vec<TakenTurn>) -> Vec<Box<dyn QueuedOp>> {
        let abandon = |turn: TakenTurn| {
            let (key, secret) = (turn.key, turn.secret);
            without_reply(AbandonTurn { key, secret, delay_ms: None, uncount: true })
        };
        output.into_iter().map(abandon).collect()
    }
}

impl FetchTurn {
    /// The instances with the oldest messages among the ones whose pin is accepted.
    fn choose(&self, tx: &mut Tx<'_>, max: usize) -> Sql<Vec<i64>> {
        let accepts = |version: &_| self.pins.as_ref().is_none_or(|range| range.contains(version));
        let limit = i64::try_from(max).unwrap_or(i64::MAX);
        let mut oldest = Vec::new();
        for pin in tx.accepted_pins(accepts)? {
            oldest.extend(mailboxes::oldest_ready(tx.connection, pin, limit)?);
        }
        oldest.sort_unstable();
        Ok(oldest.into_iter().take(max).map(|(_, key)| key).collect())
    }

    /// Locks an instance with these messages and counts the attempt (R8.21).
    fn take(&self, tx: &Tx<'_>, instance: Instance, next: NextBatch) -> Sql<TakenTurn> {
        let (c, key) = (tx.connection, instance.key);
        let batch = messages::take(c, key, &next)?;
        let messages = next.messages;
        let secret = fresh_secret();
        let until = tx.now.saturating_add(self.lock_ms);
        let lock = Lock { token: secret, until, node: tx.settings.node };
        mailboxes::lock(c, key, &lock, batch)?;

        let identity = identity_of(tx, &instance)?;
        let execution = identity.as_ref().map_or(1, |(_, _, execution)| *execution);
        let attempts = messages.iter().map(|message| message.attempts).max().unwrap_or(1);
        let (kv, unreadable) = match kv::snapshot(c, key) {
            Ok(kv) => (kv, None),
            Err(error) if is_unreadable(&error) => (Vec::new(), Some(error.to_string())),
            Err(error) => return Err(error),
        };
        Ok(TakenTurn {
            key,
            secret,
            last_event: history::end(c, key, execution)?,
            kv,
            unreadable,
            instance: instance.id,
            identity,
            messages,
            attempts,
        })
    }
}

/// Name, version and execution of an instance: by its row (R8.24), else by its start event (R8.25).
fn identity_of(tx: &Tx<'_>, instance: &Instance) -> Sql<Option<(String, String, u64)>> {
    if let Some(identity) = &instance.identity {
        let (name, version) = (identity.name.clone(), identity.version.clone());
        return Ok(Some((name, version, identity.execution)));
    }
    let newest = executions::newest(tx.connection, instance.key)?;
    let Some((number, started)) = newest.and_then(|e| Some((e.number, e.started?))) else {
        return Ok(None);
    };
    let row = match history::get(tx.connection, instance.key, number, started) {
        Err(error) if is_unreadable(&error) => None,
        row => row?,
    };
    let event = row.and_then(|row| row.into_event(&instance.id, number).ok());
    Ok(event.and_then(|event| match event.kind {
        EventKind::OrchestrationStarted { name, version, .. } => Some((name, version, number)),
        _ => None,
    }))
}
