//! What to do with a fetched batch: decided first, by a function that can only decide.

use std::time::Duration;

use duroxide_core::model::{Event, EventKind, WorkItem};
use duroxide_core::replay::HistoryManager;
use semver::Version;

use super::Batch;
use crate::providers::SemverRange;
use crate::runtime::RuntimeOptions;
use crate::runtime::observability::{labels, targets};

/// Wait before another node, or a newer one, may try.
const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Replay it.
    Run,
    /// Give it back for a while; the attempt counts.
    Retry { after: Duration, cause: &'static str, why: String },
    /// Consume it: the instance has ended.
    Discard,
    /// End the instance: it has been tried too often.
    Poison,
}

/// R1.21 – R1.26. Poison comes first, so that an item no node here can run ends at last (L33); but
/// what has ended cannot fail as well, so whatever comes late is consumed even then (R2.28).
pub(super) fn admit(
    batch: &Batch,
    history: &HistoryManager,
    options: &RuntimeOptions,
    supported: &SemverRange,
) -> Admission {
    let has_ended = has_ended(history);
    if batch.attempt > options.max_attempts {
        return if has_ended { Admission::Discard } else { Admission::Poison };
    }
    if let Some(pinned) = incompatible_pin(history, supported) {
        warn_incompatible(batch, &pinned, supported);
        let why = format!("pinned to unsupported version {pinned}");
        return Admission::Retry { after: SECOND, cause: labels::CAUSE_INCOMPATIBLE, why };
    }
    if let Some(error) = &batch.item.history_error {
        // A newer node may be able to read it, so the wait does not grow.
        let why = format!("history unreadable: {error}");
        return Admission::Retry { after: SECOND, cause: labels::CAUSE_UNREADABLE, why };
    }
    if has_ended {
        return Admission::Discard;
    }
    if history.is_continued_as_new && !has_successor(&batch.item.messages) {
        let after = options.unregistered_backoff.delay(batch.attempt);
        let why = "the start of its successor is missing".to_owned();
        return Admission::Retry { after, cause: labels::CAUSE_OTHER, why };
    }
    Admission::Run
}

/// Whether no execution follows. Older runtimes wrote a failure after a continue-as-new, too.
pub(super) fn has_ended(history: &HistoryManager) -> bool {
    let failed = |event: &Event| matches!(event.kind, EventKind::OrchestrationFailed { .. });
    history.is_completed
        || history.is_failed
        || (history.is_continued_as_new && history.history().iter().any(failed))
}

/// The pin of the execution if it lies outside the range; an unreadable pin fits everything.
fn incompatible_pin(history: &HistoryManager, supported: &SemverRange) -> Option<Version> {
    let starts = history
        .history()
        .iter()
        .filter(|event| matches!(event.kind, EventKind::OrchestrationStarted { .. }));
    let pin = starts.filter_map(|event| Version::parse(&event.duroxide_version).ok()).next()?;
    (!supported.contains(&pin)).then_some(pin)
}

fn has_successor(messages: &[WorkItem]) -> bool {
    messages.iter().any(|message| matches!(message, WorkItem::ContinueAsNew { .. }))
}

/// R9.52.
fn warn_incompatible(batch: &Batch, pinned: &Version, supported: &SemverRange) {
    tracing::warn!(
        target: targets::RUNTIME,
        instance = %batch.instance(),
        pinned_version = %pinned,
        supported_range = %format!(">={}, <={}", supported.min, supported.max),
        attempt_count = batch.attempt,
        "Execution pinned at incompatible version, abandoning (runtime-side check)"
    );
}
