//! Timers fired by the node that keeps their instance, and the turn that has read them (R8.150).

use std::collections::BTreeSet;

use duroxide_core::model::WorkItem;
use duroxide_core::provider::{Refusal, TimerTurn};

use super::Op;
use super::commit_direct::{Seen, open};
use super::commit_turn::{Turns, record_all};
use super::enqueue::MessageDraft;
use crate::error::OpError;
use crate::long_text::LongTexts;
use crate::tables::{hidden, instances, ms_in};
use crate::tx::Tx;

/// Removes timers that are held back and commits a turn of their instance, both or neither.
#[derive(Debug)]
pub(crate) struct CommitTimers {
    seen: Seen,
    /// The key that the instance has; 0 if that is not known.
    incarnation: u64,
    /// When they are due, and their messages as they are stored.
    timers: Vec<(u64, String)>,
    turns: Turns,
}

impl CommitTimers {
    /// Serialises a commit; whatever can be refused without looking at the store will be.
    pub(crate) fn of(turn: TimerTurn) -> Result<Self, Refusal> {
        let timer = |timer: &WorkItem| match timer {
            WorkItem::TimerFired { fire_at_ms, .. } => {
                Ok((*fire_at_ms, MessageDraft::of(timer, &mut LongTexts::default())?.payload))
            }
            _ => Err(Refusal::NotHeldBack),
        };
        let timers = turn.timers.iter().map(timer).collect::<Result<Vec<_>, _>>()?;
        if timers.is_empty() {
            return Err(Refusal::NotHeldBack);
        }
        let (execution, turns) = (turn.commit.execution_id, Turns::of(&turn.commit)?);
        let last_event = (turn.last_event_id, turn.last_event_at_ms);
        let seen = Seen { instance: turn.instance, execution, last_event };
        Ok(Self { seen, incarnation: turn.incarnation, timers, turns })
    }
}

impl Op for CommitTimers {
    type Output = ();

    fn apply(&self, tx: &mut Tx<'_>) -> Result<(), OpError> {
        let found = instances::by_id(tx.connection, &self.seen.instance)?;
        let is_this = |key: &i64| [0, key.cast_unsigned()].contains(&self.incarnation);
        let key = found.map(|instance| instance.key).filter(is_this);
        let instance = self.seen.at_rest(tx, key.ok_or_else(|| self.seen.refused())?)?;
        let mut places = BTreeSet::new();
        let mut last = None;
        for (fire_at, payload) in &self.timers {
            // Timers are mostly given in the order in which they are held back.
            let (c, begin) = (tx.connection, (ms_in(*fire_at), i64::MIN));
            let mut place = match last.filter(|last| begin < *last) {
                Some(last) => hidden::untried(c, instance.key, last, payload)?,
                None => None,
            };
            if place.is_none() {
                place = hidden::untried(c, instance.key, begin, payload)?;
            }
            last = place.filter(|place| *fire_at <= tx.now && places.insert(*place));
            last.ok_or(Refusal::NotHeldBack)?;
        }
        let turns = self.turns.check(tx, instance.key)?;
        for (visible_at, seq) in places {
            hidden::delete(tx.connection, visible_at, seq)?;
        }
        Ok(record_all(tx, instance, turns, open)?)
    }
}
