//! Registering orchestrations: one or more versions of each name.

use std::sync::Arc;

use semver::Version;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::unconstrained;

use super::{DEFAULT_VERSION, OrchestrationRegistry, RegistryBuilder, VersionPolicy};
use duroxide_core::context::{FnOrchestration, OrchestrationContext, OrchestrationHandler};
use duroxide_core::model::encode;

const DUPLICATE: &str = "duplicate orchestration registration";

impl RegistryBuilder<dyn OrchestrationHandler> {
    /// Registers version 1.0.0 of an orchestration.
    pub fn register<F, Fut>(mut self, name: impl Into<String>, f: F) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.add_or_complain(DUPLICATE, &name.into(), DEFAULT_VERSION, untyped(f));
        self
    }

    /// Registers version 1.0.0 of an orchestration with typed input and output.
    pub fn register_typed<In, Out, F, Fut>(mut self, name: impl Into<String>, f: F) -> Self
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send + 'static,
        F: Fn(OrchestrationContext, In) -> Fut + Send + Sync + Clone + 'static,
        Fut: Future<Output = Result<Out, String>> + Send + 'static,
    {
        self.add_or_complain(DUPLICATE, &name.into(), DEFAULT_VERSION, typed(f));
        self
    }

    /// Registers a version of an orchestration.
    ///
    /// # Panics
    /// If `version` is not semver, or lower than one already registered: versions are registered in
    /// ascending order, so that a slip in a number is found at once (R7.103).
    pub fn register_versioned<F, Fut>(
        self,
        name: impl Into<String>,
        version: impl AsRef<str>,
        f: F,
    ) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.add_version(name.into(), version.as_ref(), untyped(f))
    }

    /// Registers a version of an orchestration with typed input and output.
    ///
    /// # Panics
    /// As [`register_versioned`](Self::register_versioned).
    pub fn register_versioned_typed<In, Out, F, Fut>(
        self,
        name: impl Into<String>,
        version: impl AsRef<str>,
        f: F,
    ) -> Self
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send + 'static,
        F: Fn(OrchestrationContext, In) -> Fut + Send + Sync + Clone + 'static,
        Fut: Future<Output = Result<Out, String>> + Send + 'static,
    {
        self.add_version(name.into(), version.as_ref(), typed(f))
    }

    /// Adds all orchestrations of `other`, but not its policies.
    pub fn merge(self, other: OrchestrationRegistry) -> Self {
        self.merge_registry(other, "duplicate orchestration in merge")
    }

    /// Registers version 1.0.0 of several orchestrations.
    pub fn register_all<F, Fut>(self, items: Vec<(&str, F)>) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static + Clone,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.register_all_handlers(items, |builder, name, f| builder.register(name, f))
    }

    /// Says which version new executions of `name` get.
    pub fn set_policy(mut self, name: impl Into<String>, policy: VersionPolicy) -> Self {
        self.policies.insert(name.into(), policy);
        self
    }

    #[expect(clippy::panic, reason = "R7.103: a wrong version is a mistake in the program")]
    fn add_version(
        mut self,
        name: String,
        version: &str,
        handler: Arc<dyn OrchestrationHandler>,
    ) -> Self {
        let version = Version::parse(version).unwrap_or_else(|error| {
            panic!("invalid orchestration version for {name}: {version}: {error}")
        });
        let versions = self.handlers.get(&name);
        let is_known = versions.is_some_and(|versions| versions.contains_key(&version));
        if let Some((latest, _)) = versions.and_then(|versions| versions.last_key_value())
            && !is_known
            && version < *latest
        {
            panic!(
                "non-monotonic orchestration version for {name}: {version} is not later than {latest}"
            );
        }
        self.add_or_complain(DUPLICATE, &name, version, handler);
        self
    }
}

/// The handler every registered orchestration becomes. Its code is polled without tokio's cooperative
/// budget: that would make the 128th lock of a poll wait, in turns that have spent some of it before
/// and not in others, and so part a turn from its replay (R3.7).
fn untyped<F, Fut>(f: F) -> Arc<dyn OrchestrationHandler>
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    Arc::new(FnOrchestration(move |ctx, input| unconstrained(f(ctx, input))))
}

/// A handler that decodes its input and encodes its output (R2.90, R2.91).
fn typed<In, Out, F, Fut>(f: F) -> Arc<dyn OrchestrationHandler>
where
    In: DeserializeOwned + Send + 'static,
    Out: Serialize + Send + 'static,
    F: Fn(OrchestrationContext, In) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Out, String>> + Send + 'static,
{
    untyped(move |ctx, input: String| {
        let call = ctx.decode_input::<In>(&input).map(|input| f(ctx, input));
        async move { encode(&call?.await?) }
    })
}
