//! Which handler, which version (R7.109 – R7.111).

use std::sync::Arc;

use duroxide_core::model::WorkItem;
use duroxide_core::replay::WorkItemReader;
use semver::Version;

use super::{Batch, Dispatcher};
use crate::providers::OrchestrationItem;
use crate::runtime::OrchestrationHandler;
use crate::runtime::node::Kind;
use crate::runtime::observability::{labels, targets};

impl Dispatcher {
    /// Whether a turn may run code of this process, as far as can be told without its history.
    pub(super) fn has_code(&self, item: &OrchestrationItem) -> bool {
        let registry = &self.node.orchestrations;
        let name = &item.orchestration_name;
        let is_here = |version: Option<&str>| match version.map(Version::parse) {
            Some(Ok(version)) => registry.resolve_handler_exact(name, &version).is_some(),
            Some(Err(_)) | None => registry.has(name),
        };
        // A start may be the one that counts, or one that comes too late.
        let begins_here = |message: &WorkItem| match message {
            WorkItem::StartOrchestration { version, .. }
            | WorkItem::ContinueAsNew { version, .. } => is_here(version.as_deref()),
            _ => false,
        };
        is_here(Some(&item.version)) || item.messages.iter().any(begins_here)
    }

    /// A running execution keeps the version it began with; one that begins gets what its start
    /// asks for, or what the registry's policy says.
    pub(super) fn resolve(
        &self,
        item: &OrchestrationItem,
        reader: &WorkItemReader,
    ) -> Option<(String, Arc<dyn OrchestrationHandler>)> {
        let registry = &self.node.orchestrations;
        let name = &reader.orchestration_name;
        let Some(wanted) = &reader.version else {
            let (version, handler) = registry.resolve_handler(name)?;
            return Some((version.to_string(), handler));
        };
        match Version::parse(wanted) {
            Ok(version) => {
                let handler = registry.resolve_handler_exact(name, &version)?;
                Some((version.to_string(), handler))
            }
            Err(error) => {
                tracing::warn!(target: targets::ORCHESTRATION_DISPATCHER,
                    instance = %item.instance, orchestration = %name, version = %wanted, %error,
                    "orchestration version is not semver, so no handler can match it");
                None
            }
        }
    }

    /// What is to be said of an orchestration that this process cannot run for want of code.
    pub(super) fn unregistered(
        &self,
        item: &OrchestrationItem,
        messages: &[WorkItem],
    ) -> Option<String> {
        let started = messages.iter().find_map(|message| match message {
            WorkItem::StartOrchestration { orchestration, version, .. }
            | WorkItem::ContinueAsNew { orchestration, version, .. } => {
                Some((orchestration, version.as_ref()))
            }
            _ => None,
        });
        let (name, version) = started.unwrap_or((&item.orchestration_name, Some(&item.version)));
        self.node.unregistered_orchestration(name, version.map(String::as_str))
    }

    pub(super) async fn back_off_unregistered(&self, batch: &Batch, reader: &WorkItemReader) {
        let options = &self.node.options;
        let name = &reader.orchestration_name;
        let backoff = options.unregistered_backoff.delay(batch.attempt);
        self.node.announce_unknown(Kind::Orchestration, name, "the store");
        self.node.announce_unknown_version(name, reader.version.as_deref());
        tracing::warn!(
            target: targets::ORCHESTRATION_DISPATCHER,
            instance = %batch.instance(),
            orchestration = %name,
            version = %reader.version.as_deref().unwrap_or("by policy"),
            attempt_count = batch.attempt,
            max_attempts = options.max_attempts,
            remaining_attempts = options.max_attempts.saturating_sub(batch.attempt),
            backoff_secs = backoff.as_secs_f64(),
            "orchestration not registered here, backing off"
        );
        let why = (labels::CAUSE_UNREGISTERED, "orchestration not registered");
        self.abandon(batch, backoff, why).await;
    }
}
