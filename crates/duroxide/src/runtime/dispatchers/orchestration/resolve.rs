//! Which handler, which version (R7.109 – R7.111).

use std::sync::Arc;

use duroxide_core::replay::WorkItemReader;
use semver::Version;

use super::Dispatcher;
use crate::providers::OrchestrationItem;
use crate::runtime::OrchestrationHandler;
use crate::runtime::observability::targets;

impl Dispatcher {
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
}
