//! What the validation suite needs: fresh stores, and ways to damage them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use duroxide::provider_validation::ProviderFactory;
use duroxide::providers::Provider;

use super::store::{TableStore, Tables};

/// Makes stores and remembers the latest, to damage it.
#[derive(Default)]
pub(crate) struct TableFactory {
    latest: Mutex<Option<Arc<TableStore>>>,
}

impl TableFactory {
    fn remember(&self, store: TableStore) -> Arc<dyn Provider> {
        let store = Arc::new(store);
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(store.clone());
        store
    }

    /// Looks into the store that was made last.
    fn inside<T: Default>(&self, work: impl FnOnce(&mut Tables) -> T) -> T {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.as_ref().map(|store| store.transaction(|tables, _| work(tables))).unwrap_or_default()
    }
}

#[async_trait]
impl ProviderFactory for TableFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        self.remember(TableStore::new())
    }

    fn lock_timeout(&self) -> Duration {
        Duration::from_millis(200)
    }

    async fn corrupt_instance_history(&self, instance: &str) {
        self.inside(|tables| {
            let executions = tables.executions.get_mut(instance).into_iter().flatten();
            for text in executions.flat_map(|(_, row)| row.events.values_mut()) {
                text.truncate(1);
            }
        });
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        self.inside(|tables| {
            let rows = tables.messages.iter().filter(|row| row.instance == instance);
            rows.map(|row| row.attempts).max().unwrap_or(0)
        })
    }
    async fn create_second(&self, first: &Arc<dyn Provider>) -> Option<Arc<dyn Provider>> {
        Some(first.clone()) // what is in memory is shared by sharing it
    }

    async fn create_with_orphan_retention(&self, retention: Duration) -> Option<Arc<dyn Provider>> {
        Some(self.remember(TableStore::with_orphan_retention(retention)))
    }

    async fn corrupt_queued_messages(&self, instance: &str) -> bool {
        self.inside(|tables| {
            let rows = tables.messages.iter_mut().filter(|row| row.instance == instance);
            rows.map(|row| row.text.truncate(1)).count() > 0
        })
    }

    async fn corrupt_queued_work(&self, instance: &str) -> bool {
        self.inside(|tables| {
            let rows = tables.jobs.iter_mut().filter(|row| row.instance == instance);
            rows.map(|row| row.text.truncate(1)).count() > 0
        })
    }
}
