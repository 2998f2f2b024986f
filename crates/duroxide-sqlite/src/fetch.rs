//! What was fetched, made into what the runtime expects: decoded, with history if wanted.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use duroxide_core::model::{Event, INITIAL_EXECUTION_ID, WorkItem};
use duroxide_core::provider::{
    DispatcherCapabilityFilter, FetchedTurn, OrchestrationItem, Refusal, TagFilter,
};

use crate::database::Db;
use crate::error::Failure;
use crate::long_text::{decode, whole};
use crate::ops::{
    AbandonTurn, AbandonWork, DeadLetterMessages, DeadLetterWork, FetchTurn, FetchWork, TakenTurn,
    TakenWork,
};
use crate::queries;
use crate::store::SqliteProvider;
use crate::token::{self, Place, Secret};
use crate::writer::{Patience, Queue, WriterHandle};

/// Name and version of an instance that neither its row nor a start tells (R8.24, R8.25).
const UNKNOWN: &str = "unknown";

impl SqliteProvider {
    /// The next turns, without history unless they have none.
    pub(crate) async fn poll_turns(
        &self,
        lock_ms: u64,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
        max: usize,
    ) -> Result<Vec<FetchedTurn>, Failure> {
        if max == 0 {
            return Ok(Vec::new());
        }
        // R8.90: the first range counts; a filter without one lets nothing through.
        let pins = match filter.map(|filter| filter.supported_duroxide_versions.first()) {
            Some(None) => {
                tokio::time::sleep(poll_timeout).await;
                return Ok(Vec::new());
            }
            Some(Some(range)) => Some(range.clone()),
            None => None,
        };
        let patience = Patience { queue: Queue::Turns, until: deadline(poll_timeout) };
        loop {
            let fetch = FetchTurn { lock_ms, pins: pins.clone(), max };
            let taken = self.writer.wait_for(fetch, patience).await?;
            let found_nothing = taken.is_empty();
            let mut turns = Vec::with_capacity(taken.len());
            let mut bad = Vec::new();
            for taken in taken {
                let (key, secret) = (taken.key, taken.secret);
                match decode_turn(taken) {
                    Ok(turn) => turns.push(turn),
                    Err(undecodable) => bad.push(DeadLetterMessages { key, secret, undecodable }),
                }
            }
            // The rest of these turns is fetched again, by this caller or another.
            let undelivered: Vec<_> =
                turns.iter().map(|turn| self.undelivered(&turn.lock_token)).collect();
            for bad in bad {
                let lock = Undelivered::new(&self.writer, Place::Turn(bad.key), bad.secret);
                match self.writer.run(bad).await {
                    Ok(()) => lock.mark_delivered(),
                    Err(failure) if turns.is_empty() => return Err(failure),
                    Err(_) => {} // Given back, and met again.
                }
            }
            undelivered.into_iter().for_each(Undelivered::mark_delivered);
            if found_nothing || !turns.is_empty() {
                return Ok(turns);
            }
        }
    }

    /// A turn that is not yet handed out.
    pub(crate) fn undelivered(&self, lock_token: &str) -> Undelivered<'_> {
        let lock = token::read_turn(lock_token).ok();
        let lock = lock.map(|(key, secret)| (Place::Turn(key), secret));
        Undelivered { writer: &self.writer, lock }
    }

    /// Events of an execution.
    pub(crate) async fn events(
        &self,
        instance: &str,
        execution: u64,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        let id = instance.to_owned();
        let read = move |c: Db<'_>| queries::history::from_event(c, &id, execution, from, limit);
        self.readers.read(read).await
    }

    /// Reads the history into a turn. One that makes no sense is reported in it (R8.31).
    pub(crate) async fn add_history(&self, turn: &mut FetchedTurn) -> Result<(), Failure> {
        if turn.history_included {
            return Ok(());
        }
        let (id, execution) = (turn.item.instance.clone(), turn.item.execution_id);
        let read = move |c: Db<'_>| queries::history::from_event(c, &id, execution, 0, usize::MAX);
        match self.readers.read(read).await {
            Ok(history) => turn.item.history = history,
            Err(Failure::Refused(Refusal::UnreadableHistory(why))) => {
                turn.item.history_error = Some(why);
                turn.item.kv_snapshot = HashMap::new();
            }
            Err(failure) => return Err(failure),
        }
        turn.history_included = true;
        Ok(())
    }

    /// The next activities.
    pub(crate) async fn poll_work(
        &self,
        fetch: FetchWork,
        poll_timeout: Duration,
    ) -> Result<Vec<(WorkItem, String, u32)>, Failure> {
        if fetch.max == 0 {
            return Ok(Vec::new());
        }
        if fetch.tags == TagFilter::None {
            // R8.79. Waiting keeps the caller from asking again and again.
            tokio::time::sleep(poll_timeout).await;
            return Ok(Vec::new());
        }
        let patience = Patience { queue: Queue::Work, until: deadline(poll_timeout) };
        loop {
            let taken = self.writer.wait_for(fetch.clone(), patience).await?;
            let found_nothing = taken.is_empty();
            let (mut all, mut undelivered, mut bad) = (Vec::new(), Vec::new(), Vec::new());
            for TakenWork { seq, secret, attempts, payload, mut text_reference } in taken {
                let lock = Undelivered::new(&self.writer, Place::Work(seq), secret);
                match decode(&payload, &mut text_reference) {
                    Ok(item) => {
                        all.push((item, token::write(Place::Work(seq), &secret), attempts));
                        undelivered.push(lock);
                    }
                    Err(why) => {
                        let payload = whole(payload, text_reference);
                        bad.push((lock, DeadLetterWork { seq, secret, payload, why }));
                    }
                }
            }
            for (lock, bad) in bad {
                match self.writer.run(bad).await {
                    Ok(()) => lock.mark_delivered(),
                    Err(failure) if all.is_empty() => return Err(failure),
                    Err(_) => {} // Given back, and met again.
                }
            }
            undelivered.into_iter().for_each(Undelivered::mark_delivered);
            if found_nothing || !all.is_empty() {
                return Ok(all);
            }
        }
    }
}

/// Something fetched that was not delivered to the caller yet. Dropped, it is given back as if it had
/// not been fetched: whatever went wrong, it must not stay locked until its time is up.
pub(crate) struct Undelivered<'a> {
    writer: &'a WriterHandle,
    lock: Option<(Place, Secret)>,
}

impl<'a> Undelivered<'a> {
    fn new(writer: &'a WriterHandle, place: Place, secret: Secret) -> Self {
        Self { writer, lock: Some((place, secret)) }
    }

    /// The caller has it now, or it is gone.
    pub(crate) fn mark_delivered(mut self) {
        self.lock = None;
    }
}

impl Drop for Undelivered<'_> {
    fn drop(&mut self) {
        let uncount = true;
        match self.lock.take() {
            None => {}
            Some((Place::Turn(key), secret)) => {
                self.writer.post(AbandonTurn { key, secret, delay_ms: None, uncount });
            }
            Some((Place::Work(seq), secret)) => {
                self.writer.post(AbandonWork { seq, secret, delay_ms: 0, uncount });
            }
        }
    }
}

/// A turn as the runtime expects it, or the messages that make no sense.
fn decode_turn(taken: TakenTurn) -> Result<FetchedTurn, Vec<(i64, String)>> {
    let mut messages = Vec::with_capacity(taken.messages.len());
    let mut undecodable = Vec::new();
    for mut message in taken.messages {
        match decode::<WorkItem>(&message.payload, &mut message.text_reference) {
            Ok(item) if item.orchestration_key() == Some(taken.instance.as_str()) => {
                messages.push(item);
            }
            Ok(item) => {
                undecodable.push((message.seq, format!("it is for {:?}", item.orchestration_key())))
            }
            Err(why) => undecodable.push((message.seq, why)),
        }
    }
    if !undecodable.is_empty() {
        return Err(undecodable);
    }
    let identity = taken.identity.or_else(|| messages.iter().find_map(identity_of_start));
    let (orchestration_name, version, execution_id) =
        identity.unwrap_or_else(|| (UNKNOWN.to_owned(), UNKNOWN.to_owned(), INITIAL_EXECUTION_ID));
    let is_unreadable = taken.unreadable.is_some();
    let item = OrchestrationItem {
        instance: taken.instance,
        orchestration_name,
        execution_id,
        version,
        history: Vec::new(),
        messages,
        history_error: taken.unreadable.map(|why| format!("key-value data: {why}")),
        kv_snapshot: taken.kv.into_iter().collect(),
    };
    Ok(FetchedTurn {
        item,
        lock_token: token::write(Place::Turn(taken.key), &taken.secret),
        attempt_count: taken.attempts,
        last_event_id: taken.last_event.0,
        last_event_at_ms: taken.last_event.1,
        incarnation: taken.key.cast_unsigned(),
        history_included: taken.last_event.0 == 0 || is_unreadable,
    })
}

/// Name, version and execution of an instance, by the message that starts it (R8.25).
fn identity_of_start(item: &WorkItem) -> Option<(String, String, u64)> {
    match item {
        WorkItem::StartOrchestration { orchestration, version, .. }
        | WorkItem::ContinueAsNew { orchestration, version, .. } => {
            let version = version.clone().unwrap_or_else(|| UNKNOWN.to_owned());
            Some((orchestration.clone(), version, INITIAL_EXECUTION_ID))
        }
        _ => None,
    }
}

/// Longer than any caller waits, and safe to add to an instant.
fn deadline(timeout: Duration) -> Instant {
    const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
    Instant::now() + timeout.min(FOR_EVER)
}
