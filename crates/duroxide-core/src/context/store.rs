//! What others can read of an instance while it runs: custom status and key-value store.

use std::collections::HashMap;
use std::panic::Location;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{DurableFuture, Operation, OrchestrationContext};
use crate::model::{Action, SYSCALL_GET_KV_VALUE};

impl OrchestrationContext {
    /// Publishes a progress text. Seen from outside when the turn commits.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn import(ctx: OrchestrationContext, files: Vec<String>) -> Result<(), String> {
    ///     for (done, file) in files.iter().enumerate() {
    ///         ctx.set_custom_status(format!("{done} of {}", files.len()));
    ///         ctx.schedule_activity("Import", file.as_str()).await?;
    ///     }
    ///     ctx.reset_custom_status();
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn set_custom_status(&self, status: impl Into<String>) {
        self.update_status(Some(status.into()), Location::caller());
    }

    /// Removes the progress text.
    #[track_caller]
    pub fn reset_custom_status(&self) {
        self.update_status(None, Location::caller());
    }

    /// The progress text as this code last set it.
    pub fn get_custom_status(&self) -> Option<String> {
        self.state().custom_status.clone()
    }

    /// Sets a key of this instance's store.
    #[track_caller]
    pub fn set_kv_value(&self, key: impl Into<String>, value: impl Into<String>) {
        let (key, value) = (key.into(), value.into());
        let mut state = self.state();
        let now_ms = state.now_ms();
        let last_updated_at_ms = state.kv.set(&key, &value, now_ms);
        let action = Action::SetKeyValue { key, value, last_updated_at_ms };
        state.emit(Operation::Note, action, Location::caller());
    }

    /// Sets a key to a value as JSON.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn count(ctx: OrchestrationContext, _input: String) -> Result<u64, String> {
    ///     let runs: u64 = ctx.get_kv_value_typed("runs")?.unwrap_or(0) + 1;
    ///     ctx.set_kv_value_typed("runs", &runs); // Outlives continue-as-new; clients can read it.
    ///     Ok(runs)
    /// }
    /// ```
    ///
    /// # Panics
    /// If the value does not serialise.
    #[track_caller]
    #[expect(clippy::panic, reason = "documented: typed values must serialise")]
    pub fn set_kv_value_typed<T: Serialize>(&self, key: impl Into<String>, value: &T) {
        match serde_json::to_string(value) {
            Ok(json) => self.set_kv_value(key, json),
            Err(error) => panic!("key-value payload cannot be encoded: {error}"),
        }
    }

    /// Reads a key.
    pub fn get_kv_value(&self, key: &str) -> Option<String> {
        self.state().kv.get(key).map(|entry| entry.value.clone())
    }

    /// Reads a key whose value is JSON.
    pub fn get_kv_value_typed<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, String> {
        self.get_kv_value(key).map(|json| parse_value(key, &json)).transpose()
    }

    /// All keys with their values.
    pub fn get_kv_all_values(&self) -> HashMap<String, String> {
        let state = self.state();
        state.kv.iter().map(|(key, entry)| (key.clone(), entry.value.clone())).collect()
    }

    /// All keys, sorted.
    pub fn get_kv_all_keys(&self) -> Vec<String> {
        self.state().kv.iter().map(|(key, _)| key.clone()).collect()
    }

    /// Number of keys.
    pub fn get_kv_length(&self) -> usize {
        self.state().kv.len()
    }

    /// Removes a key.
    #[track_caller]
    pub fn clear_kv_value(&self, key: impl Into<String>) {
        let key = key.into();
        let mut state = self.state();
        state.kv.clear(&key);
        state.emit(Operation::Note, Action::ClearKeyValue { key }, Location::caller());
    }

    /// Removes all keys.
    #[track_caller]
    pub fn clear_all_kv_values(&self) {
        let mut state = self.state();
        state.kv.clear_all();
        state.emit(Operation::Note, Action::ClearKeyValues, Location::caller());
    }

    /// Removes every key set before a time, in key order; how many there were.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// # use std::time::Duration;
    /// use std::time::UNIX_EPOCH;
    ///
    /// async fn tidy(ctx: OrchestrationContext, _input: String) -> Result<usize, String> {
    ///     let week_ago = ctx.utc_now().await? - Duration::from_secs(7 * 24 * 3600);
    ///     let ms = week_ago.duration_since(UNIX_EPOCH).map_err(|e| e.to_string())?.as_millis();
    ///     Ok(ctx.prune_kv_values_updated_before(ms as u64))
    /// }
    /// ```
    #[track_caller]
    pub fn prune_kv_values_updated_before(&self, updated_before_ms: u64) -> usize {
        let location = Location::caller();
        let mut state = self.state();
        let is_old = |stamp_ms: u64| stamp_ms < updated_before_ms;
        let old: Vec<String> = state
            .kv
            .iter()
            .filter(|(_, entry)| is_old(entry.last_updated_at_ms))
            .map(|(key, _)| key.clone())
            .collect();
        let count = old.len();
        for key in old {
            state.kv.clear(&key);
            state.emit(Operation::Note, Action::ClearKeyValue { key }, location);
        }
        count
    }

    /// Reads a key of another instance, as committed when a worker looks. Recorded like an activity.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn quote(ctx: OrchestrationContext, item: String) -> Result<String, String> {
    ///     let rate = ctx.get_kv_value_from_instance("rates", "EUR").await?;
    ///     Ok(format!("{item} at {}", rate.ok_or("no rate yet")?))
    /// }
    /// ```
    #[track_caller]
    pub fn get_kv_value_from_instance(
        &self,
        instance_id: impl Into<String>,
        key: impl Into<String>,
    ) -> DurableFuture<Result<Option<String>, String>> {
        let input =
            serde_json::json!({ "instance_id": instance_id.into(), "key": key.into() }).to_string();
        let name = SYSCALL_GET_KV_VALUE.to_owned();
        self.activity_at(name, input, None, Location::caller()).map(|result| {
            serde_json::from_str(&result?).map_err(|error| format!("KV read result: {error}"))
        })
    }

    /// [`get_kv_value_from_instance`](Self::get_kv_value_from_instance) of a value that is JSON.
    #[track_caller]
    pub fn get_kv_value_from_instance_typed<T: DeserializeOwned + Send + 'static>(
        &self,
        instance_id: impl Into<String>,
        key: impl Into<String>,
    ) -> DurableFuture<Result<Option<T>, String>> {
        let key = key.into();
        self.get_kv_value_from_instance(instance_id, key.clone())
            .map(move |value| value?.map(|json| parse_value(&key, &json)).transpose())
    }

    fn update_status(&self, status: Option<String>, location: &'static Location<'static>) {
        let mut state = self.state();
        state.custom_status.clone_from(&status);
        state.emit(Operation::Note, Action::UpdateCustomStatus { status }, location);
    }
}

fn parse_value<T: DeserializeOwned>(key: &str, json: &str) -> Result<T, String> {
    serde_json::from_str(json)
        .map_err(|error| format!("KV deserialization error for key '{key}': {error}"))
}
