//! A row of `fetch_turns` as the runtime expects it.

use std::collections::HashMap;

use duroxide_core::model::{EventKind, INITIAL_EXECUTION_ID, KvEntry, WorkItem};
use duroxide_core::provider::{FetchedTurn, OrchestrationItem};
use tokio_postgres::Row;

use crate::commit_board::place_of;
use crate::numbers::{attempts_out, id_out, ms_out};
use crate::text::unpack;
use crate::token;

/// Name and version of an instance that never said (R8.24, R8.25).
const UNKNOWN: &str = "unknown";

/// A turn as the runtime expects it, or the messages that make no sense.
pub(crate) fn decode_turn(row: &Row) -> Result<FetchedTurn, Vec<(i64, String)>> {
    let instance = unpack(row.get("id"));
    let seqs: Vec<i64> = row.get("seqs");
    let payloads: Vec<&str> = row.get::<_, Option<_>>("payloads").unwrap_or_default();
    let mut messages = Vec::with_capacity(payloads.len());
    let mut undecodable = Vec::new();
    for (seq, payload) in seqs.into_iter().zip(payloads) {
        match serde_json::from_str::<WorkItem>(payload) {
            Ok(item) if item.orchestration_key() == Some(instance.as_str()) => messages.push(item),
            Ok(item) => {
                undecodable.push((seq, format!("it is for {:?}", item.orchestration_key())))
            }
            Err(error) => undecodable.push((seq, error.to_string())),
        }
    }
    if !undecodable.is_empty() {
        return Err(undecodable);
    }
    let (orchestration_name, version, execution_id) = identity(row)
        .or_else(|| messages.iter().find_map(identity_of_start))
        .unwrap_or_else(|| (UNKNOWN.to_owned(), UNKNOWN.to_owned(), INITIAL_EXECUTION_ID));
    let bell = place_of(&instance);
    let lock_token = token::of_turn(row.get("key"), bell, row.get("token"));
    let last_event_id = row.get::<_, Option<i64>>("last_event").map_or(0, id_out);
    let item = OrchestrationItem {
        instance,
        orchestration_name,
        execution_id,
        version,
        history: Vec::new(),
        messages,
        history_error: None,
        kv_snapshot: kv_snapshot(row),
    };
    Ok(FetchedTurn {
        item,
        lock_token,
        attempt_count: attempts_out(row.get::<_, Option<i64>>("attempts").unwrap_or(1)),
        last_event_id,
        last_event_at_ms: row.get::<_, Option<i64>>("last_event_at").map_or(0, ms_out),
        incarnation: id_out(row.get("key")),
        history_included: last_event_id == 0,
    })
}

/// Who an instance is: by its row (R8.24), else by its start event (R8.25).
fn identity(row: &Row) -> Option<(String, String, u64)> {
    let execution = row.get::<_, Option<i64>>("execution").map_or(INITIAL_EXECUTION_ID, id_out);
    if let Some(name) = row.get::<_, Option<String>>("name") {
        let version: Option<String> = row.get("version");
        return Some((unpack(name), unpack(version.unwrap_or_default()), execution));
    }
    match serde_json::from_str(row.get::<_, Option<&str>>("start_body")?).ok()? {
        EventKind::OrchestrationStarted { name, version, .. } => Some((name, version, execution)),
        _ => None,
    }
}

/// Who an instance is, by the message that starts it (R8.25).
fn identity_of_start(item: &WorkItem) -> Option<(String, String, u64)> {
    match item {
        WorkItem::StartOrchestration { orchestration, version, .. }
        | WorkItem::ContinueAsNew { orchestration, version, .. } => {
            let version = version.clone().unwrap_or_else(|| UNKNOWN.to_owned());
            Some((orchestration.clone(), version, INITIAL_EXECUTION_ID))
        }
        _ => None,
    }
}

fn kv_snapshot(row: &Row) -> HashMap<String, KvEntry> {
    let keys: Vec<String> = row.get::<_, Option<_>>("kv_keys").unwrap_or_default();
    let values: Vec<String> = row.get::<_, Option<_>>("kv_values").unwrap_or_default();
    let times: Vec<i64> = row.get::<_, Option<_>>("kv_times").unwrap_or_default();
    let entry = |((key, value), at)| {
        (unpack(key), KvEntry { value: unpack(value), last_updated_at_ms: ms_out(at) })
    };
    keys.into_iter().zip(values).zip(times).map(entry).collect()
}
