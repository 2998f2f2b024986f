//! What must be true of everything stored, whoever stored it: a check over any provider.
//!
//! Each violation is a sentence that names instance, execution and event. Works through the public
//! contract only, one call after the other, so the store should be left alone meanwhile.

mod history;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};

use duroxide_core::model::{Event, EventKind, build_child_instance_id};

use super::{ExecutionInfo, InstanceInfo, Provider, ProviderAdmin, ProviderError};
use history::{check_history, terminal_event};

/// Checks a store at rest: no turn is in progress and no message on its way.
pub async fn check_invariants(store: &dyn Provider) -> Result<(), Vec<String>> {
    let instances = load(store).await?;
    let mut violations = check_instances(&instances);
    violations.extend(check_lost_children(&instances));
    if violations.is_empty() { Ok(()) } else { Err(violations) }
}

/// Checks a store between two calls of a running system: all of [`check_invariants`] except that
/// results of children have arrived, since they may be on their way.
pub async fn check_invariants_in_flight(store: &dyn Provider) -> Result<(), Vec<String>> {
    let violations = check_instances(&load(store).await?);
    if violations.is_empty() { Ok(()) } else { Err(violations) }
}

/// An instance as the provider tells it.
struct Instance {
    info: InstanceInfo,
    executions: BTreeMap<u64, Execution>,
    kv: HashMap<String, String>,
}

/// An execution as the provider tells it.
struct Execution {
    info: ExecutionInfo,
    history: Result<Vec<Event>, ProviderError>,
}

impl Execution {
    /// Its events; none if they cannot be read, which is reported elsewhere.
    fn events(&self) -> &[Event] {
        self.history.as_deref().unwrap_or_default()
    }
}

impl Instance {
    fn current(&self) -> Option<&Execution> {
        self.executions.get(&self.info.current_execution_id)
    }
}

type Instances = BTreeMap<String, Instance>;

async fn load(store: &dyn Provider) -> Result<Instances, Vec<String>> {
    let Some(admin) = store.as_management_capability() else {
        return Err(vec!["the store has no management side to look through".to_owned()]);
    };
    load_all(store, admin).await.map_err(|error| vec![format!("the store failed: {error}")])
}

async fn load_all(
    store: &dyn Provider,
    admin: &dyn ProviderAdmin,
) -> Result<Instances, ProviderError> {
    let mut instances = Instances::new();
    for id in admin.list_instances().await? {
        let mut executions = BTreeMap::new();
        for number in admin.list_executions(&id).await? {
            let info = admin.get_execution_info(&id, number).await?;
            let history = store.read_with_execution(&id, number).await;
            executions.insert(number, Execution { info, history });
        }
        let info = admin.get_instance_info(&id).await?;
        let kv = store.get_kv_all_values(&id).await?;
        instances.insert(id, Instance { info, executions, kv });
    }
    Ok(instances)
}

fn check_instances(instances: &Instances) -> Vec<String> {
    let mut violations = Vec::new();
    for (id, instance) in instances {
        for (number, execution) in &instance.executions {
            let at = format!("instance {id}, execution {number}");
            match &execution.history {
                Ok(events) => violations.extend(check_history(id, *number, events)),
                Err(error) => violations.push(format!("{at}: the history is unreadable: {error}")),
            }
            violations.extend(check_execution(&at, execution));
        }
        violations.extend(check_sequence(id, instance));
        violations.extend(check_kv(id, instance));
    }
    violations
}

/// Status, output, length and times of an execution are those its history tells.
fn check_execution(at: &str, execution: &Execution) -> Vec<String> {
    let Execution { info, history: Ok(events) } = execution else { return Vec::new() };
    let mut violations = Vec::new();
    let (status, output) = match terminal_event(events).map(|event| &event.kind) {
        Some(EventKind::OrchestrationCompleted { output }) => ("Completed", Some(output.clone())),
        Some(EventKind::OrchestrationFailed { details }) => {
            ("Failed", Some(details.display_message()))
        }
        Some(EventKind::OrchestrationContinuedAsNew { input }) => {
            ("ContinuedAsNew", Some(input.clone()))
        }
        _ => ("Running", None),
    };
    if info.status != status || info.output != output {
        violations.push(format!(
            "{at}: is stored as {} with output {:?}, but its history says {status} with {output:?}",
            info.status, info.output
        ));
    }
    if info.event_count != events.len() {
        let (stored, counted) = (info.event_count, events.len());
        violations.push(format!("{at}: is said to have {stored} events, but has {counted}"));
    }
    if info.completed_at.is_some() != (status != "Running") {
        let ended = info.completed_at;
        violations.push(format!("{at}: is {status}, but its time of completion is {ended:?}"));
    }
    if info.completed_at.is_some_and(|ended| ended < info.started_at) {
        violations.push(format!("{at}: ended before it started"));
    }
    violations
}

/// Executions are numbered without a gap up to the current one, and all before it continued as new.
fn check_sequence(id: &str, instance: &Instance) -> Vec<String> {
    let mut violations = Vec::new();
    let current = instance.info.current_execution_id;
    let numbers: Vec<u64> = instance.executions.keys().copied().collect();
    let first = numbers.first().copied().unwrap_or(current);
    if first == 0 || numbers != (first..=current).collect::<Vec<_>>() {
        violations.push(format!(
            "instance {id}: is in execution {current}, but its executions are {numbers:?}"
        ));
    }
    for (number, execution) in instance.executions.range(..current) {
        if execution.info.status != "ContinuedAsNew" {
            let status = &execution.info.status;
            violations.push(format!(
                "instance {id}, execution {number}: is {status}, but execution {current} follows"
            ));
        }
    }
    let InstanceInfo { status, output, .. } = &instance.info;
    if let Some(execution) = instance.current()
        && (*status != execution.info.status || *output != execution.info.output)
    {
        violations.push(format!(
            "instance {id}: is stored as {status} with output {output:?}, but execution {current} \
             as {} with {:?}",
            execution.info.status, execution.info.output
        ));
    }
    violations
}

/// The values seen from outside are what all histories add up to, if none has been pruned.
fn check_kv(id: &str, instance: &Instance) -> Option<String> {
    let complete = instance.executions.contains_key(&1)
        && instance.executions.values().all(|execution| execution.history.is_ok());
    if !complete {
        return None;
    }
    let mut folded = HashMap::new();
    for event in instance.executions.values().flat_map(Execution::events) {
        match &event.kind {
            EventKind::KeyValueSet { key, value, .. } => {
                folded.insert(key.clone(), value.clone());
            }
            EventKind::KeyValueCleared { key } => {
                folded.remove(key);
            }
            EventKind::KeyValuesCleared => folded.clear(),
            _ => {}
        }
    }
    let sorted =
        |map: &HashMap<String, String>| map.clone().into_iter().collect::<BTreeMap<_, _>>();
    (folded != instance.kv).then(|| {
        let (stored, told) = (sorted(&instance.kv), sorted(&folded));
        format!("instance {id}: has the values {stored:?}, but its histories tell {told:?}")
    })
}

/// A child that ended has told its parent, if the parent still runs and wants to know.
fn check_lost_children(instances: &Instances) -> Vec<String> {
    let mut violations = Vec::new();
    for (id, instance) in instances {
        let number = instance.info.current_execution_id;
        let events = instance.current().map(Execution::events).unwrap_or_default();
        if terminal_event(events).is_some() || is_cancelled(events) {
            continue;
        }
        let settled = settled_children(events);
        for event in events {
            let EventKind::SubOrchestrationScheduled { instance: child, .. } = &event.kind else {
                continue;
            };
            let child = build_child_instance_id(id, child);
            let status = instances.get(&child).map_or("unknown", |child| &child.info.status);
            let sched_id = event.event_id;
            if matches!(status, "Completed" | "Failed") && !settled.contains(&sched_id) {
                violations.push(format!(
                    "instance {id}, execution {number}, event {sched_id}: child {child} is \
                     {status}, but that never arrived"
                ));
            }
        }
    }
    violations
}

fn is_cancelled(events: &[Event]) -> bool {
    events.iter().any(|e| matches!(e.kind, EventKind::OrchestrationCancelRequested { .. }))
}

/// Schedule events of children that have answered, or that nobody waits for any more.
fn settled_children(events: &[Event]) -> HashSet<u64> {
    let settled = events.iter().filter(|event| {
        matches!(
            event.kind,
            EventKind::SubOrchestrationCompleted { .. }
                | EventKind::SubOrchestrationFailed { .. }
                | EventKind::SubOrchestrationCancelRequested { .. }
        )
    });
    settled.filter_map(|event| event.source_event_id).collect()
}
