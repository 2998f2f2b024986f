//! Statuses without histories, and waiting for commits.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::super::lab::{AT_ONCE, LONG, Lab, Promise, lab};
use super::super::words::*;
use super::super::{ProviderFactory, Skip};
use duroxide_core::model::{ErrorDetails, Event, EventKind, OrchestrationStatus};

/// The status without the history is the status of the history.
pub async fn a_status_is_what_the_history_says<F: ProviderFactory>(factory: &F) {
    let says = "read_status agrees with the history and the custom status, in every state";
    let lab = lab(factory, Promise { rule: "R8.133", says, section: "reading" }).await.patient();
    is_not_found(&lab).await;
    lab.send(start("a")).await;
    is_not_found(&lab).await; // R6.24: nobody has picked it up
    let turn = lab.turn_of("a").await;
    is_not_found(&lab).await;
    lab.committed(&turn, first_commit("a")).await;
    is_running(&lab, None, 0).await;
    lab.step("a", commit().event(show(2, Some("one")))).await;
    is_running(&lab, Some("one"), 1).await;
    lab.step("a", commit().event(show(3, None))).await;
    is_running(&lab, None, 2).await;
    let next = EventKind::OrchestrationContinuedAsNew { input: "x".into() };
    lab.step("a", commit().event(event(4, next)).ends("ContinuedAsNew", "x")).await;
    is_running(&lab, None, 2).await; // R6.22
    let second = || commit().in_execution(2);
    lab.step("a", second().event(started("a")).event(show(2, Some("two")))).await;
    is_running(&lab, Some("two"), 3).await;
    let end = EventKind::OrchestrationCompleted { output: "out".into() };
    lab.step("a", second().event(event(3, end)).ends("Completed", "out")).await;
    let (output, custom_status) = ("out".to_owned(), Some("two".to_owned()));
    let completed =
        OrchestrationStatus::Completed { output, custom_status, custom_status_version: 3 };
    lab.same("the status", status(&lab, "a").await, completed);
    lab.begin("b").await;
    let details = ErrorDetails::nondeterminism("no");
    let end = EventKind::OrchestrationFailed { details: details.clone() };
    lab.step("b", commit().event(event(2, end)).ends("Failed", "no")).await;
    let failed =
        OrchestrationStatus::Failed { details, custom_status: None, custom_status_version: 0 };
    lab.same("the status", status(&lab, "b").await, failed);
    lab.delete_by_force("a").await;
    is_not_found(&lab).await;
}

/// Who waits for a commit is woken by it.
pub async fn a_commit_wakes_who_waits_for_it<F: ProviderFactory>(factory: &F) -> Skip {
    let says = "wait_for_commit returns another number soon after a commit that changed something";
    let lab = lab(factory, Promise { rule: "R8.134", says, section: "long-polls" }).await.patient();
    let Some(mut seen) = lab.wait_for_commit("a", 0, AT_ONCE).await else {
        return Some("the provider cannot tell of commits");
    };
    for event_id in 1..=5 {
        lab.send(start("a")).await;
        let turn = lab.turn_of("a").await;
        let waits = async {
            tokio::join!(next_commit(&lab, seen), next_commit(&lab, seen), next_commit(&lab, seen))
        };
        let ((first, second, third), ()) = tokio::join!(
            waits,
            lab.committed(&turn, commit().named("Orch", "1.0.0").event(news(event_id)))
        );
        lab.expect(first != seen, "another number after a commit", (first, seen));
        lab.same("the numbers of those who wait", (second, third), (first, first));
        // A commit that was before the wait is seen at once.
        lab.same("the number", next_commit(&lab, seen).await, first);
        seen = first;
    }
    None
}

/// Who waits for a commit waits for nothing else, and no longer than told.
pub async fn other_commits_wake_nobody<F: ProviderFactory>(factory: &F) -> Skip {
    let says = "wait_for_commit returns the same number when time is up, whatever others commit";
    let lab = lab(factory, Promise { rule: "R8.134", says, section: "long-polls" }).await.patient();
    lab.begin("a").await;
    let Some(seen) = lab.wait_for_commit("a", u64::MAX, AT_ONCE).await else {
        return Some("the provider cannot tell of commits");
    };
    let (began, span) = (Instant::now(), Duration::from_millis(60));
    let others = async {
        lab.begin("b").await;
        lab.send(raise("a", "x")).await; // not committed yet
        lab.turn_of("a").await;
    };
    let (number, ()) = tokio::join!(lab.wait_for_commit("a", seen, span), others);
    lab.same("the number after the time is up", number, Some(seen));
    lab.not_before(span, began, "the wait");
    lab.expect(began.elapsed() < lab.patience, "the wait to end in time", began.elapsed());
    let unknown = lab.wait_for_commit("nobody", 0, AT_ONCE).await;
    lab.expect(unknown.is_some(), "a number for an instance that is not there", unknown);
    None
}

/// Something a client can wait for: a custom status.
fn news(event_id: u64) -> Event {
    let status = Some(format!("status {event_id}"));
    event(event_id, EventKind::CustomStatusUpdated { status })
}

/// The number after the next commit, which must come soon.
async fn next_commit(lab: &Lab, seen: u64) -> u64 {
    match timeout(lab.patience, lab.wait_for_commit("a", seen, LONG)).await {
        Ok(Some(number)) => number,
        other => lab.broken("wait_for_commit to return soon after the commit", other),
    }
}

/// The status, which must be what the history says.
async fn status(lab: &Lab, instance: &str) -> OrchestrationStatus {
    let status = lab.ok("read_status", lab.read_status(instance).await);
    let history = lab.ok("read", lab.read(instance).await);
    let custom = lab.custom_status(instance, 0).await.unwrap_or_default();
    lab.same("the status", &status, &OrchestrationStatus::from_history(&history, custom));
    status
}

async fn is_running(lab: &Lab, shows: Option<&str>, version: u64) {
    let custom_status = shows.map(str::to_owned);
    let running = OrchestrationStatus::Running { custom_status, custom_status_version: version };
    lab.same("the status", status(lab, "a").await, running);
}

async fn is_not_found(lab: &Lab) {
    lab.same("the status", status(lab, "a").await, OrchestrationStatus::NotFound);
}
