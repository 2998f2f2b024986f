//! Size limits on what one turn adds (R7.91 – R7.94). The first violation is reported.

use crate::model::limits::{
    MAX_CUSTOM_STATUS_BYTES, MAX_KV_KEYS, MAX_KV_VALUE_BYTES, MAX_TAG_NAME_BYTES,
};
use crate::model::{AppErrorKind, ErrorDetails, Event, EventKind};

/// Checks the events a turn adds; `live_keys` is what the key-value store holds after it.
pub(super) fn check(delta: &[Event], live_keys: usize) -> Result<(), ErrorDetails> {
    let violation = status_too_long(delta)
        .or_else(|| tag_too_long(delta))
        .or_else(|| value_too_long(delta))
        .or_else(|| too_many_keys(delta, live_keys));
    match violation {
        None => Ok(()),
        Some(message) => Err(ErrorDetails::application(AppErrorKind::OrchestrationFailed, message)),
    }
}

/// The last status of the turn counts; resets are passed over (R7.91).
fn status_too_long(delta: &[Event]) -> Option<String> {
    let last = delta.iter().rev().find_map(|event| match &event.kind {
        EventKind::CustomStatusUpdated { status } => status.as_ref().map(String::len),
        _ => None,
    })?;
    (last > MAX_CUSTOM_STATUS_BYTES).then(|| {
        format!("Custom status size ({last} bytes) exceeds limit ({MAX_CUSTOM_STATUS_BYTES} bytes)")
    })
}

fn tag_too_long(delta: &[Event]) -> Option<String> {
    delta.iter().find_map(|event| match &event.kind {
        EventKind::ActivityScheduled { name, tag: Some(tag), .. }
            if tag.len() > MAX_TAG_NAME_BYTES =>
        {
            let len = tag.len();
            Some(format!(
                "Activity '{name}' tag size ({len} bytes) exceeds limit ({MAX_TAG_NAME_BYTES} bytes)"
            ))
        }
        _ => None,
    })
}

fn value_too_long(delta: &[Event]) -> Option<String> {
    delta.iter().find_map(|event| match &event.kind {
        EventKind::KeyValueSet { key, value, .. } if value.len() > MAX_KV_VALUE_BYTES => {
            let len = value.len();
            Some(format!(
                "KV value for key '{key}' ({len} bytes) exceeds limit ({MAX_KV_VALUE_BYTES} bytes)"
            ))
        }
        _ => None,
    })
}

/// Only a turn that sets keys can be blamed for their number (L6).
fn too_many_keys(delta: &[Event], live_keys: usize) -> Option<String> {
    let sets_any = delta.iter().any(|event| matches!(event.kind, EventKind::KeyValueSet { .. }));
    (sets_any && live_keys > MAX_KV_KEYS)
        .then(|| format!("KV key count ({live_keys}) exceeds limit ({MAX_KV_KEYS})"))
}
