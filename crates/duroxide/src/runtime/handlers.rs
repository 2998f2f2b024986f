//! What a worker runs, and how.

use std::time::Duration;

use async_trait::async_trait;

use super::ActivityContext;

/// An activity.
#[async_trait]
pub trait ActivityHandler: Send + Sync {
    /// Runs it once. It may run again after a crash: at least once is the promise (R5.14).
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String>;

    /// How workers are to run it.
    fn options(&self) -> ActivityOptions {
        ActivityOptions::default()
    }
}

/// How workers are to run an activity, whoever asks for it:
/// [`register_with_options`](super::registry::RegistryBuilder::register_with_options).
///
/// ```
/// use duroxide::runtime::ActivityOptions;
/// use duroxide::runtime::registry::ActivityRegistry;
/// use duroxide::ActivityContext;
/// use std::time::Duration;
///
/// async fn charge(_ctx: ActivityContext, cents: u64) -> Result<String, String> {
///     Ok(format!("{cents} paid"))
/// }
/// let options = ActivityOptions::new().with_start_to_close(Duration::from_secs(30));
/// let activities = ActivityRegistry::builder()
///     .register_typed_with_options("Charge", options, charge)
///     .build();
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActivityOptions {
    /// Longest time the code of one attempt may run.
    pub start_to_close: Option<Duration>,
}

impl ActivityOptions {
    /// No limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the time that the code of one attempt runs, counted by its worker from when it calls it:
    /// neither the wait for a free worker counts nor the time in which workers or the store are down.
    /// An attempt that runs longer is told by its cancellation token, has the grace period of a
    /// cancellation to end, and fails with the error of
    /// [`ActivityTimeout::StartToClose`](crate::ActivityTimeout::StartToClose), which a retry policy
    /// tries again (R5.40 – R5.43).
    pub fn with_start_to_close(mut self, limit: Duration) -> Self {
        self.start_to_close = Some(limit);
        self
    }
}

/// An activity that was registered with options.
pub(super) struct WithOptions<H> {
    pub(super) handler: H,
    pub(super) options: ActivityOptions,
}

#[async_trait]
impl<H: ActivityHandler> ActivityHandler for WithOptions<H> {
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String> {
        self.handler.invoke(ctx, input).await
    }

    fn options(&self) -> ActivityOptions {
        self.options.clone()
    }
}

/// An activity made from a function.
pub struct FnActivity<F, Fut>(pub F)
where
    F: Fn(ActivityContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static;

#[async_trait]
impl<F, Fut> ActivityHandler for FnActivity<F, Fut>
where
    F: Fn(ActivityContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String> {
        (self.0)(ctx, input).await
    }
}
