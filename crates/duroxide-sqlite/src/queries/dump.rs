//! The store as text, for people.

use super::metrics;
use crate::database::Db;
use crate::error::OpError;
use crate::tables::{self, work};

/// Rows shown of each kind.
const SHOWN: usize = 10;

/// Totals, queue sizes and a few rows.
pub(crate) fn dump(c: Db<'_>, now: u64) -> Result<String, OpError> {
    let totals = metrics::totals(c)?;
    let depths = metrics::queue_depths(c, now)?;
    let mut lines = vec![
        format!(
            "instances: {} ({} running, {} completed, {} failed), executions: {}, events: {}",
            totals.total_instances,
            totals.running_instances,
            totals.completed_instances,
            totals.failed_instances,
            totals.total_executions,
            totals.total_events
        ),
        format!(
            "orchestrator queue: {} unlocked, worker queue: {} unlocked",
            depths.orchestrator_queue, depths.worker_queue
        ),
    ];
    let instances = tables::instances::list(c)?.into_iter().take(SHOWN);
    lines.extend(instances.map(|id| format!("instance {id:?}")));
    let work = work::sample(c, SHOWN as i64)?.into_iter();
    lines.extend(work.map(|(seq, execution, activity)| {
        format!("work {seq}: activity {activity} of execution {execution}")
    }));
    let letters = tables::dead_letters::list(c)?.into_iter().rev().take(SHOWN);
    lines.extend(
        letters.map(|letter| format!("dead letter for {:?}: {}", letter.instance, letter.reason)),
    );
    Ok(lines.join("\n"))
}
