//! What a worker runs.

use async_trait::async_trait;

use super::ActivityContext;

/// An activity.
#[async_trait]
pub trait ActivityHandler: Send + Sync {
    /// Runs it once. It may run again after a crash: at least once is the promise (R5.14).
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String>;
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
