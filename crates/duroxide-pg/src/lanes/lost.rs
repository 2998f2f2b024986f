//! Looks whose answers were lost: what they took goes back.
//!
//! The server may not have noticed that nobody listens any more, and take something for us after we have
//! given back what was taken. So it is given back again and again, until the process of the server that
//! was asked is known to be gone. Behind a pooler nobody knows which that was: then for a while.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::floor::Floor;
use super::op::Queue;
use crate::error::PgError;
use crate::store::Store;

/// A process of the server, as nobody else is called before or after: process id, and when it began.
pub(super) type Backend = (i32, String);

/// Pauses between tries: from the first to the longest, doubling.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How much longer than a statement may take its process is expected to be at work, if nobody knows it.
const GRACE: Duration = Duration::from_secs(5);

/// A look whose answer was lost.
#[derive(Debug)]
pub(super) struct Lost {
    secret: Uuid,
    /// Who may still be at work on it, if that is known.
    backend: Option<Backend>,
    since: Instant,
}

impl Floor {
    /// The answers to looks with these secrets were lost.
    pub(super) fn lose(&self, secrets: Vec<Uuid>, backend: Option<Backend>) {
        if secrets.is_empty() {
            return;
        }
        let since = Instant::now();
        let lost = |secret| Lost { secret, backend: backend.clone(), since };
        self.lock().lost.extend(secrets.into_iter().map(lost));
        self.losses.notify_one();
    }

    /// Waits until something was lost; `None` when the floor is closed.
    async fn next_lost(&self) -> Option<Vec<Lost>> {
        loop {
            {
                let mut state = self.lock();
                if state.is_closed {
                    return None;
                }
                if !state.lost.is_empty() {
                    return Some(std::mem::take(&mut state.lost));
                }
            }
            self.losses.notified().await;
        }
    }

    fn take_lost(&self) -> Vec<Lost> {
        std::mem::take(&mut self.lock().lost)
    }
}

/// Gives back what was lost, until the store is closed.
pub(super) async fn give_back(store: Arc<Store>) {
    while let Some(mut lost) = store.floor.next_lost().await {
        let mut pause = FIRST_PAUSE;
        while !lost.is_empty() && !store.floor.is_closed() {
            lost = match store.give_back_once(lost).await {
                (left, None) => left,
                (left, Some(error)) => {
                    tracing::debug!(target: "duroxide::providers::postgres", %error, "still lost");
                    left
                }
            };
            if !lost.is_empty() {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            lost.extend(store.floor.take_lost());
        }
    }
}

impl Store {
    /// Gives back what was lost; what may still be taken by somebody is left.
    async fn give_back_once(&self, mut lost: Vec<Lost>) -> (Vec<Lost>, Option<PgError>) {
        const FORGET: &str = "SELECT duroxide.forget_fetches($1, $2, $3)";
        // First the processes, so that those which are gone have taken what they could.
        let mut is_over = Vec::with_capacity(lost.len());
        for lost in &mut lost {
            match self.end_backend(lost).await {
                Ok(over) => is_over.push(over),
                Err(error) if error.is_outage() || error.spoils_connection() => {
                    is_over.push(false);
                }
                Err(error) => {
                    // Whoever it is cannot be ended by us.
                    tracing::debug!(target: "duroxide::providers::postgres", %error, "not ended");
                    lost.backend = None;
                    is_over.push(false);
                }
            }
        }
        let secrets: Vec<Uuid> = lost.iter().map(|lost| lost.secret).collect();
        let (now, retention) = (self.given_time(), self.retention());
        if let Err(error) = self.pool.query(FORGET, &[&secrets, &now, &retention]).await {
            return (lost, Some(error));
        }
        self.floor.lower_all();
        self.floor.ring(Queue::Turns);
        self.floor.ring(Queue::Work);
        let both = lost.into_iter().zip(is_over);
        (both.filter_map(|(lost, is_over)| (!is_over).then_some(lost)).collect(), None)
    }

    /// Ends who may still be at work on it; whether nobody is any more, as far as can be told.
    async fn end_backend(&self, lost: &Lost) -> Result<bool, PgError> {
        const END: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE pid = $1 AND extract(epoch FROM backend_start)::text = $2";
        match &lost.backend {
            Some((pid, began)) => Ok(self.pool.query(END, &[pid, began]).await?.is_empty()),
            None => {
                let patience = self.pool.settings().statement_timeout + GRACE;
                Ok(patience <= lost.since.elapsed())
            }
        }
    }
}
