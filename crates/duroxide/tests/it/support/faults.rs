//! A store that fails when told to: any call, any number of times, before or after the deed.
//!
//! It forwards the contract's methods only, as a wrapper written by somebody else would.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use duroxide::providers::{
    DispatcherCapabilityFilter, ExecutionMetadata, OrchestrationItem, Provider, ProviderAdmin,
    ProviderError, ScheduledActivityIdentifier, SessionFetchConfig, TagFilter, WorkItem,
};
use duroxide::random::Random;
use duroxide::{Event, SystemStats};
use tokio::sync::Semaphore;

/// What to do to a call.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Fail without doing it.
    Before(ProviderError),
    /// Do it, then say that it failed.
    After(ProviderError),
    /// Never answer.
    Hang,
    /// Do it, then never answer.
    HangAfter,
    /// Panic.
    Panic,
    /// Do it after a while.
    Slow(Duration),
    /// Do it once the gate has a permit; the permit is used up.
    Gate(Arc<Semaphore>),
}

pub fn busy() -> Fault {
    Fault::Before(ProviderError::retryable("fault", "busy"))
}

pub fn broken() -> Fault {
    Fault::Before(ProviderError::permanent("fault", "broken"))
}

type Twist = Arc<dyn Fn(&mut OrchestrationItem) + Send + Sync>;

#[derive(Default)]
struct Plan {
    blind: bool,
    clock_hidden: bool,
    twist: Option<Twist>,
    queued: HashMap<&'static str, Vec<Fault>>,
    standing: HashMap<&'static str, Fault>,
    outage: bool,
    /// The call, counted over all methods, at which everything stops, and how.
    crash: Option<(usize, Fault)>,
    all_calls: usize,
    chaos: Option<Chaos>,
    calls: HashMap<&'static str, usize>,
    fired: usize,
    planted: Option<Planted>,
}

/// Something in the worker queue that no store of ours would put there.
struct Planted {
    item: WorkItem,
    attempts: u32,
    is_locked: bool,
    /// What became of it: the delays it was given back with, `None` when it was removed.
    fate: Vec<Option<Duration>>,
}

/// Lock token of what is planted.
const PLANTED: &str = "planted";

/// The remote control of a [`FaultyProvider`].
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<Plan>>);

impl Faults {
    /// The next calls of a method meet these, in order.
    pub fn next(&self, method: &'static str, faults: impl IntoIterator<Item = Fault>) {
        self.0.lock().unwrap().queued.entry(method).or_default().extend(faults);
    }

    /// Every call of a method meets this until [`clear`](Self::clear).
    pub fn always(&self, method: &'static str, fault: Fault) {
        self.0.lock().unwrap().standing.insert(method, fault);
    }

    /// Every call of every method fails for a passing reason.
    pub fn outage(&self, on: bool) {
        self.0.lock().unwrap().outage = on;
    }

    /// Any call may fail, before or after its deed: so many of a thousand, and whether for good.
    pub fn chaos(&self, random: &Random, per_mille: u64, for_good: bool) {
        let random = random.clone();
        self.0.lock().unwrap().chaos = Some(Chaos { random, per_mille, for_good });
    }

    /// Fetches ignore the version filter, as those of an old store.
    pub fn blind(&self) {
        self.0.lock().unwrap().blind = true;
    }

    /// The store does not tell its time.
    pub fn hide_clock(&self) {
        self.0.lock().unwrap().clock_hidden = true;
    }

    /// Changes every fetched turn, as a strange store would.
    pub fn twist(&self, twist: impl Fn(&mut OrchestrationItem) + Send + Sync + 'static) {
        self.0.lock().unwrap().twist = Some(Arc::new(twist));
    }

    /// The call of this number, counted from 1 over all methods, ends so; later ones never answer.
    pub fn crash_at(&self, call: usize, end: Fault) {
        self.0.lock().unwrap().crash = Some((call, end));
    }

    /// Whether the call at which everything stops has come.
    pub fn crashed(&self) -> bool {
        let plan = self.0.lock().unwrap();
        plan.crash.as_ref().is_some_and(|(at, _)| *at <= plan.all_calls)
    }

    pub fn clear(&self) {
        let mut plan = self.0.lock().unwrap();
        plan.queued.clear();
        plan.standing.clear();
        plan.outage = false;
        plan.chaos = None;
    }

    /// Calls of a method so far.
    pub fn calls(&self, method: &'static str) -> usize {
        self.0.lock().unwrap().calls.get(method).copied().unwrap_or(0)
    }

    /// Faults that were met.
    pub fn fired(&self) -> usize {
        self.0.lock().unwrap().fired
    }

    /// Puts something into the worker queue; there until it is removed.
    pub fn plant(&self, item: WorkItem) {
        let planted = Planted { item, attempts: 0, is_locked: false, fate: Vec::new() };
        self.0.lock().unwrap().planted = Some(planted);
    }

    /// What became of what was planted: each delay it was given back with, `None` for its removal.
    pub fn fate(&self) -> Vec<Option<Duration>> {
        self.0.lock().unwrap().planted.as_ref().map(|p| p.fate.clone()).unwrap_or_default()
    }

    fn fetch_planted(&self) -> Option<(WorkItem, String, u32)> {
        let mut plan = self.0.lock().unwrap();
        let planted = plan.planted.as_mut().filter(|planted| !planted.is_locked)?;
        planted.is_locked = true;
        planted.attempts += 1;
        Some((planted.item.clone(), PLANTED.to_owned(), planted.attempts))
    }

    fn end_planted(&self, token: &str, delay: Option<Duration>) -> Option<()> {
        let mut plan = self.0.lock().unwrap();
        let planted = plan.planted.as_mut().filter(|_| token == PLANTED)?;
        planted.fate.push(delay);
        planted.is_locked = delay.is_none();
        Some(())
    }

    fn meet(&self, method: &'static str) -> Option<Fault> {
        let mut plan = self.0.lock().unwrap();
        *plan.calls.entry(method).or_default() += 1;
        plan.all_calls += 1;
        let crash = plan.crash.as_ref().and_then(|(at, end)| match plan.all_calls.cmp(at) {
            Ordering::Less => None,
            Ordering::Equal => Some(end.clone()),
            Ordering::Greater => Some(Fault::Hang),
        });
        if crash.is_some() {
            return crash;
        }
        let queued = plan.queued.get_mut(method).filter(|faults| !faults.is_empty());
        let queued = queued.map(|faults| faults.remove(0));
        let outage = plan.outage.then(busy);
        let fault = queued.or(outage).or_else(|| plan.standing.get(method).cloned());
        let fault = fault.or_else(|| plan.chaos.as_ref().and_then(Chaos::fault));
        plan.fired += usize::from(fault.is_some());
        fault
    }
}

struct Chaos {
    random: Random,
    per_mille: u64,
    for_good: bool,
}

impl Chaos {
    fn fault(&self) -> Option<Fault> {
        let draw = self.random.next_u64();
        let hit = draw % 1_000 < self.per_mille;
        hit.then(|| match draw >> 32 & 3 {
            0 | 1 => busy(),
            2 if self.for_good => broken(),
            _ => Fault::After(ProviderError::retryable("fault", "answer lost")),
        })
    }
}

/// The store.
pub struct FaultyProvider {
    inner: Arc<dyn Provider>,
    faults: Faults,
}

impl FaultyProvider {
    pub fn wrap(inner: Arc<dyn Provider>, faults: &Faults) -> Arc<dyn Provider> {
        Arc::new(Self { inner, faults: faults.clone() })
    }
}

macro_rules! met {
    ($self:ident, $method:literal, $call:expr) => {
        match $self.faults.meet($method) {
            None => $call.await,
            Some(Fault::Before(error)) => Err(error),
            Some(Fault::After(error)) => $call.await.and(Err(error)),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::HangAfter) => {
                $call.await?;
                std::future::pending().await
            }
            Some(Fault::Panic) => panic!("the store panics"),
            Some(Fault::Slow(delay)) => {
                tokio::time::sleep(delay).await;
                $call.await
            }
            Some(Fault::Gate(gate)) => {
                gate.acquire().await.unwrap().forget();
                $call.await
            }
        }
    };
}

#[async_trait]
impl Provider for FaultyProvider {
    fn name(&self) -> &str {
        "faulty"
    }

    fn store_time_ms(&self) -> Option<u64> {
        let hidden = self.faults.0.lock().unwrap().clock_hidden;
        self.inner.store_time_ms().filter(|_| !hidden)
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        let (blind, twist) = {
            let plan = self.faults.0.lock().unwrap();
            (plan.blind, plan.twist.clone())
        };
        let filter = filter.filter(|_| !blind);
        let fetch = self.inner.fetch_orchestration_item(lock_timeout, poll_timeout, filter);
        let mut fetched = met!(self, "fetch_orchestration_item", fetch);
        if let (Some(twist), Ok(Some((item, _, _)))) = (twist, &mut fetched) {
            twist(item);
        }
        fetched
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        met!(
            self,
            "ack_orchestration_item",
            self.inner.ack_orchestration_item(
                lock_token,
                execution_id,
                history_delta,
                worker_items,
                orchestrator_items,
                metadata,
                cancelled_activities,
            )
        )
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        met!(
            self,
            "abandon_orchestration_item",
            self.inner.abandon_orchestration_item(lock_token, delay, ignore_attempt)
        )
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        met!(self, "read", self.inner.read(instance))
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        met!(self, "read_with_execution", self.inner.read_with_execution(instance, execution_id))
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        met!(
            self,
            "append_with_execution",
            self.inner.append_with_execution(instance, execution_id, new_events)
        )
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        met!(self, "enqueue_for_worker", self.inner.enqueue_for_worker(item))
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        if let Some(planted) = self.faults.fetch_planted() {
            return Ok(Some(planted));
        }
        met!(
            self,
            "fetch_work_item",
            self.inner.fetch_work_item(lock_timeout, poll_timeout, session, tag_filter)
        )
    }

    async fn ack_work_item(
        &self,
        token: &str,
        completion: Option<WorkItem>,
    ) -> Result<(), ProviderError> {
        if self.faults.end_planted(token, None).is_some() {
            return Ok(());
        }
        met!(self, "ack_work_item", self.inner.ack_work_item(token, completion))
    }

    async fn renew_work_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        met!(self, "renew_work_item_lock", self.inner.renew_work_item_lock(token, extend_for))
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        met!(
            self,
            "renew_session_lock",
            self.inner.renew_session_lock(owner_ids, extend_for, idle_timeout)
        )
    }

    async fn cleanup_orphaned_sessions(
        &self,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        met!(self, "cleanup_orphaned_sessions", self.inner.cleanup_orphaned_sessions(idle_timeout))
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        if self.faults.end_planted(token, Some(delay.unwrap_or_default())).is_some() {
            return Ok(());
        }
        met!(self, "abandon_work_item", self.inner.abandon_work_item(token, delay, ignore_attempt))
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        met!(
            self,
            "renew_orchestration_item_lock",
            self.inner.renew_orchestration_item_lock(token, extend_for)
        )
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        met!(self, "enqueue_for_orchestrator", self.inner.enqueue_for_orchestrator(item, delay))
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.inner.as_management_capability()
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        met!(self, "get_custom_status", self.inner.get_custom_status(instance, last_seen_version))
    }

    async fn get_kv_value(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<String>, ProviderError> {
        met!(self, "get_kv_value", self.inner.get_kv_value(instance, key))
    }

    async fn get_kv_all_values(
        &self,
        instance: &str,
    ) -> Result<HashMap<String, String>, ProviderError> {
        met!(self, "get_kv_all_values", self.inner.get_kv_all_values(instance))
    }

    async fn get_instance_stats(
        &self,
        instance: &str,
    ) -> Result<Option<SystemStats>, ProviderError> {
        met!(self, "get_instance_stats", self.inner.get_instance_stats(instance))
    }
}
