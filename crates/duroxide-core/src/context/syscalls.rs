//! Things only the outside knows, asked of the runtime and recorded, so that replay repeats them.

use std::future::Future;
use std::panic::Location;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::OrchestrationContext;
use crate::model::{SYSCALL_NEW_GUID, SYSCALL_UTC_NOW_MS};

impl OrchestrationContext {
    /// A random UUID (version 4).
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn pay(ctx: OrchestrationContext, cents: String) -> Result<String, String> {
    ///     let key = ctx.new_guid().await?; // The same on every replay.
    ///     ctx.schedule_activity("Charge", format!("{key} {cents}")).await
    /// }
    /// ```
    #[track_caller]
    pub fn new_guid(&self) -> impl Future<Output = Result<String, String>> {
        self.activity_at(SYSCALL_NEW_GUID.to_owned(), String::new(), None, Location::caller())
    }

    /// The time, to the millisecond.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn age(ctx: OrchestrationContext, _input: String) -> Result<u64, String> {
    ///     let began_at = ctx.utc_now().await?;
    ///     ctx.schedule_activity("Slow", "").await?;
    ///     let took = ctx.utc_now().await?.duration_since(began_at).unwrap_or_default();
    ///     Ok(took.as_secs())
    /// }
    /// ```
    #[track_caller]
    pub fn utc_now(&self) -> impl Future<Output = Result<SystemTime, String>> {
        self.activity_at(SYSCALL_UTC_NOW_MS.to_owned(), String::new(), None, Location::caller())
            .map(|result| {
                let text = result?;
                let ms: u64 =
                    text.parse().map_err(|error| format!("recorded time '{text}': {error}"))?;
                UNIX_EPOCH
                    .checked_add(Duration::from_millis(ms))
                    .ok_or_else(|| format!("recorded time '{text}' is out of range"))
            })
    }
}
