//! The next activities for these tags and sessions, locked (R8.70 – R8.73, R8.79 – R8.82, R8.139).

use std::time::Duration;

use duroxide_core::clock::millis_rounded_up;
use duroxide_core::model::limits::MAX_FETCH_BYTES;
use duroxide_core::provider::{SessionFetchConfig, TagFilter};

use super::{AbandonWork, Lasts, Op};
use crate::database::Db;
use crate::error::OpError;
use crate::mailbox;
use crate::tables::Sql;
use crate::tables::long_texts::TextReference;
use crate::tables::sessions::{self, Claim};
use crate::tables::work::{self, Payload, Place, Tags};
use crate::token::{Secret, fresh_secret};
use crate::tx::Tx;
use crate::writer::{QueuedOp, without_reply};

/// What a fetch asks for.
#[derive(Debug, Clone)]
pub(crate) struct FetchWork {
    pub(crate) lock_ms: u64,
    pub(crate) tags: TagFilter,
    pub(crate) session: Option<SessionFetchConfig>,
    /// How many activities at most.
    pub(crate) max: usize,
}

/// A locked activity, yet to be decoded.
#[derive(Debug)]
pub(crate) struct TakenWork {
    pub(crate) seq: i64,
    pub(crate) secret: Secret,
    pub(crate) attempts: u32,
    pub(crate) payload: String,
    pub(crate) text_reference: Option<TextReference>,
}

impl Op for FetchWork {
    type Output = Vec<TakenWork>;

    fn apply(&self, tx: &mut Tx<'_>) -> Result<Vec<TakenWork>, OpError> {
        mailbox::advance_work(tx)?;
        let (mut all, mut room) = (Vec::new(), MAX_FETCH_BYTES);
        let has_sessions = self.session.is_some() && work::any_in_sessions(tx.connection)?;
        while all.len() < self.max
            && let Some((position, seq)) = self.choose(tx, has_sessions)?
            && let Some(found) = work::payload(tx.connection, seq)?
        {
            let is_bound = found.session.is_some();
            let is_tried = 0 < found.attempts && position != seq;
            if !all.is_empty() {
                // An activity whose last lock ended without an answer comes alone (R8.146), and all
                // together is bounded (R8.147).
                if is_tried || room < found.bytes() {
                    break;
                }
                room -= found.bytes();
            }
            all.push(self.take(tx, seq, found)?);
            if is_bound || is_tried {
                break; // Sessions are claimed one at a time.
            }
        }
        Ok(all)
    }

    fn lasts(&self) -> Lasts {
        Lasts::No
    }

    fn is_worth_waiting_for(output: &Vec<TakenWork>) -> bool {
        !output.is_empty()
    }

    fn undo(output: Vec<TakenWork>) -> Vec<Box<dyn QueuedOp>> {
        let abandon = |work: TakenWork| {
            let (seq, secret) = (work.seq, work.secret);
            without_reply(AbandonWork { seq, secret, delay_ms: 0, uncount: true })
        };
        output.into_iter().map(abandon).collect()
    }
}

impl FetchWork {
    /// A fetch of up to `max` activities.
    pub(crate) fn of(
        lock_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tags: &TagFilter,
        max: usize,
    ) -> Self {
        let lock_ms = millis_rounded_up(lock_timeout);
        Self { lock_ms, tags: tags.clone(), session: session.cloned(), max }
    }

    /// The oldest activity that can be fetched: each kind of row has an index of its own. Those of
    /// sessions are looked for only if there are any.
    fn choose(&self, tx: &Tx<'_>, has_sessions: bool) -> Sql<Option<Place>> {
        let c = tx.connection;
        let tags = self.tags();
        let mut oldest = None;
        let mut offer = |place: Option<Place>| oldest = oldest.into_iter().chain(place).min();
        if tags.untagged {
            offer(work::oldest_untagged(c)?);
        }
        for tag in tags.named.iter().flatten() {
            offer(work::oldest_tagged(c, tag)?);
        }
        if tags.any {
            let mut tag = work::next_tag(c, None)?;
            while let Some(found) = tag {
                offer(work::oldest_tagged(c, &found)?);
                tag = work::next_tag(c, Some(&found))?;
            }
        }
        if has_sessions && let Some(config) = &self.session {
            for holder in [None, Some(config.owner_id.as_str())] {
                offer(oldest_in_sessions(c, holder, &tags)?);
            }
        }
        Ok(oldest)
    }

    /// Locks an activity, counts the attempt, and claims its session.
    fn take(&self, tx: &mut Tx<'_>, seq: i64, found: Payload) -> Sql<TakenWork> {
        let secret = fresh_secret();
        let until = tx.now.saturating_add(self.lock_ms);
        work::lock(tx.connection, seq, &secret, until, tx.settings.node)?;
        if let (Some(session), Some(config)) = (&found.session, &self.session) {
            let until = tx.now.saturating_add(millis_rounded_up(config.lock_timeout));
            let (owner, node) = (config.owner_id.as_str(), tx.settings.node);
            let claim = Claim { owner, node, now: tx.now, until };
            sessions::claim(tx.connection, session, claim)?;
            // The same owner may be waiting elsewhere for the rows behind this one.
            tx.effects.work_ready = true;
        }
        let attempts = found.attempts.saturating_add(1);
        Ok(TakenWork {
            seq,
            secret,
            attempts,
            payload: found.payload,
            text_reference: found.text_reference,
        })
    }

    fn tags(&self) -> Tags<'_> {
        let mut tags = Tags::default();
        match &self.tags {
            TagFilter::DefaultOnly => tags.untagged = true,
            TagFilter::Any => (tags.any, tags.untagged) = (true, true),
            TagFilter::None => {}
            TagFilter::Tags(named) | TagFilter::DefaultAnd(named) => {
                tags.untagged = matches!(self.tags, TagFilter::DefaultAnd(_));
                for (slot, tag) in tags.named.iter_mut().zip(named) {
                    *slot = Some(tag);
                }
            }
        }
        tags
    }
}

/// The oldest fetchable activity of sessions that this owner holds or, for `None`, no owner (R8.81).
fn oldest_in_sessions(c: Db<'_>, holder: Option<&str>, tags: &Tags<'_>) -> Sql<Option<Place>> {
    let mut oldest = None;
    let mut offer = |place: Option<Place>| oldest = oldest.into_iter().chain(place).min();
    if tags.untagged {
        offer(work::oldest_held(c, holder, None)?);
    }
    for tag in tags.named.iter().flatten() {
        offer(work::oldest_held(c, holder, Some(tag))?);
    }
    if tags.any {
        let mut tag = work::next_held_tag(c, holder, None)?;
        while let Some(found) = tag {
            offer(work::oldest_held(c, holder, Some(&found))?);
            tag = work::next_held_tag(c, holder, Some(&found))?;
        }
    }
    Ok(oldest)
}
