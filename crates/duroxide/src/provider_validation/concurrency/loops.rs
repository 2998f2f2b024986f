//! An instance that continues as new again and again, while many send to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use duroxide_core::model::WorkItem;
use tokio::time::sleep;

use super::super::ProviderFactory;
use super::super::lab::{Lab, Promise, Turn, lab};
use super::super::words::*;
use super::crowds::kept_order_of;
use super::{SECTION, cast};
use crate::providers::TurnCommit;

const SENDERS: usize = 2;
const EACH: usize = 100;
const SERVERS: usize = 2;
/// How long a fetch waits.
const WAIT: Duration = Duration::from_millis(500);

/// Where the instance is, as those who serve it know.
#[derive(Debug)]
struct Progress {
    execution: u64,
    /// The messages read so far.
    served: Vec<WorkItem>,
}

/// Messages that come while executions end and begin are each read once, in order, by the execution that
/// is the current one.
pub async fn nothing_is_lost_between_executions<F: ProviderFactory>(factory: &F) {
    let says = "a turn is of the execution that is current once it is locked, and messages sent while \
                executions follow one another are each served once, in order";
    let lab = lab(factory, Promise { rule: "R8.24", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    let progress = Arc::new(Mutex::new(Progress { execution: 1, served: Vec::new() }));
    let shared = Arc::clone(&progress);
    cast(&lab, SENDERS + SERVERS, move |lab, role| {
        let progress = Arc::clone(&shared);
        async move {
            if role < SENDERS { send(&lab, role).await } else { serve(&lab, &progress).await }
        }
    })
    .await;
    let served = std::mem::take(&mut lock(&progress).served);
    kept_order_of(&lab, &served, SENDERS, EACH);
    let current = lock(&progress).execution;
    lab.same("the current execution", lab.info("a").await.current_execution_id, current);
    if let Some(turn) = lab.try_turn(None).await {
        lab.batch(&turn, [continue_as_new("a")]);
    }
}

async fn send(lab: &Lab, role: usize) {
    for number in 0..EACH {
        let message = raise("a", &format!("{role} {number}"));
        let send = || lab.enqueue_for_orchestrator(message.clone(), None);
        lab.through("enqueue_for_orchestrator", send).await;
        // Not all in one turn, and not all between two.
        sleep(Duration::from_millis((role as u64 * 3 + number as u64 * 7) % 5)).await;
    }
}

/// Serves turns until everything was read.
async fn serve(lab: &Lab, progress: &Mutex<Progress>) {
    let next = || async {
        if SENDERS * EACH <= lock(progress).served.len() {
            return Some(None);
        }
        // Whoever waits may be handed what comes as it comes.
        let fetch = || lab.fetch_orchestration_item(lab.lock, WAIT, None);
        lab.through("fetch_orchestration_item", fetch).await.map(Some)
    };
    while let Some((item, token, attempt)) = lab.soon("the next turn", next).await {
        let turn = Turn { item, token, attempt };
        let commit = next_commit(lab, &turn, &mut lock(progress));
        let commit = || async {
            let committed = lab.commit_turn(&turn.token, commit.clone()).await;
            committed.map_err(|rejected| rejected.error)
        };
        lab.through("commit_turn", commit).await;
    }
}

/// Notes what a turn has read, and continues as new: in one commit, or with a message to itself.
/// Nobody else has a turn of this instance, so nobody else knows better where it is.
fn next_commit(lab: &Lab, turn: &Turn, progress: &mut Progress) -> TurnCommit {
    let current = progress.execution;
    lab.same("the execution of a turn", turn.item.execution_id, current);
    let history = turn.item.history.iter().map(|event| event.execution_id).collect::<Vec<_>>();
    lab.same("the executions of its events", history, [current]);
    let is_step = |item: &WorkItem| matches!(item, WorkItem::ContinueAsNew { .. });
    let (steps, read): (Vec<_>, Vec<_>) = turn.item.messages.iter().cloned().partition(is_step);
    progress.served.extend(read);
    let end = commit().in_execution(current).ends("ContinuedAsNew", "next");
    let mut begin = first_commit("a").in_execution(current + 1);
    begin.history_delta.iter_mut().for_each(|event| event.execution_id = current + 1);
    if lab.commits_successors() {
        progress.execution += 1;
        end.change(|end| end.successor = Some(Box::new(begin)))
    } else if steps.is_empty() {
        end.message(continue_as_new("a"))
    } else {
        progress.execution += 1;
        begin
    }
}

fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}
