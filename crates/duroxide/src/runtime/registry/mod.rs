//! Who handles which name in which version.

mod builder;
mod orchestrations;
mod activities;
mod closest;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use semver::Version;

use super::handlers::ActivityHandler;
use super::observability::targets;
use duroxide_core::context::OrchestrationHandler;

pub use builder::RegistryBuilder;
use builder::{Mistake, joined};
pub(crate) use closest::closest_names;

/// The orchestrations of a runtime.
pub type OrchestrationRegistry = Registry<dyn OrchestrationHandler>;
/// The activities of a runtime.
pub type ActivityRegistry = Registry<dyn ActivityHandler>;
/// Collects orchestrations.
pub type OrchestrationRegistryBuilder = RegistryBuilder<dyn OrchestrationHandler>;
/// Collects activities.
pub type ActivityRegistryBuilder = RegistryBuilder<dyn ActivityHandler>;

/// Version of what is registered without one.
const DEFAULT_VERSION: Version = Version::new(1, 0, 0);

/// Which version new executions get. Running ones keep theirs (R7.110).
#[derive(Debug, Clone)]
pub enum VersionPolicy {
    /// The highest one.
    Latest,
    /// This one.
    Exact(Version),
}

/// Handlers by name and version.
type Handlers<H> = BTreeMap<String, BTreeMap<Version, Arc<H>>>;
/// Policies by name; [`VersionPolicy::Latest`] for all others.
type Policies = HashMap<String, VersionPolicy>;

/// Handlers by name and version, and which version each name starts with. Cheap to clone; clones
/// share their policies, so that these can change while a runtime uses them (R7.108).
///
/// ```
/// use duroxide::{OrchestrationContext, OrchestrationRegistry};
/// use semver::Version;
///
/// async fn order(_ctx: OrchestrationContext, item: String) -> Result<String, String> {
///     Ok(item)
/// }
///
/// let orders = OrchestrationRegistry::builder()
///     .register_versioned("Order", "1.0.0", order)
///     .register_versioned("Order", "1.1.0", order)
///     .build();
/// assert_eq!(orders.list_versions("Order"), [Version::new(1, 0, 0), Version::new(1, 1, 0)]);
/// assert_eq!(orders.resolve_version("Order"), Some(Version::new(1, 1, 0)));
///
/// // Those of another crate, and more.
/// let all = OrchestrationRegistry::builder_from(&orders).register("Refund", order).build();
/// assert_eq!(all.list_names(), ["Order", "Refund"]);
/// ```
pub struct Registry<H: ?Sized> {
    handlers: Arc<Handlers<H>>,
    policies: Arc<RwLock<Policies>>,
    /// What went wrong when it was built.
    mistakes: Arc<[Mistake]>,
}

impl<H: ?Sized> Registry<H> {
    /// An empty builder.
    pub fn builder() -> RegistryBuilder<H> {
        RegistryBuilder::new(Handlers::new(), Policies::new(), Vec::new())
    }

    /// A builder that already has the handlers and policies of `reg`, and its mistakes.
    pub fn builder_from(reg: &Registry<H>) -> RegistryBuilder<H> {
        let policies = reg.policies.read().unwrap_or_else(PoisonError::into_inner);
        let mistakes = reg.mistakes.to_vec();
        RegistryBuilder::new(Handlers::clone(&reg.handlers), policies.clone(), mistakes)
    }

    /// The version and handler a new execution of `name` gets.
    pub fn resolve_handler(&self, name: &str) -> Option<(Version, Arc<H>)> {
        let found = self.by_policy(name);
        if found.is_none() {
            tracing::debug!(target: targets::REGISTRY, name, "no handler for this name");
        }
        found.map(|(version, handler)| (version.clone(), Arc::clone(handler)))
    }

    /// The version a new execution of `name` gets.
    pub fn resolve_version(&self, name: &str) -> Option<Version> {
        self.by_policy(name).map(|(version, _)| version.clone())
    }

    /// The handler of exactly this version.
    pub fn resolve_handler_exact(&self, name: &str, v: &Version) -> Option<Arc<H>> {
        let found = self.handlers.get(name).and_then(|versions| versions.get(v));
        if found.is_none() {
            tracing::debug!(target: targets::REGISTRY, name, version = %v, "no such handler");
        }
        found.map(Arc::clone)
    }

    /// Changes which version new executions of `name` get, for all clones of this registry.
    pub fn set_version_policy(&self, name: &str, policy: VersionPolicy) {
        let mut policies = self.policies.write().unwrap_or_else(PoisonError::into_inner);
        policies.insert(name.to_owned(), policy);
    }

    /// All names.
    pub fn list_names(&self) -> Vec<String> {
        self.handlers.keys().cloned().collect()
    }

    /// The versions of a name, ascending.
    pub fn list_versions(&self, name: &str) -> Vec<Version> {
        self.handlers.get(name).into_iter().flat_map(BTreeMap::keys).cloned().collect()
    }

    /// Whether a name has any version.
    pub fn has(&self, name: &str) -> bool {
        self.handlers.contains_key(name)
    }

    /// How many names there are.
    pub fn count(&self) -> usize {
        self.handlers.len()
    }

    /// Refuses two handlers of one name and version: the wrong one would do harm. A start has no
    /// error to return, as with options that contradict each other. Other mistakes are logged.
    ///
    /// # Panics
    /// If there are such handlers.
    pub(super) fn check(&self) {
        for mistake in self.mistakes.iter().filter(|mistake| matches!(mistake, Mistake::Skipped(_)))
        {
            tracing::error!(target: targets::REGISTRY, "left out of the registry: {mistake}");
        }
        let is_ambiguous = |mistake: &&Mistake| matches!(mistake, Mistake::Ambiguous(_));
        let ambiguous: Vec<&Mistake> = self.mistakes.iter().filter(is_ambiguous).collect();
        assert!(
            ambiguous.is_empty(),
            "a name was registered twice (RegistryBuilder::build_result returns such mistakes): {}",
            joined(ambiguous)
        );
    }

    fn by_policy(&self, name: &str) -> Option<(&Version, &Arc<H>)> {
        let versions = self.handlers.get(name)?;
        let policies = self.policies.read().unwrap_or_else(PoisonError::into_inner);
        match policies.get(name) {
            Some(VersionPolicy::Exact(version)) => versions.get_key_value(version),
            Some(VersionPolicy::Latest) | None => versions.last_key_value(),
        }
    }
}

impl<H: ?Sized> Clone for Registry<H> {
    fn clone(&self) -> Self {
        Self {
            handlers: Arc::clone(&self.handlers),
            policies: Arc::clone(&self.policies),
            mistakes: Arc::clone(&self.mistakes),
        }
    }
}

impl<H: ?Sized> Default for Registry<H> {
    fn default() -> Self {
        Self::builder().build()
    }
}

#[cfg(test)]
mod tests;
