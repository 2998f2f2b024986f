//! The built-in activities behind system calls.
//!
//! A turn answers `new_guid` and `utc_now` itself. The activities of the same names serve what does
//! not fit into one turn, and histories of nodes that do not answer in the turn.

use std::sync::Arc;
use std::time::Duration;

use duroxide_core::model::{
    SYSCALL_GET_KV_VALUE, SYSCALL_NEW_GUID, SYSCALL_PREFIX, SYSCALL_UTC_NOW_MS,
};
use duroxide_core::replay::SystemCalls;
use serde::Deserialize;
use tokio::time::sleep;

use super::node::{Node, log_storage_error};
use crate::providers::ProviderError;

/// Pauses between tries of one read: from the first to the longest, doubling.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Answers system calls of one turn.
pub(crate) struct TurnSystemCalls {
    pub(crate) node: Arc<Node>,
    /// The turn's time: no time passes within a turn.
    pub(crate) now_ms: u64,
}

impl SystemCalls for TurnSystemCalls {
    fn answer(&mut self, name: &str, _input: &str) -> Option<Result<String, String>> {
        match name {
            SYSCALL_NEW_GUID => Some(Ok(self.node.tuning.random.guid())),
            SYSCALL_UTC_NOW_MS => Some(Ok(self.now_ms.to_string())),
            _ => None,
        }
    }
}

/// Whether a name belongs to the built-in activities. They come before the registry, so they can
/// neither be missing nor replaced (R4.97).
pub(crate) fn is_builtin(name: &str) -> bool {
    name.starts_with(SYSCALL_PREFIX)
}

/// Runs a built-in activity.
pub(crate) async fn run(node: &Node, name: &str, input: &str) -> Result<String, String> {
    match name {
        SYSCALL_NEW_GUID => Ok(node.tuning.random.guid()),
        SYSCALL_UTC_NOW_MS => Ok(node.now_ms().to_string()),
        SYSCALL_GET_KV_VALUE => read_value(node, input).await,
        _ => Err(format!("unknown system call '{name}'")),
    }
}

#[derive(Deserialize)]
struct ValueAddress {
    instance_id: String,
    key: String,
}

/// R4.92: missing key or instance is `null`.
async fn read_value(node: &Node, input: &str) -> Result<String, String> {
    let address: ValueAddress = serde_json::from_str(input).map_err(|error| error.to_string())?;
    let value = read_patiently(node, &address).await.map_err(|error| error.to_string())?;
    serde_json::to_string(&value).map_err(|error| error.to_string())
}

/// An outage of the store is no answer: the read goes on until there is one, or until the activity
/// loses its lock.
async fn read_patiently(
    node: &Node,
    address: &ValueAddress,
) -> Result<Option<String>, ProviderError> {
    let mut pause = FIRST_PAUSE;
    loop {
        let read = node.store.get_kv_value(&address.instance_id, &address.key).await;
        if !read.as_ref().is_err_and(ProviderError::is_retryable) {
            return read;
        }
        log_storage_error(&address.instance_id, read);
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
