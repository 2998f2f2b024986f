//! How long one call takes.

use tokio::time::Instant;

use crate::providers::ProviderError;
use crate::runtime::observability::MetricsProvider;
use crate::runtime::observability::labels::provider_error_type;

/// A measurement under way. Dropped before its stop, as by a shutdown, it counts for nothing.
pub(super) struct Watch<'a> {
    pub(super) operation: &'static str,
    pub(super) running: Option<(&'a MetricsProvider, Instant)>,
}

impl Watch<'_> {
    pub(super) fn stop(self, error: Option<&ProviderError>) {
        let Some((metrics, began_at)) = self.running else { return };
        let status = if error.is_some() { "error" } else { "success" };
        let seconds = began_at.elapsed().as_secs_f64();
        metrics.record_provider_operation(self.operation, seconds, status);
        if let Some(error) = error {
            metrics.record_provider_error(self.operation, provider_error_type(error));
        }
    }
}
