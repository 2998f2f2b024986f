//! A worker slot: waits for work that it may do, does it, and waits again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Dispatcher;
use super::ahead::Fetched;
use super::execute::Finished;
use crate::providers::{ProviderError, SessionFetchConfig};
use crate::runtime::catch_panic::catch_panic;
use crate::runtime::dispatchers::FAR_AHEAD;
use crate::runtime::dispatchers::fetch::{Pace, or_stop};
use crate::runtime::observability::targets;

/// How long a slot that must leave sessions alone waits before it asks again whether it still must.
const AT_SESSION_LIMIT_POLL: Duration = Duration::from_millis(200);

pub(crate) struct Slot {
    dispatcher: Arc<Dispatcher>,
    worker_id: String,
    pace: Pace,
    /// Results of this slot that wait for the store, and activities that run beside it.
    aside: JoinSet<()>,
    /// Until when sessions of this slot may have work that only this slot can see.
    holds_sessions_until: Option<Instant>,
}

impl Slot {
    pub(crate) fn new(dispatcher: Arc<Dispatcher>, worker_id: String) -> Self {
        let (pace, aside) = (Pace::default(), JoinSet::new());
        Self { dispatcher, worker_id, pace, aside, holds_sessions_until: None }
    }

    /// Until told to stop. What is in hand then is finished first (R7.20).
    pub(crate) async fn run(mut self, tracker: TaskTracker, stop: CancellationToken) {
        while let Some(fetched) = self.next(&stop).await {
            if let Some(fetched) = fetched {
                self.process_guarded(fetched, &tracker).await;
            }
            while self.aside.try_join_next().is_some() {}
        }
        while self.aside.join_next().await.is_some() {}
    }

    /// Waits with the lead, so that one slot waits for all; a slot that owns sessions waits beside
    /// it, since the leader does not see their work (R7.70).
    async fn next(&mut self, stop: &CancellationToken) -> Option<Option<Fetched>> {
        let dispatcher = Arc::clone(&self.dispatcher);
        // Nothing is fetched while there is no room for it. Activities that run beside their slot take
        // the place of another one.
        drop(or_stop(stop, dispatcher.running.acquire()).await?);
        if self.holds_sessions() {
            return self.take_or_fetch(stop).await;
        }
        let _lead = or_stop(stop, dispatcher.lead.take()).await??;
        self.take_or_fetch(stop).await
    }

    async fn take_or_fetch(&mut self, stop: &CancellationToken) -> Option<Option<Fetched>> {
        if stop.is_cancelled() {
            return None;
        }
        if let Some(fetched) = self.dispatcher.ahead.take() {
            return Some(Some(fetched));
        }
        or_stop(stop, self.dispatcher.node.company.calm()).await?;
        let Some(mut fetched) = self.fetch(stop).await? else { return Some(None) };
        // Of a session there is only the last. It is for this slot, which may have claimed it.
        let is_bound = fetched.back().is_some_and(Fetched::is_bound);
        let mine = if is_bound { fetched.pop_back() } else { fetched.pop_front() };
        for unwanted in self.dispatcher.ahead.put(fetched) {
            self.dispatcher.pass_on(unwanted, None).await;
        }
        Some(mine)
    }

    /// Some activities, never none; `Some(None)` if there are none.
    async fn fetch(&mut self, stop: &CancellationToken) -> Option<Option<VecDeque<Fetched>>> {
        let dispatcher = Arc::clone(&self.dispatcher);
        let (options, store) = (&dispatcher.node.options, &dispatcher.node.store);
        let session = self.session_config();
        let poll_timeout = match session {
            Some(_) => options.dispatcher_long_poll_timeout,
            None => options.dispatcher_long_poll_timeout.min(AT_SESSION_LIMIT_POLL),
        };
        let max = self.room();
        let company = &dispatcher.node.company;
        let fetch = async {
            let (lock, tags) = (options.worker_lock_timeout, &options.worker_tag_filter);
            let session = session.as_ref();
            let fetched = store.fetch_work_items(lock, poll_timeout, session, tags, max).await?;
            dispatcher.node.metrics.record_worker_dispatcher_items_fetched(fetched.len() as u64);
            let came_alone = fetched.len() == 1;
            let held = fetched.into_iter().map(|fetched| {
                let lease = dispatcher.leases.hold_work(&fetched.1, &fetched.0);
                Fetched::new(fetched, lease, company.join(), came_alone)
            });
            Ok(Some(held.collect::<VecDeque<_>>()).filter(|fetched| !fetched.is_empty()))
        };
        let min_interval = options.dispatcher_min_poll_interval;
        let log = |error: &ProviderError| dispatcher.node.health.failed("fetch_work_item", error);
        self.pace.fetch(stop, min_interval, log, fetch).await
    }

    /// How many activities to fetch. While slots have sessions of their own, one: those slots wait
    /// for themselves and do not see what the leader has fetched for others.
    fn room(&self) -> usize {
        let options = &self.dispatcher.node.options;
        let lasts = options.session_idle_timeout.saturating_add(options.session_lock_timeout);
        if options.worker_node_id.is_none() && self.dispatcher.sessions.may_own_leases(lasts) {
            return 1;
        }
        match self.dispatcher.node.company.is_wary() {
            true => 1,
            false => self.dispatcher.ahead.room(),
        }
    }

    /// R7.68: at the limit, only work without a session.
    fn session_config(&self) -> Option<SessionFetchConfig> {
        let options = &self.dispatcher.node.options;
        if self.dispatcher.sessions.in_flight() >= options.max_sessions_per_runtime {
            return None;
        }
        let owner_id = self.owner_id().to_owned();
        Some(SessionFetchConfig { owner_id, lock_timeout: options.session_lock_timeout })
    }

    /// R7.67: the node, if it has a name, else this slot.
    fn owner_id(&self) -> &str {
        self.dispatcher.node.options.worker_node_id.as_deref().unwrap_or(&self.worker_id)
    }

    /// Whether sessions of this slot may have work that only this slot can see.
    fn holds_sessions(&self) -> bool {
        self.holds_sessions_until.is_some_and(|until| Instant::now() < until)
    }

    /// Runs an activity, and has its result stored. The slot waits for the activity, unless sessions
    /// wait for the slot: work that any slot could do must not keep them from the only one they have.
    async fn process_guarded(&mut self, fetched: Fetched, tracker: &TaskTracker) {
        let running = Arc::clone(&self.dispatcher.running).acquire_owned().await;
        let is_bound = fetched.is_bound();
        if self.holds_sessions() && !is_bound {
            let (dispatcher, worker_id) = (Arc::clone(&self.dispatcher), self.worker_id.clone());
            self.aside.spawn(tracker.track_future(Box::pin(async move {
                let began = Instant::now();
                let finished = dispatcher.run_guarded(fetched, &worker_id).await;
                drop(running);
                dispatcher.store_guarded(finished, began).await;
            })));
            return;
        }
        let began = Instant::now();
        let finished = self.dispatcher.run_guarded(fetched, &self.worker_id).await;
        drop(running);
        let options = &self.dispatcher.node.options;
        if is_bound && options.worker_node_id.is_none() {
            // Leases are renewed until a session is idle, and last a while longer.
            let lasts = options.session_idle_timeout.saturating_add(options.session_lock_timeout);
            self.holds_sessions_until = Some(Instant::now() + lasts.min(FAR_AHEAD));
        }
        self.store_aside(finished, began, tracker).await;
    }

    /// Has a result stored by a task of its own, so that this slot is free: the store may take its
    /// time, and many results can share one commit.
    async fn store_aside(
        &mut self,
        finished: Option<Finished>,
        began: Instant,
        tracker: &TaskTracker,
    ) {
        let dispatcher = Arc::clone(&self.dispatcher);
        if finished.is_none() {
            return dispatcher.count_duration(began);
        }
        let permit = Arc::clone(&dispatcher.results).acquire_owned().await;
        // In a box, since a task is moved several times before it runs.
        self.aside.spawn(tracker.track_future(Box::pin(async move {
            dispatcher.store_guarded(finished, began).await;
            drop(permit);
        })));
    }
}

impl Dispatcher {
    /// Runs an activity. A panic in here would be a bug of ours; it costs this activity a retry, not the
    /// slot its life.
    async fn run_guarded(&self, fetched: Fetched, worker_id: &str) -> Option<Finished> {
        let ran = catch_panic(self.process(fetched, worker_id)).await;
        ran.unwrap_or_else(|panic| {
            log_panic(worker_id, &panic);
            None
        })
    }

    /// Has the result of an activity stored, if there is one.
    async fn store_guarded(&self, finished: Option<Finished>, began: Instant) {
        if let Some(finished) = finished {
            let worker_id = finished.work.worker_id.clone();
            if let Err(panic) = catch_panic(self.complete(finished)).await {
                log_panic(&worker_id, &panic);
            }
        }
        self.count_duration(began);
    }

    fn count_duration(&self, began: Instant) {
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.node.metrics.record_worker_dispatcher_execution_duration(took_ms);
    }
}

fn log_panic(worker_id: &str, panic: &str) {
    tracing::error!(target: targets::WORKER, %worker_id, %panic,
        "activity processing panicked; it will be repeated when its lock expires");
}
