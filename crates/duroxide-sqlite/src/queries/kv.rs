//! Key-value data as seen from outside (R8.110), and sizes (R8.116).

use std::collections::HashMap;

use duroxide_core::model::{EventKind, SystemStats};

use crate::database::Db;
use crate::error::OpError;
use crate::tables::{executions, history, instances, kv};

/// One value.
pub(crate) fn value(c: Db<'_>, instance: &str, key: &str) -> Result<Option<String>, OpError> {
    match instances::by_id(c, instance)? {
        Some(known) => Ok(kv::get(c, known.key, key)?),
        None => Ok(None),
    }
}

/// All values.
pub(crate) fn all(c: Db<'_>, instance: &str) -> Result<HashMap<String, String>, OpError> {
    match instances::by_id(c, instance)? {
        Some(known) => Ok(kv::merged(c, known.key)?.into_iter().collect()),
        None => Ok(HashMap::new()),
    }
}

/// Sizes of an instance (R6.41, R6.42).
pub(crate) fn stats(c: Db<'_>, instance: &str) -> Result<Option<SystemStats>, OpError> {
    let Some(known) = instances::by_id(c, instance)? else { return Ok(None) };
    let Some(identity) = &known.identity else { return Ok(None) };
    let Some(execution) = executions::get(c, known.key, identity.execution)? else {
        return Ok(None);
    };
    let mut stats = SystemStats {
        history_event_count: 0,
        history_size_bytes: 0,
        queue_pending_count: 0,
        kv_user_key_count: 0,
        kv_total_value_bytes: 0,
    };
    for row in history::read_from(c, known.key, execution.number, 0, usize::MAX)? {
        stats.history_event_count += 1;
        let stored_bytes = row.body.len() as u64;
        let decoded = row.into_event(instance, execution.number);
        let json = decoded.as_ref().ok().and_then(|event| serde_json::to_string(event).ok());
        stats.history_size_bytes += json.map_or(stored_bytes, |json| json.len() as u64);
        if let Ok(EventKind::OrchestrationStarted { carry_forward_events: Some(carried), .. }) =
            decoded.map(|event| event.kind)
        {
            stats.queue_pending_count = carried.len() as u64;
        }
    }
    for (_, value) in kv::merged(c, known.key)? {
        stats.kv_user_key_count += 1;
        stats.kv_total_value_bytes += value.len() as u64;
    }
    Ok(Some(stats))
}
