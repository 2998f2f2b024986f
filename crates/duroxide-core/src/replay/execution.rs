//! The running orchestration function: polling it, and what it has asked for so far.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::index::Class;
use crate::context::{Emitted, OrchestrationContext, OrchestrationHandler};
use crate::id_map::IdMap;
use crate::model::limits::MAX_IDLE_POLLS;
use crate::model::version::ReplayRules;
use crate::model::{Action, AppErrorKind, ErrorDetails};
use crate::user_code;

type OrchestrationFuture = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

pub(super) struct Execution {
    pub(super) ctx: OrchestrationContext,
    pub(super) rules: ReplayRules,
    pub(super) output: Option<Result<String, String>>,
    /// Actions not yet matched to history or recorded, oldest first.
    pub(super) emitted: VecDeque<Emitted>,
    /// Schedule events without a completion.
    pub(super) open: IdMap<Class>,
    /// How many of them are activities or children.
    pub(super) open_work: usize,
    /// Which line of code made which schedule event, for reports.
    pub(super) matched: Vec<(u64, &'static Location<'static>)>,
    /// Something it may wait for has changed. Asked only in old executions, which have no wakes.
    pub(super) must_poll: bool,
    /// The last event applied was an action of the code's own.
    pub(super) is_binding: bool,
    /// Polls since the last event or result.
    pub(super) idle_polls: usize,
    /// The code waited for something that is not durable.
    pub(super) waits_for_foreign: bool,
    future: Option<OrchestrationFuture>,
    waker: Waker,
    /// The code asked to continue as new, whose future never resolves.
    continues: bool,
}

impl Execution {
    /// Makes the function's future; its body is not entered yet.
    pub(super) fn begin(
        ctx: OrchestrationContext,
        rules: ReplayRules,
        handler: Arc<dyn OrchestrationHandler>,
        input: String,
    ) -> Self {
        let handler_ctx = ctx.clone();
        let future = Box::pin(async move { handler.invoke(handler_ctx, input).await });
        // R3.5: nothing wakes older executions but the engine.
        let waker = match rules.strict {
            true => Waker::from(Arc::clone(ctx.wakeup())),
            false => Waker::noop().clone(),
        };
        Self {
            ctx,
            rules,
            output: None,
            emitted: VecDeque::new(),
            open: IdMap::default(),
            open_work: 0,
            matched: Vec::new(),
            must_poll: true,
            is_binding: false,
            idle_polls: 0,
            waits_for_foreign: false,
            future: Some(future),
            waker,
            continues: false,
        }
    }

    /// Polls if something it may wait for has changed.
    pub(super) fn poll_if_due(&mut self) -> Result<(), ErrorDetails> {
        // What a live turn asked for was bound all at once; before that nothing was polled (R3.157).
        let is_half_bound = self.is_binding && !self.emitted.is_empty();
        match (self.rules.strict, self.must_poll) {
            (true, _) if !is_half_bound => self.settle(),
            (false, true) => self.poll().map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Polls as long as any task in it was woken, and takes what the code asked for.
    pub(super) fn settle(&mut self) -> Result<(), ErrorDetails> {
        while self.output.is_none() && self.ctx.wakeup().take_woken() {
            self.poll_once()?;
            if MAX_IDLE_POLLS <= self.idle_polls {
                return Err(never_settles());
            }
        }
        Ok(())
    }

    /// Polls once and takes what the code asked for. Whether a message was read.
    pub(super) fn poll(&mut self) -> Result<bool, ErrorDetails> {
        self.must_poll = false;
        self.poll_once()?;
        Ok(self.ctx.state().polls.dequeued > 0)
    }

    /// About how much memory the function's own state takes.
    pub(super) fn size(&self) -> usize {
        size_of::<Self>() + self.future.as_deref().map_or(0, size_of_val)
    }

    /// Drops the future. Its destructors are user code.
    fn discard(&mut self) {
        let future = self.future.take();
        if let Err(text) = guarded(|| drop(future)) {
            let identity = self.ctx.identity();
            tracing::error!(target: "duroxide::runtime", instance = %identity.instance_id,
                orchestration = %identity.orchestration_name,
                "an orchestration's destructor panicked; ignored: {text}");
        }
    }

    fn poll_once(&mut self) -> Result<(), ErrorDetails> {
        let Some(future) = &mut self.future else { return Ok(()) };
        self.ctx.state().polls = Default::default();
        let mut cx = Context::from_waker(&self.waker);
        let polled = guarded(|| future.as_mut().poll(&mut cx));
        self.take_emitted();
        match polled {
            Err(text) => Err(ErrorDetails::application(AppErrorKind::Panicked, text)),
            Ok(Poll::Ready(output)) => {
                self.output = Some(output);
                self.discard();
                Ok(())
            }
            Ok(Poll::Pending) => {
                let (may_go_on, has_returned) = self.look_at_pending();
                self.waits_for_foreign |= !self.continues && !may_go_on;
                self.idle_polls = if has_returned { 0 } else { self.idle_polls + 1 };
                Ok(())
            }
        }
    }

    fn take_emitted(&mut self) {
        for emitted in self.ctx.state().take_emitted() {
            self.continues |= matches!(emitted.action, Action::ContinueAsNew { .. });
            self.emitted.push_back(emitted);
        }
    }

    /// After a pending poll: whether something durable can make the code go on, and whether any
    /// durable future returned its value in it. Without wakes, a pending poll that asked no durable
    /// future waits for something else.
    fn look_at_pending(&self) -> (bool, bool) {
        let state = self.ctx.state();
        let may_go_on = match self.rules.strict {
            true => self.ctx.wakeup().is_woken() || state.tokens.is_any_awaited(),
            false => 0 < state.polls.pending,
        };
        (may_go_on, 0 < state.polls.returned)
    }
}

/// For code that wakes itself on every poll (R3.67).
fn never_settles() -> ErrorDetails {
    ErrorDetails::Infrastructure {
        operation: "quiescence_loop".to_owned(),
        message: format!(
            "orchestration woke itself in {MAX_IDLE_POLLS} polls without any durable result"
        ),
        retryable: false,
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        self.discard();
    }
}

/// Runs user code; the text of its panic, if it panics (R3.74).
fn guarded<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    user_code::guarded(code)
        .map_err(|text| text.unwrap_or_else(|| "orchestration panicked".to_owned()))
}
