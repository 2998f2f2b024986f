//! What the dispatchers of one runtime share.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use duroxide_core::model::WorkItem;
use semver::Version;

use super::builtin::is_builtin;
use super::company::Company;
use super::facts::ExecutionFacts;
use super::long_turns::RunningTurns;
use super::observability::health::StoreHealth;
use super::observability::{MetricsProvider, targets};
use super::options::{RuntimeOptions, RuntimeTuning};
use super::registry::{ActivityRegistry, OrchestrationRegistry, closest_names};
use super::warm::WarmInstances;
use crate::providers::{Provider, ProviderError};

/// Names announced at most, so that names made up at run time cannot fill the memory.
const ANNOUNCED_NAMES_MAX: usize = 1_000;

pub(crate) struct Node {
    pub(crate) store: Arc<dyn Provider>,
    pub(crate) activities: ActivityRegistry,
    pub(crate) orchestrations: OrchestrationRegistry,
    pub(crate) options: RuntimeOptions,
    pub(crate) tuning: RuntimeTuning,
    pub(crate) metrics: Arc<MetricsProvider>,
    pub(crate) health: Arc<StoreHealth>,
    pub(crate) facts: ExecutionFacts,
    pub(crate) warm: WarmInstances,
    pub(crate) turns: Arc<RunningTurns>,
    pub(crate) company: Arc<Company>,
    /// Tells this runtime from all others.
    pub(crate) runtime_id: String,
    announced: Mutex<HashSet<(Kind, String)>>,
}

/// What kind of handler a name is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Activity,
    Orchestration,
}

impl Node {
    pub(crate) fn new(
        store: Arc<dyn Provider>,
        (activities, orchestrations): (ActivityRegistry, OrchestrationRegistry),
        (options, tuning): (RuntimeOptions, RuntimeTuning),
        (health, metrics): (Arc<StoreHealth>, Arc<MetricsProvider>),
    ) -> Self {
        // 64 random bits: worker ids, and with them session owners, never coincide (L24).
        let runtime_id = format!("{:016x}", tuning.random.next_u64());
        let warm = WarmInstances::new(tuning.warm, Arc::clone(&metrics));
        Self {
            store,
            activities,
            orchestrations,
            options,
            tuning,
            metrics,
            health,
            facts: ExecutionFacts::default(),
            warm,
            turns: Arc::default(),
            company: Company::new(),
            runtime_id,
            announced: Mutex::default(),
        }
    }

    /// The time by which timers are set: the store's, so that the node that sets a timer and the
    /// store that shows it agree (L23).
    pub(crate) fn now_ms(&self) -> u64 {
        self.store.store_time_ms().unwrap_or_else(|| self.tuning.clock.now_ms())
    }

    /// The time of a turn that reads these messages: not before a timer that has fired was due, which
    /// another clock than the one here may have found.
    pub(crate) fn turn_time_ms(&self, messages: &[WorkItem]) -> u64 {
        let due_at = messages.iter().filter_map(|message| match message {
            WorkItem::TimerFired { fire_at_ms, .. } => Some(*fire_at_ms),
            _ => None,
        });
        due_at.fold(self.now_ms(), u64::max)
    }

    /// Says once that code here uses a name that nothing here registers (R3.172). It may be served
    /// elsewhere, so the work goes its way.
    pub(crate) fn announce_unknown(&self, kind: Kind, name: &str, used_by: &str) {
        let known = match kind {
            Kind::Activity if self.activities.has(name) => return,
            Kind::Orchestration if self.orchestrations.has(name) => return,
            Kind::Activity => self.activities.list_names(),
            Kind::Orchestration => self.orchestrations.list_names(),
        };
        if !self.is_first_mention(kind, name) {
            return;
        }
        let kind = match kind {
            Kind::Activity => "activity",
            Kind::Orchestration => "orchestration",
        };
        let closest = closest_names(&known, name).join(", ");
        tracing::warn!(
            target: targets::REGISTRY,
            %name, %used_by, %closest,
            "{kind} '{name}' is not registered in this process; known names closest to it: [{closest}]. \
             Unless another node registers it, it will be retried and then given up"
        );
    }

    /// The same for a version of a name that has others here.
    pub(crate) fn announce_unknown_version(&self, name: &str, version: Option<&str>) {
        let known = self.orchestrations.list_versions(name);
        let Some(version) = version.filter(|_| !known.is_empty()) else { return };
        if !self.is_first_mention(Kind::Orchestration, &format!("{name}@{version}")) {
            return;
        }
        let known = known.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        tracing::warn!(
            target: targets::REGISTRY,
            %name, %version, %known,
            "version {version} of orchestration '{name}' is not registered in this process, which \
             has [{known}]. Unless another node registers it, it will be retried and then given up"
        );
    }

    /// What to say of an orchestration that is given up, if nothing here can run it. It has been tried
    /// by whoever took it: a node that knows it would have run it.
    pub(crate) fn unregistered_orchestration(
        &self,
        name: &str,
        version: Option<&str>,
    ) -> Option<String> {
        let version = version.filter(|version| Version::parse(version).is_ok());
        let is_here = match version.and_then(|version| Version::parse(version).ok()) {
            Some(version) => self.orchestrations.resolve_handler_exact(name, &version).is_some(),
            None => self.orchestrations.has(name),
        };
        if is_here {
            return None;
        }
        let version = version.map(|version| format!(" version `{version}`")).unwrap_or_default();
        let what = format!("orchestration `{name}`{version} is registered on no node that took it");
        let versions = self.orchestrations.list_versions(name);
        Some(match versions.is_empty() {
            true => format!("{what}; {}", closest(&self.orchestrations.list_names(), name)),
            false => {
                let versions: Vec<_> = versions.iter().map(ToString::to_string).collect();
                format!("{what}; there is version {}", versions.join(", "))
            }
        })
    }

    /// The same for an activity.
    pub(crate) fn unregistered_activity(&self, name: &str) -> Option<String> {
        if self.activities.has(name) || is_builtin(name) {
            return None;
        }
        let closest = closest(&self.activities.list_names(), name);
        Some(format!("activity `{name}` is registered on no node that took it; {closest}"))
    }

    fn is_first_mention(&self, kind: Kind, name: &str) -> bool {
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        announced.len() < ANNOUNCED_NAMES_MAX && announced.insert((kind, name.to_owned()))
    }
}

fn closest(known: &[String], name: &str) -> String {
    match closest_names(known, name) {
        closest if closest.is_empty() => "nothing there has a name like it".to_owned(),
        closest => format!("closest: {}", closest.join(", ")),
    }
}

/// Every storage result is used or comes through here.
pub(crate) fn log_storage_error<T>(instance: &str, result: Result<T, ProviderError>) -> Option<T> {
    result
        .inspect_err(|error| {
            // An outage has lines of its own.
            if error.is_retryable() {
                tracing::debug!(target: targets::RUNTIME, %instance, %error, "storage call failed");
            } else {
                tracing::warn!(
                    target: targets::RUNTIME,
                    %instance,
                    operation = %error.operation,
                    retryable = error.retryable,
                    error = %error.message,
                    "storage call failed"
                );
            }
        })
        .ok()
}
