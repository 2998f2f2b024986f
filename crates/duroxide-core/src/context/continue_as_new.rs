//! The last act of an execution.

use std::future::{Future, Pending, pending};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use serde::Serialize;

use super::schedule::encoded;
use super::{Operation, OrchestrationContext};
use crate::model::Action;

impl OrchestrationContext {
    /// Ends this execution and begins the next with `input` and an empty history. The future never
    /// resolves; asking is enough, awaited or not.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// # use std::time::Duration;
    /// async fn poll(ctx: OrchestrationContext, cursor: String) -> Result<String, String> {
    ///     let next = ctx.schedule_activity("ReadFeed", cursor).await?;
    ///     ctx.schedule_timer(Duration::from_secs(60)).await;
    ///     ctx.continue_as_new(next).await
    /// }
    /// ```
    #[track_caller]
    pub fn continue_as_new(&self, input: impl Into<String>) -> ContinuingAsNew {
        self.continue_at(input.into(), None, Location::caller())
    }

    /// [`continue_as_new`](Self::continue_as_new), typed. Where the orchestration returns something else
    /// than a text, [`returning`](ContinuingAsNew::returning) fits it in.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn count(ctx: OrchestrationContext, so_far: u64) -> Result<u64, String> {
    ///     let found: u64 = ctx.schedule_activity_typed("CountPage", &so_far).await?;
    ///     if found == 0 {
    ///         return Ok(so_far);
    ///     }
    ///     ctx.continue_as_new_typed(&(so_far + found)).returning().await
    /// }
    /// ```
    #[track_caller]
    pub fn continue_as_new_typed<In: Serialize>(&self, input: &In) -> ContinuingAsNew {
        self.continue_at(encoded(input), None, Location::caller())
    }

    /// [`continue_as_new`](Self::continue_as_new) with a given version.
    #[track_caller]
    pub fn continue_as_new_versioned(
        &self,
        version: impl Into<String>,
        input: impl Into<String>,
    ) -> ContinuingAsNew {
        self.continue_at(input.into(), Some(version.into()), Location::caller())
    }

    fn continue_at(
        &self,
        input: String,
        version: Option<String>,
        location: &'static Location<'static>,
    ) -> ContinuingAsNew {
        self.emit(Operation::Note, Action::ContinueAsNew { input, version }, location);
        ContinuingAsNew(Box::new(pending()))
    }
}

/// The rest of an execution that continues as new: a future that never resolves.
///
/// In a box, which takes no memory, so that `drop(ctx.continue_as_new(…))` is not a drop of nothing.
pub struct ContinuingAsNew(Box<Pending<Result<String, String>>>);

impl ContinuingAsNew {
    /// The same, of whatever type is wanted: what never comes can be of any.
    pub fn returning<Out>(self) -> impl Future<Output = Out> {
        pending()
    }
}

impl Future for ContinuingAsNew {
    type Output = Result<String, String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut *self.0).poll(cx)
    }
}
