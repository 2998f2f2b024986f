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
    pub(super) must_poll: bool,
    /// The code waited for something that is not durable.
    pub(super) waits_for_foreign: bool,
    future: Option<OrchestrationFuture>,
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
        Self {
            ctx,
            rules,
            output: None,
            emitted: VecDeque::new(),
            open: IdMap::default(),
            open_work: 0,
            matched: Vec::new(),
            must_poll: true,
            waits_for_foreign: false,
            future: Some(future),
            continues: false,
        }
    }

    /// Polls if something it may wait for has changed.
    pub(super) fn poll_if_due(&mut self) -> Result<(), ErrorDetails> {
        if self.must_poll { self.poll().map(|_| ()) } else { Ok(()) }
    }

    /// Polls until nothing more can be read, and takes what the code asked for. Whether a message
    /// was read.
    pub(super) fn poll(&mut self) -> Result<bool, ErrorDetails> {
        self.must_poll = false;
        let mut dequeued = false;
        while self.output.is_none() {
            self.poll_once()?;
            dequeued |= self.ctx.state().polls.dequeued > 0;
            if !self.was_mailbox_freed() {
                break;
            }
        }
        Ok(dequeued)
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
        // R3.5: nothing wakes an orchestration but the engine.
        let mut cx = Context::from_waker(Waker::noop());
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
                // A pending poll that asked no durable future waits for something else.
                self.waits_for_foreign |= !self.continues && self.ctx.state().polls.pending == 0;
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

    /// Whether the code gave up a place in a mailbox in this poll and somebody can read in its stead
    /// (L15). Places are given between polls, so this ends.
    fn was_mailbox_freed(&self) -> bool {
        let state = self.ctx.state();
        self.rules.strict && state.polls.places_freed > 0 && state.queues.any_readable()
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
