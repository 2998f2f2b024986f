//! Where an instance stands (R8.133, R8.100).

use duroxide_core::model::{Event, OrchestrationStatus};
use duroxide_core::provider::Refusal;

use super::history::unreadable;
use crate::database::Db;
use crate::error::OpError;
use crate::tables::{custom_status, executions, history, instances};

/// The status of an instance, by the event that decides it.
pub(crate) fn status(c: Db<'_>, instance: &str) -> Result<OrchestrationStatus, OpError> {
    let Some(known) = instances::by_id(c, instance)? else {
        return Ok(OrchestrationStatus::NotFound);
    };
    let Some(execution) = executions::newest(c, known.key)? else {
        return Ok(OrchestrationStatus::NotFound);
    };
    let (key, number) = (known.key, execution.number);
    let event = |id: u64| -> Result<Option<Event>, OpError> {
        let row = history::get(c, key, number, id);
        let row = row.map_err(|error| unreadable(error, instance, number))?;
        let event = row.map(|row| row.into_event(instance, number)).transpose();
        Ok(event.map_err(Refusal::UnreadableHistory)?)
    };
    let deciding = match execution.outcome.or(execution.started) {
        Some(id) => event(id)?,
        None => None,
    };
    let deciding = match deciding {
        Some(deciding) => vec![deciding],
        // The row does not say, or points nowhere: then the first and the last event do.
        None => {
            let last = history::end(c, key, number)?.0;
            event(1)?.into_iter().chain(event(last)?).collect()
        }
    };
    let custom = match known.identity {
        Some(_) => custom_status::get(c, known.key)?,
        None => (None, 0),
    };
    Ok(OrchestrationStatus::from_history(&deciding, custom))
}

/// Custom status and version, if newer than that (R8.100).
pub(crate) fn custom(
    c: Db<'_>,
    instance: &str,
    last_seen: u64,
) -> Result<Option<(Option<String>, u64)>, OpError> {
    let known = instances::by_id(c, instance)?;
    let Some(known) = known.filter(|known| known.identity.is_some()) else { return Ok(None) };
    let (status, version) = custom_status::get(c, known.key)?;
    Ok((last_seen < version).then_some((status, version)))
}
