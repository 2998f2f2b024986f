//! Ops whose rows somebody else has locked, set apart so that nobody waits for them.
//!
//! A transaction that does many things for many callers waits for a row only briefly. What it could not
//! have in that time is set apart here, and the others are done. One connection of its own sees to what
//! was set apart, again and again until its time is up. Whatever is asked for later about the same
//! instance, or the same lock, waits behind it.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::Instant;

use super::call::Call;
use super::floor::Floor;
use super::lane::Lane;
use super::op::{Op, Queue, Waiting};
use super::state::Batch;
use crate::error::{Failure, PgError};

/// Pause between rounds in which something else than a wait for a row came up.
const PAUSE: Duration = Duration::from_millis(20);

/// A row that an op locks, as far as can be told here.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// The mailbox of an instance, by its id.
    Instance(String),
    /// What a lock is about: the mailbox of an instance by its key, or an activity.
    Lock(Queue, i64),
}

impl Op {
    /// Whether it has to wait behind others about the same rows. Who waits to commit goes on holding the
    /// lock.
    fn keeps_its_place(&self) -> bool {
        !matches!(self, Self::Renew { .. })
    }

    /// The rows it locks, as far as can be told here.
    pub(super) fn places(&self) -> Vec<Place> {
        let mut ids: Vec<&str> = Vec::new();
        match self {
            Self::Enqueue { message, .. } => ids.push(&message.instance),
            Self::QueueWork(draft) => ids.push(&draft.instance),
            Self::Ack { outcome, .. } => ids.extend(outcome.iter().map(|m| m.instance.as_str())),
            Self::Commit(draft) => {
                for turn in &draft.turns {
                    ids.extend(turn.ids_written());
                    ids.extend(turn.parent.as_deref());
                    ids.extend(turn.cancelled.iter().map(|gone| gone.instance.as_str()));
                }
                ids.extend(draft.seen_at_rest());
            }
            Self::Renew { .. } | Self::Abandon { .. } => {}
        }
        let instances = ids.into_iter().map(|id| Place::Instance(id.to_owned()));
        instances.chain(self.lock().map(|(queue, place)| Place::Lock(queue, place))).collect()
    }
}

/// What was set apart.
#[derive(Default)]
pub(super) struct Blocked {
    ops: Vec<Waiting>,
    /// Where others wait behind them, and behind those that are being tried.
    places: HashSet<Place>,
    next: u64,
}

impl Blocked {
    /// Takes what has to wait behind something that was set apart; the others are left.
    pub(super) fn catch_up(&mut self, waiting: Waiting) -> Option<Waiting> {
        let is_behind = !self.places.is_empty()
            && waiting.op.keeps_its_place()
            && waiting.op.places().iter().any(|place| self.places.contains(place));
        if !is_behind {
            return Some(waiting);
        }
        self.add(waiting);
        None
    }

    fn add(&mut self, mut waiting: Waiting) {
        self.next += 1;
        waiting.blocked.get_or_insert((self.next, Instant::now()));
        self.places.extend(waiting.op.places());
        self.ops.push(waiting);
    }

    /// All that was set apart, in the order in which it was. Their places stay taken.
    fn take(&mut self) -> Vec<Waiting> {
        let mut ops = std::mem::take(&mut self.ops);
        ops.sort_by_key(|waiting| waiting.blocked.map(|(number, _)| number));
        ops
    }

    pub(super) fn take_all(&mut self) -> Vec<Waiting> {
        self.places.clear();
        self.take()
    }

    /// What was taken has been done, answered, or set apart again.
    fn settle(&mut self) {
        self.places = self.ops.iter().flat_map(|waiting| waiting.op.places()).collect();
    }
}

impl Floor {
    /// Sets ops apart.
    pub(super) fn set_apart(&self, ops: impl IntoIterator<Item = Waiting>) {
        let mut state = self.lock();
        if state.is_closed {
            return; // Dropped, which whoever waits notices.
        }
        ops.into_iter().for_each(|waiting| state.blocked.add(waiting));
        drop(state);
        self.care.notify_one();
    }

    /// Waits until something was set apart, and takes it; `None` when the floor is closed.
    pub(super) async fn next_blocked(&self) -> Option<Vec<Waiting>> {
        loop {
            {
                let mut state = self.lock();
                if state.is_closed {
                    return None;
                }
                let ops = state.blocked.take();
                if !ops.is_empty() {
                    return Some(ops);
                }
            }
            self.care.notified().await;
        }
    }

    /// What was taken is seen to: others need not wait behind it any more.
    pub(super) fn settle_blocked(&self) {
        self.lock().blocked.settle();
    }
}

/// Places that somebody else has locked.
#[derive(Debug, Default)]
struct Taken(HashSet<Place>);

impl Taken {
    fn has_any_of(&self, places: &[Place]) -> bool {
        places.iter().any(|place| self.0.contains(place))
    }
}

impl Lane {
    /// Sees to what was set apart, until the store is closed.
    pub(super) async fn run_blocked(mut self) {
        while let Some(ops) = self.store.floor.next_blocked().await {
            let began = Instant::now();
            self.try_blocked(ops).await;
            self.store.floor.settle_blocked();
            // A round that waited for a row has had its pause.
            tokio::time::sleep_until(began + PAUSE).await;
        }
    }

    /// Does what can be done now, and waits briefly for the one that has waited longest.
    async fn try_blocked(&mut self, ops: Vec<Waiting>) {
        let ops = self.dismiss_late(ops);
        let taken = match self.taken_places(&ops).await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::debug!(target: "duroxide::providers::postgres", %error, "not known what is locked");
                Taken::default()
            }
        };
        let (free, mut blocked) = part(ops, &taken);
        let first = (!blocked.is_empty()).then(|| blocked.remove(0));
        // In their order: those behind the first, should it be set apart again.
        self.store.floor.set_apart(blocked);
        if !free.is_empty() {
            self.carry(Batch::of_several(free)).await;
        }
        if let Some(first) = first {
            self.carry(Batch::uncommon(first)).await;
        }
    }

    /// Tells those whose time is up.
    fn dismiss_late(&self, ops: Vec<Waiting>) -> Vec<Waiting> {
        let patience = self.store.pool.settings().statement_timeout;
        let is_late = |waiting: &Waiting| {
            waiting.blocked.is_some_and(|(_, since)| patience <= since.elapsed())
        };
        let (late, rest): (Vec<Waiting>, Vec<Waiting>) = ops.into_iter().partition(is_late);
        late.into_iter().for_each(|waiting| {
            waiting.answer(Err(Failure::Database(PgError::lock_timeout())));
        });
        rest
    }

    /// A transaction could not have a row in time: those who want it are set apart, the others done.
    pub(super) async fn part_blocked(&mut self, ops: Vec<Waiting>) {
        if ops.len() <= 1 {
            self.store.floor.set_apart(ops);
            return;
        }
        let taken = match self.taken_places(&ops).await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::debug!(target: "duroxide::providers::postgres", %error, "not known what is locked");
                Taken::default()
            }
        };
        let (mut free, blocked) = part(ops, &taken);
        let is_known = !blocked.is_empty();
        self.store.floor.set_apart(blocked);
        // Where nobody is to blame, as far as is known, one half does not wait for the other's.
        let rest = if is_known { Vec::new() } else { free.split_off(free.len() / 2) };
        for ops in [free, rest] {
            if !ops.is_empty() {
                Box::pin(self.carry(Batch::of_several(ops))).await;
            }
        }
    }

    /// Which of the rows that ops lock somebody else has locked at this moment.
    async fn taken_places(&mut self, ops: &[Waiting]) -> Result<Taken, PgError> {
        const ASK: &str = "SELECT ids, keys, seqs FROM duroxide.locked_by_others($1, $2, $3)";
        self.connect_if_needed().await?;
        let Some(connection) = &self.connection else { return Ok(Taken::default()) };
        let (mut ids, mut keys, mut seqs) = (Vec::new(), Vec::new(), Vec::new());
        for place in ops.iter().flat_map(|waiting| waiting.op.places()) {
            match place {
                Place::Instance(id) => ids.push(id),
                Place::Lock(Queue::Turns, key) => keys.push(key),
                Place::Lock(Queue::Work, seq) => seqs.push(seq),
            }
        }
        let call = Call::new(ASK).with(ids).with(keys).with(seqs);
        let asked = self.store.pool.ask(connection, call.sql, &call.values()).await;
        if asked.as_ref().is_err_and(PgError::spoils_connection) {
            self.connection = None;
        }
        let rows = asked?;
        let Some(row) = rows.first() else { return Ok(Taken::default()) };
        let numbers = |column, queue| {
            let numbers: Vec<i64> = row.get(column);
            numbers.into_iter().map(move |number| Place::Lock(queue, number))
        };
        let ids: Vec<String> = row.get("ids");
        let places = ids.into_iter().map(Place::Instance);
        let locks = numbers("keys", Queue::Turns).chain(numbers("seqs", Queue::Work));
        Ok(Taken(places.chain(locks).collect()))
    }
}

/// Those that can be done together now, and those that cannot: somebody else has a row of theirs, or they
/// are behind one of those, or about the same lock as one before.
fn part(ops: Vec<Waiting>, taken: &Taken) -> (Vec<Waiting>, Vec<Waiting>) {
    let (mut free, mut blocked) = (Vec::new(), Vec::new());
    let (mut behind, mut locks) = (Taken::default(), HashSet::new());
    for waiting in ops {
        let places = waiting.op.places();
        let is_second = waiting.op.lock().is_some_and(|lock| locks.contains(&lock));
        let is_behind = waiting.op.keeps_its_place() && behind.has_any_of(&places);
        if taken.has_any_of(&places) || is_behind || is_second {
            behind.0.extend(places);
            blocked.push(waiting);
        } else {
            locks.extend(waiting.op.lock());
            free.push(waiting);
        }
    }
    (free, blocked)
}

#[cfg(test)]
mod tests {
    use super::super::state::State;
    use super::*;
    use crate::drafts::{Kind, MessageDraft};

    fn message(instance: &str, payload: &str) -> Waiting {
        let message = MessageDraft {
            instance: instance.into(),
            kind: Kind::Start,
            payload: payload.into(),
            parent: None,
        };
        Waiting::new(Op::Enqueue { message, delay: 0 }, None, None)
    }

    fn payloads(ops: &[Waiting]) -> Vec<String> {
        let payload = |waiting: &Waiting| match &waiting.op {
            Op::Enqueue { message, .. } => message.payload.clone(),
            _ => String::new(),
        };
        ops.iter().map(payload).collect()
    }

    #[test]
    fn what_is_behind_somebody_waits_and_the_others_go_on() {
        let ops = vec![message("x", "1"), message("y", "2"), message("x", "3"), message("z", "4")];
        let taken = Taken(HashSet::from([Place::Instance("x".to_owned())]));
        let (free, blocked) = part(ops, &taken);
        assert_eq!(payloads(&free), ["2", "4"]);
        assert_eq!(payloads(&blocked), ["1", "3"]);
    }

    #[test]
    fn a_lock_is_renewed_while_its_commit_waits() {
        let (queue, place, secret) = (Queue::Turns, 7, uuid::Uuid::nil());
        let lock = super::super::op::Lock { queue, place, secret };
        let of = |op| Waiting::new(op, None, None);
        let mut state = State::default();
        state.blocked.add(of(Op::Abandon { lock, delay: 0, uncount: true }));
        state.ops.push_back(of(Op::Abandon { lock, delay: 1, uncount: true }));
        state.renewals.push_back(of(Op::Renew { lock, extend: 1 }));
        assert_eq!(state.take_renewals().len(), 1);
        assert_eq!(state.take_ops().len(), 0);
    }

    #[tokio::test]
    async fn who_comes_later_does_not_overtake_who_was_set_apart() {
        let mut state = State::default();
        state.blocked.add(message("x", "1"));
        let first = state.blocked.take();
        // While the first is tried again.
        state.ops.extend([message("x", "2"), message("y", "3")]);
        assert_eq!(payloads(&state.take_ops()), ["3"]);
        // It is set apart again, and is still the first.
        first.into_iter().for_each(|waiting| state.blocked.add(waiting));
        state.blocked.settle();
        assert_eq!(payloads(&state.blocked.take()), ["1", "2"]);
        state.blocked.settle();
        state.ops.push_back(message("x", "4"));
        assert_eq!(payloads(&state.take_ops()), ["4"]);
    }
}
