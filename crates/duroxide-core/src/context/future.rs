//! The future behind every durable operation: poll reads the state, drop asks for cancellation.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::state::Dropped;
use super::{CompletionResult, OrchestrationContext};
use crate::model::Action;

/// What a durable future waits for.
#[derive(Debug, Clone)]
pub enum ScheduleKind {
    /// An activity.
    Activity {
        /// Its name.
        name: String,
    },
    /// A timer.
    Timer,
    /// A positional wait.
    ExternalWait {
        /// Name of the event.
        event_name: String,
    },
    /// A dequeue.
    QueueDequeue {
        /// Name of the queue.
        event_name: String,
    },
    /// A child orchestration.
    SubOrchestration {
        /// Its token.
        token: u64,
    },
}

/// The result of durable work, once it is there.
///
/// Dropping it before it has returned its value cancels the work, wherever that happens: losing a
/// race, going out of scope, the end of the function. Timers simply fire unheard.
#[must_use = "a durable future that is dropped cancels its work"]
pub struct DurableFuture<T> {
    state: State<T>,
}

enum State<T> {
    Waiting(Waiting<T>),
    /// Decided when it was made, as with a refused child id.
    Ready(T),
    Done,
}

struct Waiting<T> {
    token: u64,
    kind: ScheduleKind,
    ctx: OrchestrationContext,
    finish: Box<dyn FnOnce(CompletionResult) -> T + Send>,
}

impl<T> DurableFuture<T> {
    pub(super) fn waiting(
        ctx: &OrchestrationContext,
        token: u64,
        kind: ScheduleKind,
        finish: impl FnOnce(CompletionResult) -> T + Send + 'static,
    ) -> Self {
        let finish = Box::new(finish);
        Self { state: State::Waiting(Waiting { token, kind, ctx: ctx.clone(), finish }) }
    }

    pub(super) fn ready(value: T) -> Self {
        Self { state: State::Ready(value) }
    }

    /// Whose operation it is, and its token.
    pub(super) fn origin(&self) -> Option<(OrchestrationContext, u64)> {
        match &self.state {
            State::Waiting(waiting) => Some((waiting.ctx.clone(), waiting.token)),
            State::Ready(_) | State::Done => None,
        }
    }

    fn take_state(&mut self) -> State<T> {
        std::mem::replace(&mut self.state, State::Done)
    }
}

impl<T: Send + 'static> DurableFuture<T> {
    /// Transforms the value. The future stays the same operation: same place in history, same
    /// cancellation on drop.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn first_word(ctx: OrchestrationContext, file: String) -> Result<String, String> {
    ///     let text = ctx.schedule_activity("Read", file);
    ///     let word = text.map(|text| text.map(|t| t.split(' ').next().unwrap_or("").to_owned()));
    ///     word.await
    /// }
    /// ```
    pub fn map<U: Send + 'static>(
        mut self,
        f: impl FnOnce(T) -> U + Send + 'static,
    ) -> DurableFuture<U> {
        let state = match self.take_state() {
            State::Waiting(Waiting { token, kind, ctx, finish }) => {
                let finish = Box::new(move |result| f(finish(result)));
                State::Waiting(Waiting { token, kind, ctx, finish })
            }
            State::Ready(value) => State::Ready(f(value)),
            State::Done => State::Done,
        };
        DurableFuture { state }
    }

    /// Routes the activity to workers that accept `tag`.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn film(ctx: OrchestrationContext, scene: String) -> Result<String, String> {
    ///     ctx.schedule_activity("Render", scene).with_tag("gpu").await
    /// }
    /// ```
    ///
    /// # Panics
    /// On anything but an activity, or later than in the statement that scheduled it: once the
    /// orchestration has been suspended the activity is on its way.
    #[expect(clippy::panic, reason = "documented: the misuse is a bug in the orchestration")]
    pub fn with_tag(self, tag: impl Into<String>) -> Self {
        const RULE: &str = "with_tag() can only be called on activity futures";
        let State::Waiting(Waiting { token, kind: ScheduleKind::Activity { .. }, ctx, .. }) =
            &self.state
        else {
            panic!("{RULE}");
        };
        let tagged = set_tag(ctx, *token, tag.into());
        assert!(tagged, "{RULE}, in the same step that schedules the activity");
        self
    }
}

/// Whether the action was still there to be tagged.
fn set_tag(ctx: &OrchestrationContext, token: u64, new_tag: String) -> bool {
    let mut state = ctx.state();
    let emitted = state.emitted_mut().iter_mut().rev().find(|emitted| emitted.token == token);
    let Some(Action::CallActivity { tag, .. }) = emitted.map(|emitted| &mut emitted.action) else {
        return false;
    };
    *tag = Some(new_tag);
    true
}

impl<T> Future for DurableFuture<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = self.get_mut();
        if let State::Waiting(waiting) = &this.state {
            let result = waiting.ctx.poll_token(waiting.token, cx.waker());
            let Some(result) = result else { return Poll::Pending };
            if let State::Waiting(waiting) = this.take_state() {
                // The lock is free here: decoding may run user code, and may panic (R2.95).
                return Poll::Ready((waiting.finish)(result));
            }
        }
        match this.take_state() {
            State::Ready(value) => Poll::Ready(value),
            State::Waiting(_) | State::Done => Poll::Pending,
        }
    }
}

// Nothing in here is ever pinned in place.
impl<T> Unpin for DurableFuture<T> {}

impl<T> Drop for DurableFuture<T> {
    fn drop(&mut self) {
        if let State::Waiting(waiting) = &self.state {
            let Dropped { kept, woken } = waiting.ctx.state().drop_token(waiting.token);
            drop(kept); // Not under the lock: a waker may run any code.
            woken.into_iter().for_each(Waker::wake);
        }
    }
}
