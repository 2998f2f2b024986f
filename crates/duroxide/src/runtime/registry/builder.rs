//! Collects handlers, and what went wrong on the way.

use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::{Arc, RwLock};

use semver::Version;

use super::{Handlers, Policies, Registry};

/// Collects handlers. Mistakes, such as a name registered twice, do not stop it:
/// [`build_result`](Self::build_result) returns them, and a runtime refuses to start with them.
///
/// Handlers are functions or closures; shared state is captured. Orchestrations have versions:
/// an execution stays on the version it began with, new ones take what the policy says.
///
/// ```
/// use duroxide::runtime::registry::{ActivityRegistry, VersionPolicy};
/// use duroxide::{ActivityContext, OrchestrationContext, OrchestrationRegistry};
/// use semver::Version;
/// use std::sync::Arc;
///
/// async fn charge(_ctx: ActivityContext, cents: u64) -> Result<bool, String> {
///     Ok(cents < 10_000)
/// }
/// async fn order_v1(ctx: OrchestrationContext, cents: u64) -> Result<bool, String> {
///     ctx.schedule_activity_typed("Charge", &cents).await
/// }
/// async fn order_v2(ctx: OrchestrationContext, cents: u64) -> Result<bool, String> {
///     Ok(cents == 0 || ctx.schedule_activity_typed("Charge", &cents).await?)
/// }
///
/// let currency = Arc::new(String::from("EUR"));
/// let activities = ActivityRegistry::builder()
///     .register_typed("Charge", charge)
///     .register("Print", move |_ctx: ActivityContext, amount: String| {
///         let currency = Arc::clone(&currency);
///         async move { Ok(format!("{amount} {currency}")) }
///     })
///     .build_result()?;
/// assert_eq!(activities.count(), 2);
///
/// let orchestrations = OrchestrationRegistry::builder()
///     .register_versioned_typed("Order", "1.0.0", order_v1)
///     .register_versioned_typed("Order", "2.0.0", order_v2)
///     .set_policy("Order", VersionPolicy::Exact(Version::new(1, 0, 0)))
///     .build_result()?;
/// assert_eq!(orchestrations.resolve_version("Order"), Some(Version::new(1, 0, 0)));
/// // Time to switch; a runtime that uses a clone of this registry follows.
/// orchestrations.set_version_policy("Order", VersionPolicy::Latest);
/// assert_eq!(orchestrations.resolve_version("Order"), Some(Version::new(2, 0, 0)));
///
/// let twice = ActivityRegistry::builder().merge(activities.clone()).merge(activities);
/// let mistakes = twice.build_result().err();
/// assert!(mistakes.is_some_and(|text| text.contains("duplicate activity in merge: Charge@1.0.0")));
/// # Ok::<(), String>(())
/// ```
pub struct RegistryBuilder<H: ?Sized> {
    pub(super) handlers: Handlers<H>,
    pub(super) policies: Policies,
    pub(super) errors: Vec<Mistake>,
}

/// Something that went wrong while a registry was built.
#[derive(Debug, Clone)]
pub(super) enum Mistake {
    /// Two handlers of one name and version: which was meant cannot be known.
    Ambiguous(String),
    /// A handler that can never be called was left out.
    Skipped(String),
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ambiguous(text) | Self::Skipped(text) => f.write_str(text),
        }
    }
}

/// All of them in one text.
pub(super) fn joined<'a>(mistakes: impl IntoIterator<Item = &'a Mistake>) -> String {
    mistakes.into_iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl<H: ?Sized> RegistryBuilder<H> {
    pub(super) fn new(handlers: Handlers<H>, policies: Policies, errors: Vec<Mistake>) -> Self {
        Self { handlers, policies, errors }
    }

    /// The registry. It remembers what went wrong: a runtime does not start with two handlers of one
    /// name and version.
    pub fn build(self) -> Registry<H> {
        Registry {
            handlers: Arc::new(self.handlers),
            policies: Arc::new(RwLock::new(self.policies)),
            mistakes: self.errors.into(),
        }
    }

    /// The registry, or everything that went wrong.
    pub fn build_result(self) -> Result<Registry<H>, String> {
        if self.errors.is_empty() { Ok(self.build()) } else { Err(joined(&self.errors)) }
    }

    /// Adds all handlers of `other`, but not its policies. What is here already stays; the clash is
    /// an error of the form `<error_prefix>: <name>@<version>`. The mistakes of `other` come along.
    pub fn merge_registry(mut self, other: Registry<H>, error_prefix: &str) -> Self {
        self.errors.extend(other.mistakes.iter().cloned());
        for (name, versions) in Arc::unwrap_or_clone(other.handlers) {
            for (version, handler) in versions {
                self.add_or_complain(error_prefix, &name, version, handler);
            }
        }
        self
    }

    /// Registers several handlers through `register_fn`.
    pub fn register_all_handlers<F>(
        self,
        items: Vec<(&str, F)>,
        register_fn: impl Fn(Self, &str, F) -> Self,
    ) -> Self
    where
        F: Clone,
    {
        items.into_iter().fold(self, |builder, (name, handler)| register_fn(builder, name, handler))
    }

    /// Adds a handler unless there is one of this name and version: the first one stays.
    pub(super) fn add_or_complain(
        &mut self,
        complaint: &str,
        name: &str,
        version: Version,
        handler: Arc<H>,
    ) {
        match self.handlers.entry(name.to_owned()).or_default().entry(version) {
            Entry::Vacant(place) => {
                place.insert(handler);
            }
            Entry::Occupied(first) => {
                let text = format!("{complaint}: {name}@{}", first.key());
                self.errors.push(Mistake::Ambiguous(text));
            }
        }
    }
}
