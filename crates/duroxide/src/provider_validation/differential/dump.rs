//! Everything the contract shows of a store without changing it.

use std::collections::BTreeMap;

use super::answer::{dumped, sizes, sorted, tree};
use super::dice::INSTANCES;
use crate::providers::{DeadLetter, Provider, ProviderAdmin};

/// What was asked, and the answer.
type Line = (String, String);

/// Texts that instances are listed by.
const STATUSES: &[&str] = &["Running", "Completed", "Failed", "ContinuedAsNew", "completed"];

/// All that can be seen of a store, with its management side or without. Instances that nothing was
/// written to are looked at, but not from all sides.
pub(super) async fn dump(
    store: &dyn Provider,
    with_admin: bool,
    is_written: impl Fn(&str) -> bool,
) -> Vec<Line> {
    let mut lines = Vec::new();
    let admin = store.as_management_capability().filter(|_| with_admin);
    if let Some(admin) = admin {
        dump_totals(admin, &mut lines).await;
    }
    for id in INSTANCES {
        if !is_written(id) {
            let status = store.read_status(id).await;
            lines.push(line("read_status", id, dumped(status, |status| format!("{status:?}"))));
            continue;
        }
        dump_instance(store, id, &mut lines).await;
        if let Some(admin) = admin {
            dump_executions(store, admin, id, &mut lines).await;
        }
    }
    lines
}

async fn dump_totals(admin: &dyn ProviderAdmin, lines: &mut Vec<Line>) {
    let mut add = |call: &str, text: String| lines.push((call.to_owned(), text));
    add("list_instances", dumped(admin.list_instances().await, |ids| format!("{ids:?}")));
    for status in STATUSES {
        let ids = admin.list_instances_by_status(status).await;
        add(
            &format!("list_instances_by_status({status:?})"),
            dumped(ids, |ids| format!("{ids:?}")),
        );
    }
    add("get_system_metrics", dumped(admin.get_system_metrics().await, |m| format!("{m:?}")));
    add("get_queue_depths", dumped(admin.get_queue_depths().await, |d| format!("{d:?}")));
    add("list_dead_letters", dumped(admin.list_dead_letters().await, dead_letters));
}

async fn dump_instance(store: &dyn Provider, id: &str, lines: &mut Vec<Line>) {
    let mut add = |call: &str, text: String| lines.push(line(call, id, text));
    add("read", dumped(store.read(id).await, |events| format!("{events:?}")));
    let first = store.read_with_execution(id, 1).await;
    add("read_with_execution 1", dumped(first, |events| format!("{events:?}")));
    add("read_status", dumped(store.read_status(id).await, |status| format!("{status:?}")));
    add(
        "get_custom_status",
        dumped(store.get_custom_status(id, 0).await, |status| format!("{status:?}")),
    );
    let values = store.get_kv_all_values(id).await;
    add(
        "get_kv_all_values",
        dumped(values, |values| format!("{:?}", values.into_iter().collect::<BTreeMap<_, _>>())),
    );
    add(
        "get_instance_stats",
        dumped(store.get_instance_stats(id).await, |stats| format!("{:?}", stats.map(sizes))),
    );
}

async fn dump_executions(
    store: &dyn Provider,
    admin: &dyn ProviderAdmin,
    id: &str,
    lines: &mut Vec<Line>,
) {
    let mut add = |call: &str, text: String| lines.push(line(call, id, text));
    add("get_instance_info", dumped(admin.get_instance_info(id).await, |i| format!("{i:?}")));
    add("get_parent_id", dumped(admin.get_parent_id(id).await, |parent| format!("{parent:?}")));
    add("list_children", dumped(admin.list_children(id).await, sorted));
    add("get_instance_tree", dumped(admin.get_instance_tree(id).await, tree));
    let latest = admin.latest_execution_id(id).await;
    add("latest_execution_id", dumped(latest, |number| number.to_string()));
    add("read_history", dumped(admin.read_history(id).await, |events| format!("{events:?}")));
    let numbers = admin.list_executions(id).await;
    let mut all = numbers.clone().unwrap_or_default();
    add("list_executions", dumped(numbers, |numbers| format!("{numbers:?}")));
    all.push(all.last().map_or(1, |last| last + 1)); // and one that does not exist
    for number in all {
        let mut add = |call: &str, text: String| add(&format!("{call} {number}"), text);
        let info = admin.get_execution_info(id, number).await;
        add("get_execution_info", dumped(info, |info| format!("{info:?}")));
        let events = store.read_with_execution(id, number).await;
        add("read_with_execution", dumped(events, |events| format!("{events:?}")));
        let events = admin.read_history_with_execution_id(id, number).await;
        add("read_history_with_execution_id", dumped(events, |events| format!("{events:?}")));
    }
}

fn line(call: &str, id: &str, text: String) -> Line {
    (format!("{call} of {id:?}"), text)
}

/// Dead letters in no promised order, whatever the reason and however the message is written.
fn dead_letters(letters: Vec<DeadLetter>) -> String {
    let mut letters: Vec<String> = letters
        .into_iter()
        .map(|DeadLetter { instance, payload, reason, at_ms }| {
            let payload = serde_json::from_str::<serde_json::Value>(&payload).ok();
            format!("{instance:?} at {at_ms}, reason given: {}, {payload:?}", !reason.is_empty())
        })
        .collect();
    letters.sort();
    format!("{letters:?}")
}
