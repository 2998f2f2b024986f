//! Reads the gauges from the store: at the start, then now and then.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{MetricsProvider, targets};
use crate::providers::{Provider, ProviderAdmin, ProviderError};

/// Shortest time between two looks, whatever the settings say: counting is work for the store.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Refreshes the gauges at once and then every `interval`, until `stop`. Counting starts and ends
/// alone would not do: other runtimes start and end instances of the same store (R9.25).
pub(crate) async fn refresh_until(
    stop: CancellationToken,
    store: Arc<dyn Provider>,
    metrics: Arc<MetricsProvider>,
    interval: Duration,
) {
    let refresh_for_ever = async {
        loop {
            refresh(store.as_ref(), &metrics).await;
            tokio::time::sleep(interval.max(POLL_INTERVAL_MIN)).await;
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = refresh_for_ever => {}
    }
}

/// Sets the gauges to what the store says. Without a management side, or if that fails, they keep
/// their values.
pub(crate) async fn refresh(store: &dyn Provider, metrics: &MetricsProvider) {
    let Some(admin) = store.as_management_capability() else { return };
    if let Err(error) = read_into(metrics, admin).await {
        tracing::warn!(target: targets::RUNTIME, %error, "gauges not refreshed");
    }
}

async fn read_into(
    metrics: &MetricsProvider,
    admin: &dyn ProviderAdmin,
) -> Result<(), ProviderError> {
    let running = admin.count_running_instances().await?;
    metrics.set_active_orchestrations(i64::try_from(running).unwrap_or(i64::MAX));
    let depths = admin.get_queue_depths().await?;
    metrics.update_queue_depths(depths.orchestrator_queue as u64, depths.worker_queue as u64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::scripted::ScriptedProvider;
    use crate::runtime::observability::ObservabilityConfig;

    fn metrics() -> Arc<MetricsProvider> {
        Arc::new(MetricsProvider::new(&ObservabilityConfig::default()).unwrap())
    }

    #[tokio::test]
    async fn r9_25_gauges_come_from_the_store() {
        let (store, metrics) = (ScriptedProvider::default(), metrics());
        refresh(&store, &metrics).await;
        assert_eq!(metrics.get_active_orchestrations(), 7);
        assert_eq!(metrics.get_queue_depths(), (3, 2));
    }

    #[tokio::test]
    async fn r9_25_a_store_that_cannot_tell_leaves_them_alone() {
        let (store, metrics) = (ScriptedProvider::default(), metrics());
        metrics.set_active_orchestrations(5);
        store.fail_with("down");
        refresh(&store, &metrics).await;
        store.fail_with(None);
        store.lose_admin();
        refresh(&store, &metrics).await;
        assert_eq!((metrics.get_active_orchestrations(), metrics.get_queue_depths()), (5, (0, 0)));
    }

    #[tokio::test(start_paused = true)]
    async fn r9_25_at_once_then_every_interval_until_stopped() {
        let (store, metrics) = (Arc::new(ScriptedProvider::default()), metrics());
        let stop = CancellationToken::new();
        let interval = Duration::from_secs(60);
        let task =
            tokio::spawn(refresh_until(stop.clone(), store.clone(), metrics.clone(), interval));
        // Half an interval out of step, so that it is clear which look comes before which check.
        tokio::time::sleep(interval / 2).await;
        for _ in 0..3 {
            assert_eq!(metrics.get_active_orchestrations(), 7);
            assert_eq!(store.calls(), ["get_system_metrics", "get_queue_depths"]);
            metrics.set_active_orchestrations(0);
            tokio::time::sleep(interval).await;
        }
        stop.cancel();
        task.await.unwrap();
        assert_eq!(Arc::strong_count(&store), 1);
    }
}
