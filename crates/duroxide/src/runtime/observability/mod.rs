//! What a running system tells about itself: logs and metrics. Nothing here decides anything.

mod config;
mod logging;
pub(crate) mod targets;
mod metrics;
mod names;
pub(crate) mod labels;
pub(crate) mod gauges;
pub(crate) mod health;

use std::sync::Arc;

pub use config::{LogFormat, ObservabilityConfig};
pub use logging::init_logging;
#[cfg(test)]
pub(crate) use logging::tests::written_as_json;
pub use metrics::{MetricsProvider, MetricsSnapshot};

/// Logs and metrics of one runtime.
pub struct ObservabilityHandle {
    metrics_provider: Arc<MetricsProvider>,
}

impl ObservabilityHandle {
    /// Sets logs and metrics up. A host that logs already keeps its own subscriber (R9.2).
    pub fn init(config: &ObservabilityConfig) -> Result<Self, String> {
        if let Err(reason) = init_logging(config) {
            tracing::debug!(target: targets::RUNTIME, reason, "log subscriber not installed");
        }
        Ok(Self { metrics_provider: Arc::new(MetricsProvider::new(config)?) })
    }

    /// The recorder of this runtime's metrics.
    pub fn metrics_provider(&self) -> &Arc<MetricsProvider> {
        &self.metrics_provider
    }

    /// Ends recording. Exporters belong to the host, so there is nothing to flush here.
    pub async fn shutdown(self) -> Result<(), String> {
        Ok(())
    }

    /// The counters of this runtime since its start.
    pub fn metrics_snapshot(&self) -> MetricsSnapshot {
        self.metrics_provider.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn r9_2_r9_5_a_host_with_its_own_subscriber_keeps_it() {
        // Whether this call or another test installs it: from here on there is one.
        let _ = tracing::subscriber::set_global_default(tracing::subscriber::NoSubscriber::new());
        let config = ObservabilityConfig::default();
        assert!(init_logging(&config).is_err());

        let handle = ObservabilityHandle::init(&config).unwrap();
        handle.metrics_provider().record_activity_success();
        assert_eq!(handle.metrics_snapshot().activity_success, 1);
        handle.shutdown().await.unwrap();
    }
}
