//! What orchestration code holds: the context, its durable futures, and the state behind them.
//!
//! A scheduling call only notes what was asked for (an [`Action`] under a
//! fresh token) and returns a future. The replay engine takes the notes after each poll, binds
//! tokens to event ids, and delivers results into the state that the futures read.

mod state;
mod wakeup;
mod tokens;
mod signals;
mod queues;
mod kv;
mod future;
mod schedule;
mod typed;
mod retry;
mod events;
mod children;
mod store;
mod syscalls;
mod continue_as_new;
mod trace;
mod branches;
mod combinators;
mod handler;
mod by_hand;
#[doc(hidden)]
pub mod place;

use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::model::version::ReplayRules;
use crate::model::{Action, Event, KvEntry, SystemStats};

pub use combinators::{Either2, Either3};
pub use continue_as_new::ContinuingAsNew;
pub use future::{DurableFuture, ScheduleKind};
pub use handler::{FnOrchestration, OrchestrationHandler};
pub use retry::RetryingActivity;
pub use tokens::CompletionResult;

pub(crate) use state::{ContextState, Emitted};
pub(crate) use tokens::Operation;
pub(crate) use wakeup::Wakeup;

/// An orchestration's handle on everything durable. Cheap to clone; all clones share one state.
#[derive(Clone)]
pub struct OrchestrationContext {
    inner: Arc<ContextInner>,
}

struct ContextInner {
    identity: Identity,
    replaying: AtomicBool,
    /// Whether futures wake the tasks that wait for them. In older executions all are polled each time.
    wakes: bool,
    wakeup: Arc<Wakeup>,
    state: Mutex<ContextState>,
}

/// Which execution is running.
pub(crate) struct Identity {
    pub(crate) instance_id: String,
    pub(crate) execution_id: u64,
    pub(crate) orchestration_name: String,
    pub(crate) orchestration_version: String,
}

/// What the engine knows before the first poll.
pub(crate) struct Beginning {
    pub(crate) rules: ReplayRules,
    pub(crate) now_ms: Option<u64>,
    pub(crate) kv_snapshot: HashMap<String, KvEntry>,
    pub(crate) custom_status: Option<String>,
}

impl OrchestrationContext {
    /// A context that no engine drives: replaying, under the oldest rules (R3.93, R4.100).
    #[doc(hidden)]
    #[expect(clippy::too_many_arguments, reason = "inherited signature")]
    pub fn new(
        history: Vec<Event>,
        execution_id: u64,
        instance_id: String,
        orchestration_name: String,
        orchestration_version: String,
        worker_id: Option<String>,
    ) -> Self {
        drop((history, worker_id)); // Inherited parameters that nothing ever read back.
        let identity =
            Identity { instance_id, execution_id, orchestration_name, orchestration_version };
        Self::begin(
            identity,
            Beginning {
                rules: ReplayRules::OLD,
                now_ms: None,
                kv_snapshot: HashMap::new(),
                custom_status: None,
            },
        )
    }

    /// A context for one turn.
    pub(crate) fn begin(identity: Identity, beginning: Beginning) -> Self {
        Self {
            inner: Arc::new(ContextInner {
                identity,
                replaying: AtomicBool::new(true),
                wakes: beginning.rules.strict,
                wakeup: Arc::default(),
                state: Mutex::new(ContextState::new(beginning)),
            }),
        }
    }

    /// The instance running this code.
    pub fn instance_id(&self) -> String {
        self.inner.identity.instance_id.clone()
    }

    /// The execution running this code; more than 1 after continue-as-new.
    pub fn execution_id(&self) -> u64 {
        self.inner.identity.execution_id
    }

    /// The registered name of this code.
    pub fn orchestration_name(&self) -> String {
        self.inner.identity.orchestration_name.clone()
    }

    /// The version of this code, as resolved when the execution began.
    pub fn orchestration_version(&self) -> String {
        self.inner.identity.orchestration_version.clone()
    }

    /// Whether this code is being run again over recorded history. Use it for logging only.
    pub fn is_replaying(&self) -> bool {
        self.inner.replaying.load(Ordering::Relaxed)
    }

    /// Always false; kept for source compatibility.
    pub fn is_logging_enabled(&self) -> bool {
        false
    }

    /// Always `None`; kept for source compatibility. Clients ask `get_orchestration_stats`.
    pub fn get_system_stats(&self) -> Option<SystemStats> {
        None
    }

    #[doc(hidden)]
    pub fn set_is_replaying(&self, replaying: bool) {
        self.inner.replaying.store(replaying, Ordering::Relaxed);
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.inner.identity
    }

    /// The end of all wakers of this execution.
    pub(crate) fn wakeup(&self) -> &Arc<Wakeup> {
        &self.inner.wakeup
    }

    /// What a future sees when polled; if that is nothing, it is woken when there is something.
    fn poll_token(&self, token: u64, waker: &Waker) -> Option<CompletionResult> {
        let mut state = self.state();
        let (result, kept) = state.poll_token(token);
        let is_known = state.tokens.keeps_waker(token, waker);
        drop(state);
        drop(kept); // A waker may run any code, also when it is cloned: not under the lock.
        if result.is_some() || is_known || !self.inner.wakes {
            return result;
        }
        // Polled by another task, say: no replay would wake that task in the same place again.
        if self.inner.wakeup.counts() && !waker.will_wake(Waker::noop()) {
            let waker = waker.clone();
            let replaced = self.state().tokens.keep_waker(token, waker);
            drop(replaced);
        }
        None
    }

    /// The shared state. User code runs between locks, never under one (R2.95), so a poisoned lock
    /// only means that a thread died elsewhere.
    pub(crate) fn state(&self) -> MutexGuard<'_, ContextState> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an action under a fresh token.
    fn emit(
        &self,
        operation: Operation,
        action: Action,
        location: &'static Location<'static>,
    ) -> u64 {
        self.state().emit(operation, action, location)
    }
}
