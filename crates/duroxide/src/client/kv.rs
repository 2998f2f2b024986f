//! Committed key-value data and sizes of an instance.

use std::collections::HashMap;
use std::time::Duration;

use duroxide_core::model::SystemStats;
use serde::de::DeserializeOwned;

use super::wait::Deadline;
use super::{Client, ClientError};

impl Client {
    /// A value, if instance and key exist.
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
        self.get_kv_value(instance, key).await?.map(|value| typed(&value)).transpose()
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
    pub async fn wait_for_kv_value_typed<T: DeserializeOwned>(
        &self,
        instance: &str,
        key: &str,
        timeout: Duration,
    ) -> Result<T, ClientError> {
        typed(&self.wait_for_kv_value(instance, key, timeout).await?)
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
fn typed<T: DeserializeOwned>(value: &str) -> Result<T, ClientError> {
    serde_json::from_str(value)
        .map_err(|error| ClientError::invalid(format!("KV deserialization error: {error}")))
}
