//! Activities are cancelled by taking them out of the queue. Nothing else about their orchestration
//! matters to the worker queue.

use super::ProviderFactory;
use super::lab::{Job, Lab, Promise, lab};
use super::patience::OUTLASTING;
use super::words::*;
use duroxide_core::model::WorkItem;

const QUEUE: &str = "the-worker-queue";
const COMMIT: &str = "committing-a-turn";

/// The activity of a running orchestration is fetched.
pub async fn test_fetch_returns_running_state_for_active_orchestration<F: ProviderFactory>(
    factory: &F,
) {
    let says = "the activity of a running orchestration is fetched";
    let lab = lab(factory, Promise { rule: "R8.73", says, section: QUEUE }).await.patient();
    scheduled(&lab).await;
    lab.same("the activity", lab.job().await.item, activity("a", 2));
}

/// The activity of a completed orchestration is fetched.
pub async fn test_fetch_returns_terminal_state_when_orchestration_completed<F: ProviderFactory>(
    factory: &F,
) {
    fetched_after(factory, "Completed").await;
}

/// The activity of a failed orchestration is fetched.
pub async fn test_fetch_returns_terminal_state_when_orchestration_failed<F: ProviderFactory>(
    factory: &F,
) {
    fetched_after(factory, "Failed").await;
}

/// The activity of an orchestration that continued as new is fetched.
pub async fn test_fetch_returns_terminal_state_when_orchestration_continued_as_new<
    F: ProviderFactory,
>(
    factory: &F,
) {
    fetched_after(factory, "ContinuedAsNew").await;
}

/// The activity of no orchestration is fetched.
pub async fn test_fetch_returns_missing_state_when_instance_deleted<F: ProviderFactory>(
    factory: &F,
) {
    let says = "an activity is fetched and answered although its instance does not exist";
    let lab = lab(factory, Promise { rule: "R8.73", says, section: QUEUE }).await.patient();
    lab.queue(activity("a", 2)).await;
    let job = lab.job().await;
    lab.same("the activity", &job.item, &activity("a", 2));
    lab.answered(&job, None).await;
    lab.no_job().await;
}

/// The activity of a running orchestration is renewed.
pub async fn test_renew_returns_running_when_orchestration_active<F: ProviderFactory>(factory: &F) {
    let says = "the lock of a running orchestration's activity is renewed";
    let lab = lab(factory, Promise { rule: "R8.75", says, section: QUEUE }).await.patient();
    scheduled(&lab).await;
    renewed(&lab, &lab.job().await).await;
}

/// The activity of a completed orchestration is renewed.
pub async fn test_renew_returns_terminal_when_orchestration_completed<F: ProviderFactory>(
    factory: &F,
) {
    let says = "the lock of an activity is renewed although its orchestration has completed";
    let lab = lab(factory, Promise { rule: "R8.75", says, section: QUEUE }).await.patient();
    scheduled(&lab).await;
    let job = lab.job().await;
    lab.step("a", commit().ends("Completed", "out")).await;
    renewed(&lab, &job).await;
    lab.answered(&job, Some(done("a", 2))).await;
}

/// The activity of no orchestration is renewed.
pub async fn test_renew_returns_missing_when_instance_deleted<F: ProviderFactory>(factory: &F) {
    let says = "the lock of an activity is renewed although its instance does not exist";
    let lab = lab(factory, Promise { rule: "R8.75", says, section: QUEUE }).await.patient();
    lab.queue(activity("a", 2)).await;
    renewed(&lab, &lab.job().await).await;
}

/// An answer without outcome removes the activity, and that is all.
pub async fn test_ack_work_item_none_deletes_without_enqueue<F: ProviderFactory>(factory: &F) {
    let says = "an answer without outcome removes the activity and queues nothing";
    let lab = lab(factory, Promise { rule: "R8.74", says, section: QUEUE }).await;
    scheduled(&lab).await;
    let answer = || async {
        let job = lab.job_soon().await;
        lab.ack_work_item(&job.token, None).await
    };
    lab.in_time("ack_work_item", answer).await;
    lab.no_turn().await;
    lab.locks_run_out().await;
    lab.no_job().await;
}

/// A commit takes the activities it cancels out of the queue, fetched or not, and no others.
pub async fn test_cancelled_activities_deleted_from_worker_queue<F: ProviderFactory>(factory: &F) {
    let says = "cancelled activities leave the queue, also those that are being done; others stay";
    let lab = lab(factory, Promise { rule: "R8.52", says, section: COMMIT }).await;
    scheduled(&lab).await;
    lab.job().await;
    lab.step("a", commit().work(activity("a", 3)).work(in_execution_2("a", 3))).await;
    lab.queue(activity("b", 3)).await;
    lab.step("a", commit().cancelling(identity("a", 2)).cancelling(identity("a", 3))).await;
    lab.locks_run_out().await;
    let lab = lab.patient();
    lab.same("an activity of another execution", lab.job().await.item, in_execution_2("a", 3));
    lab.same("an activity of another instance", lab.job().await.item, activity("b", 3));
    lab.no_job().await;
}

/// The answer to a cancelled activity is refused.
pub async fn test_ack_work_item_fails_when_entry_deleted<F: ProviderFactory>(factory: &F) {
    let says = "the answer to a cancelled activity is refused for good, its outcome not queued";
    let lab = lab(factory, Promise { rule: "R8.74", says, section: QUEUE }).await.patient();
    let job = cancelled(&lab).await;
    let with_outcome = lab.ack_work_item(&job.token, Some(done("a", 2))).await;
    lab.refused("ack_work_item of a cancelled activity", with_outcome, &[]);
    let without = lab.ack_work_item(&job.token, None).await;
    lab.refused("ack_work_item of a cancelled activity", without, &[]);
    lab.no_turn().await;
}

/// The lock of a cancelled activity cannot be renewed.
pub async fn test_renew_fails_when_entry_deleted<F: ProviderFactory>(factory: &F) {
    let says = "a refused renewal tells a worker that its activity was cancelled";
    let lab = lab(factory, Promise { rule: "R8.75", says, section: "renewing-locks" }).await;
    let lab = lab.patient();
    let job = cancelled(&lab).await;
    let renewed = lab.renew_work_item_lock(&job.token, OUTLASTING).await;
    lab.refused("renew_work_item_lock of a cancelled activity", renewed, &[]);
    let given_back = lab.abandon_work_item(&job.token, None, false).await;
    lab.refused("abandon_work_item of a cancelled activity", given_back, &[]);
    lab.no_job().await;
}

/// Cancelling what is not there is no error.
pub async fn test_cancelling_nonexistent_activities_is_idempotent<F: ProviderFactory>(factory: &F) {
    let says = "cancelling an activity that is not in the queue does nothing, and the rest happens";
    let lab = lab(factory, Promise { rule: "R8.52", says, section: COMMIT }).await.patient();
    scheduled(&lab).await;
    let answered = lab.job().await;
    lab.answered(&answered, None).await;
    for event_id in [2, 3] {
        let cancel = commit()
            .event(note(event_id))
            .work(activity("a", 10 + event_id))
            .cancelling(identity("a", 2)) // done, and cancelled in both rounds
            .cancelling(identity("a", 99))
            .cancelling(identity("no such instance", 2));
        lab.step("a", cancel).await;
    }
    lab.same("the events", lab.event_ids("a").await, [1, 2, 3]);
    lab.same("the first activity", lab.job().await.id(), 12);
    lab.same("the second activity", lab.job().await.id(), 13);
}

/// One commit cancels many.
pub async fn test_batch_cancellation_deletes_multiple_activities<F: ProviderFactory>(factory: &F) {
    let says = "one commit takes all the activities it cancels out of the queue";
    let lab = lab(factory, Promise { rule: "R8.52", says, section: COMMIT }).await.patient();
    let all = (2..=30).fold(first_commit("a"), |commit, id| commit.work(activity("a", id)));
    lab.begin_as("a", all).await;
    let most = (2..=29).filter(|id| *id != 17);
    let cancelling = most.fold(commit(), |commit, id| commit.cancelling(identity("a", id)));
    lab.step("a", cancelling).await;
    lab.same("the first activity left", lab.job().await.id(), 17);
    lab.same("the second activity left", lab.job().await.id(), 30);
    lab.no_job().await;
}

/// What is scheduled and cancelled in one commit is not queued.
pub async fn test_same_activity_in_worker_items_and_cancelled_is_noop<F: ProviderFactory>(
    factory: &F,
) {
    let says = "an activity that one commit schedules and cancels is not queued";
    let lab = lab(factory, Promise { rule: "R8.52", says, section: COMMIT }).await.patient();
    let both = first_commit("a")
        .work(activity("a", 2))
        .work(activity("a", 3))
        .cancelling(identity("a", 2));
    lab.begin_as("a", both).await;
    lab.same("the only activity", lab.job().await.id(), 3);
    lab.no_job().await;
}

/// Activities go with their deleted instance, and nothing is left that could do harm.
pub async fn test_orphan_activity_after_instance_force_deletion<F: ProviderFactory>(factory: &F) {
    let says = "a forced delete takes queued activities along; whoever does one cannot answer it";
    let lab = lab(factory, Promise { rule: "R6.60", says, section: "deleting" }).await.patient();
    let two = first_commit("a").work(activity("a", 2)).work(activity("a", 3));
    lab.begin_as("a", two).await;
    let orphan = lab.job().await;
    lab.ok("delete_instance", lab.admin().delete_instance("a", true).await);
    lab.no_job().await;
    let late = lab.ack_work_item(&orphan.token, Some(done("a", 2))).await;
    lab.refused("ack_work_item of an activity of a deleted instance", late, &[]);
    lab.no_turn().await;
    // The name is free again.
    lab.begin_as("a", first_commit("a").work(activity("a", 2))).await;
    let job = lab.job().await;
    lab.answered(&job, Some(done("a", 2))).await;
    lab.batch(&lab.turn_of("a").await, [done("a", 2)]);
}

/// An instance with an activity in the queue.
async fn scheduled(lab: &Lab) {
    lab.begin_as("a", first_commit("a").work(activity("a", 2))).await;
}

/// An activity that is being done, and has been cancelled.
async fn cancelled(lab: &Lab) -> Job {
    scheduled(lab).await;
    let job = lab.job().await;
    lab.step("a", commit().cancelling(identity("a", 2))).await;
    job
}

async fn fetched_after<F: ProviderFactory>(factory: &F, status: &str) {
    let says = "an activity is fetched and answered although its orchestration has ended";
    let lab = lab(factory, Promise { rule: "R8.73", says, section: QUEUE }).await.patient();
    scheduled(&lab).await;
    lab.step("a", commit().ends(status, "out")).await;
    let job = lab.job().await;
    lab.same("the activity", &job.item, &activity("a", 2));
    lab.answered(&job, Some(done("a", 2))).await;
    lab.batch(&lab.turn_of("a").await, [done("a", 2)]);
}

async fn renewed(lab: &Lab, job: &Job) {
    let renewed = lab.renew_work_item_lock(&job.token, OUTLASTING).await;
    lab.ok("renew_work_item_lock", renewed);
    lab.no_job().await;
}

fn in_execution_2(instance: &str, id: u64) -> WorkItem {
    let mut item = activity(instance, id);
    if let WorkItem::ActivityExecute { execution_id, .. } = &mut item {
        *execution_id = 2;
    }
    item
}
