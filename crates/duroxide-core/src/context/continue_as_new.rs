//! The last act of an execution.

use std::future::{Future, pending};
use std::panic::Location;

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
    pub fn continue_as_new(
        &self,
        input: impl Into<String>,
    ) -> impl Future<Output = Result<String, String>> {
        self.continue_at(input.into(), None, Location::caller())
    }

    /// [`continue_as_new`](Self::continue_as_new), typed.
    #[track_caller]
    pub fn continue_as_new_typed<In: Serialize>(
        &self,
        input: &In,
    ) -> impl Future<Output = Result<String, String>> {
        self.continue_at(encoded(input), None, Location::caller())
    }

    /// [`continue_as_new`](Self::continue_as_new) with a given version.
    #[track_caller]
    pub fn continue_as_new_versioned(
        &self,
        version: impl Into<String>,
        input: impl Into<String>,
    ) -> impl Future<Output = Result<String, String>> {
        self.continue_at(input.into(), Some(version.into()), Location::caller())
    }

    fn continue_at(
        &self,
        input: String,
        version: Option<String>,
        location: &'static Location<'static>,
    ) -> impl Future<Output = Result<String, String>> + use<> {
        self.emit(Operation::Note, Action::ContinueAsNew { input, version }, location);
        pending()
    }
}
