//! The log targets people filter by. Orchestrations log from the core, to `duroxide::orchestration`.

/// What activities log.
pub(crate) const ACTIVITY: &str = "duroxide::activity";
/// Start, stop and versions.
pub(crate) const RUNTIME: &str = "duroxide::runtime";
/// Turns.
pub(crate) const ORCHESTRATION_DISPATCHER: &str = "duroxide::runtime::dispatchers::orchestration";
/// Executed activities.
pub(crate) const WORKER: &str = "duroxide::runtime::worker";
/// Lookups that found nothing.
pub(crate) const REGISTRY: &str = "duroxide::runtime::registry";
