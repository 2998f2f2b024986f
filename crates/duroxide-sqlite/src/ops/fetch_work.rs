//! The next activity for these tags and sessions, locked (R8.70 – R8.73, R8.79 – R8.82).

use duroxide_core::clock::millis_rounded_up;
use duroxide_core::provider::{SessionFetchConfig, TagFilter};

use super::{AbandonWork, Lasts, Op};
use crate::error::OpError;
use crate::mailbox;
use crate::tables::Sql;
use crate::tables::sessions::{self, Claim};
use crate::tables::work::{self, Tags};
use crate::token::{Secret, fresh_secret};
use crate::tx::Tx;
use crate::writer::{Job, unattended};

/// What a fetch asks for.
#[derive(Debug, Clone)]
pub(crate) struct FetchWork {
    pub(crate) lock_ms: u64,
    pub(crate) tags: TagFilter,
    pub(crate) session: Option<SessionFetchConfig>,
}

/// A locked activity, yet to be decoded.
#[derive(Debug)]
pub(crate) struct TakenWork {
    pub(crate) seq: i64,
    pub(crate) secret: Secret,
    pub(crate) attempts: u32,
    pub(crate) payload: String,
}

impl Op for FetchWork {
    type Output = Option<TakenWork>;

    fn apply(&self, tx: &mut Tx<'_>) -> Result<Option<TakenWork>, OpError> {
        mailbox::advance(tx)?;
        let Some(seq) = self.choose(tx)? else { return Ok(None) };
        let Some(found) = work::payload(tx.connection, seq)? else { return Ok(None) };
        let secret = fresh_secret();
        let until = tx.now.saturating_add(self.lock_ms);
        work::lock(tx.connection, seq, &secret, until, tx.settings.node)?;
        if let (Some(session), Some(config)) = (&found.session, &self.session) {
            let until = tx.now.saturating_add(millis_rounded_up(config.lock_timeout));
            let (owner, node) = (config.owner_id.as_str(), tx.settings.node);
            let claim = Claim { owner, node, now: tx.now, until };
            sessions::claim(tx.connection, session, claim)?;
            // The same owner may be waiting elsewhere for the rows behind this one.
            tx.notes.work_ready = true;
        }
        let (attempts, payload) = (found.attempts.saturating_add(1), found.payload);
        Ok(Some(TakenWork { seq, secret, attempts, payload }))
    }

    fn lasts(&self) -> Lasts {
        Lasts::No
    }

    fn is_worth_waiting_for(output: &Option<TakenWork>) -> bool {
        output.is_some()
    }

    fn undo(output: Option<TakenWork>) -> Vec<Box<dyn Job>> {
        let abandon = |work: TakenWork| {
            let (seq, secret) = (work.seq, work.secret);
            unattended(AbandonWork { seq, secret, delay_ms: 0, uncount: true })
        };
        output.into_iter().map(abandon).collect()
    }
}

impl FetchWork {
    /// The oldest activity that can be fetched: each kind of row has an index of its own.
    fn choose(&self, tx: &Tx<'_>) -> Sql<Option<i64>> {
        let c = tx.connection;
        let tags = self.tags();
        let mut oldest = None;
        let mut offer = |seq: Option<i64>| oldest = oldest.into_iter().chain(seq).min();
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
        if let Some(config) = &self.session {
            offer(work::oldest_in_sessions(c, &config.owner_id, tx.now, &tags)?);
        }
        Ok(oldest)
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
