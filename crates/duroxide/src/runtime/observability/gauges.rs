//! Reads the gauges from the store: at the start, then every few seconds.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::MetricsProvider;
use super::health::StoreHealth;
use super::labels::provider_error_type;
use crate::providers::{Provider, ProviderAdmin, ProviderError};

/// Shortest time between two looks, whatever the settings say: counting is work for the store.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Time between two looks that cost next to nothing: exporters are asked about that often.
const CHEAP_INTERVAL: Duration = Duration::from_secs(5);
/// Others cost one part of so many.
const SHARE: u32 = 200;

/// Refreshes the gauges at once and then every few seconds, until `stop`; `longest` is the longest time
/// between two looks. Counting starts and ends alone would not do: other runtimes start and end
/// instances of the same store (R9.25). It is also how a node without work finds out that its store is
/// gone (R9.64).
pub(crate) async fn refresh_until(
    stop: CancellationToken,
    store: Arc<dyn Provider>,
    (health, metrics): (Arc<StoreHealth>, Arc<MetricsProvider>),
    longest: Duration,
) {
    let refresh_for_ever = async {
        loop {
            let began = Instant::now();
            refresh(store.as_ref(), &health, &metrics).await;
            tokio::time::sleep(pause_after(began.elapsed(), longest)).await;
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = refresh_for_ever => {}
    }
}

/// How long to wait after a look that took so long.
fn pause_after(took: Duration, longest: Duration) -> Duration {
    took.saturating_mul(SHARE).max(CHEAP_INTERVAL).min(longest).max(POLL_INTERVAL_MIN)
}

/// Sets the gauges to what the store says. Without a management side, or if that fails, they keep
/// their values.
async fn refresh(store: &dyn Provider, health: &StoreHealth, metrics: &MetricsProvider) {
    let Some(admin) = store.as_management_capability() else { return };
    match read_into(metrics, admin).await {
        Ok(()) => health.worked(),
        Err((operation, error)) => {
            metrics.record_provider_error(operation, provider_error_type(&error));
            health.failed(operation, &error);
        }
    }
}

async fn read_into(
    metrics: &MetricsProvider,
    admin: &dyn ProviderAdmin,
) -> Result<(), (&'static str, ProviderError)> {
    let running = admin.count_running_instances().await;
    let running = running.map_err(|error| ("count_running_instances", error))?;
    metrics.set_active_orchestrations(i64::try_from(running).unwrap_or(i64::MAX));
    let depths = admin.get_queue_depths().await.map_err(|error| ("get_queue_depths", error))?;
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
        refresh(&store, &StoreHealth::default(), &metrics).await;
        assert_eq!(metrics.get_active_orchestrations(), 7);
        assert_eq!(metrics.get_queue_depths(), (3, 2));
    }

    #[tokio::test]
    async fn r9_25_a_store_that_cannot_tell_leaves_them_alone() {
        let (store, metrics) = (ScriptedProvider::default(), metrics());
        metrics.set_active_orchestrations(5);
        store.fail_with("down");
        refresh(&store, &StoreHealth::default(), &metrics).await;
        store.fail_with(None);
        store.lose_admin();
        refresh(&store, &StoreHealth::default(), &metrics).await;
        assert_eq!((metrics.get_active_orchestrations(), metrics.get_queue_depths()), (5, (0, 0)));
        assert_eq!(metrics.snapshot().provider_errors, 1); // R9.64: of the one that could be asked.
    }

    #[tokio::test(start_paused = true)]
    async fn r9_25_at_once_then_every_few_seconds_until_stopped() {
        for (longest, interval) in [(60, CHEAP_INTERVAL), (2, Duration::from_secs(2))] {
            let (store, metrics) = (Arc::new(ScriptedProvider::default()), metrics());
            let (stop, longest) = (CancellationToken::new(), Duration::from_secs(longest));
            let tell = (Arc::default(), metrics.clone());
            let task = tokio::spawn(refresh_until(stop.clone(), store.clone(), tell, longest));
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

    #[test]
    fn r9_25_a_look_that_costs_much_is_rare_but_not_too_rare() {
        let pause = |took_ms, longest_s| {
            pause_after(Duration::from_millis(took_ms), Duration::from_secs(longest_s)).as_millis()
        };
        assert_eq!([pause(0, 60), pause(25, 60), pause(100, 60)], [5_000, 5_000, 20_000]);
        assert_eq!([pause(1_000, 60), pause(0, 1), pause(0, 0)], [60_000, 1_000, 100]);
    }
}
