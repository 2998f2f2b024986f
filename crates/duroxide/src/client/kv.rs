//! Committed key-value data and sizes of an instance.

use std::collections::HashMap;
use std::time::Duration;

use duroxide_core::model::SystemStats;
use serde::de::DeserializeOwned;

use super::wait::Deadline;
use super::{Client, ClientError};

impl Client {
    /// A value, if instance and key exist.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ClientError> {
    /// # let client = Client::new(Arc::new(MemoryProvider::new()));
    /// assert_eq!(client.get_kv_value("order-7", "parcel").await?, None);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_kv_value(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<String>, ClientError> {
        Ok(self.store.get_kv_value(instance, key).await?)
    }

    /// A typed value, if instance and key exist.
    pub async fn get_kv_value_typed<T: DeserializeOwned>(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<T>, ClientError> {
        let value = self.get_kv_value(instance, key).await?;
        value.map(|value| typed(instance, key, &value)).transpose()
    }

    /// All values; none for an unknown instance.
    pub async fn get_kv_all_values(
        &self,
        instance: &str,
    ) -> Result<HashMap<String, String>, ClientError> {
        Ok(self.store.get_kv_all_values(instance).await?)
    }

    /// Waits until the key has a value. Neither instance nor key need exist yet.
    pub async fn wait_for_kv_value(
        &self,
        instance: &str,
        key: &str,
        timeout: Duration,
    ) -> Result<String, ClientError> {
        self.wait_until(instance, Deadline::after(timeout), || {
            self.store.get_kv_value(instance, key)
        })
        .await
    }

    /// Waits until the key has a value, and decodes it.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = Arc::new(MemoryProvider::new());
    /// # let orchestrations = OrchestrationRegistry::builder()
    /// #     .register("Rates", |ctx: OrchestrationContext, _input: String| async move {
    /// #         ctx.set_kv_value_typed("EUR", &1.08);
    /// #         Ok(ctx.schedule_wait("Stop").await)
    /// #     })
    /// #     .build();
    /// # let activities = ActivityRegistry::builder().build();
    /// # let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    /// # let client = Client::new(store);
    /// client.start_orchestration("rates", "Rates", "").await?;
    /// let rate: f64 = client.wait_for_kv_value_typed("rates", "EUR", Duration::from_secs(5)).await?;
    /// assert_eq!(rate, 1.08);
    /// # runtime.shutdown(None).await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait_for_kv_value_typed<T: DeserializeOwned>(
        &self,
        instance: &str,
        key: &str,
        timeout: Duration,
    ) -> Result<T, ClientError> {
        typed(instance, key, &self.wait_for_kv_value(instance, key, timeout).await?)
    }

    /// Sizes of the instance, if it exists.
    pub async fn get_orchestration_stats(
        &self,
        instance: &str,
    ) -> Result<Option<SystemStats>, ClientError> {
        Ok(self.store.get_instance_stats(instance).await?)
    }
}

/// Key-value data is plain JSON, unlike all other typed payloads (R2.93).
fn typed<T: DeserializeOwned>(instance: &str, key: &str, value: &str) -> Result<T, ClientError> {
    serde_json::from_str(value).map_err(|error| {
        let what = format!("KV deserialization error: value of key '{key}'");
        ClientError::undecoded::<T>(&what, instance, &error)
    })
}
