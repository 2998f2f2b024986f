//! Waits, on paused time: when they look, what ends them, what does not.

use std::time::Duration;

use duroxide_core::model::OrchestrationStatus;
use tokio::time::Instant;

use super::fake::{Fake, completed, corrupt, failed, outage, running, running_at};
use crate::client::{Client, ClientError};

const SECOND: Duration = Duration::from_secs(1);

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The answer of a wait and how long it took.
async fn wait(client: &Client, timeout: Duration) -> (Result<OrchestrationStatus, String>, u128) {
    let began_at = Instant::now();
    let answer = client.wait_for_orchestration("a", timeout).await;
    (answer.map_err(|error| error.to_string()), began_at.elapsed().as_millis())
}

const TIMEOUT: &str = "Operation timed out";

#[tokio::test(start_paused = true)]
async fn r6_30_looks_are_paced_and_the_deadline_is_kept() {
    let (store, client) = Fake::new().with_statuses([running()]).client();
    assert_eq!(wait(&client, ms(400)).await, (Err(TIMEOUT.to_owned()), 400));
    assert_eq!(store.looks_ms(), [0, 5, 15, 35, 75, 155, 255, 355, 400]);
    assert_eq!(*store.commit_questions.lock().unwrap(), 1); // R8.134: a `None` is final
}

#[tokio::test(start_paused = true)]
async fn r6_30_only_an_end_ends_the_wait() {
    let not_found = || Ok(OrchestrationStatus::NotFound);
    for end in [completed("7"), failed()] {
        let script = [not_found(), not_found(), running(), running_at(4), end.clone()];
        let (_, client) = Fake::new().with_statuses(script).client();
        assert_eq!(wait(&client, SECOND).await, (Ok(end.unwrap()), 75));
    }
}

#[tokio::test(start_paused = true)]
async fn r6_30_a_zero_timeout_looks_once() {
    let (store, client) = Fake::new().with_statuses([running(), completed("7")]).client();
    assert_eq!(wait(&client, Duration::ZERO).await, (Err(TIMEOUT.to_owned()), 0));
    assert_eq!(wait(&client, Duration::ZERO).await, (Ok(completed("7").unwrap()), 0));
    assert_eq!(store.looks_ms().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn r6_30_an_endless_timeout_is_possible() {
    let (_, client) = Fake::new().with_statuses([running(), completed("7")]).client();
    assert_eq!(wait(&client, Duration::MAX).await.0, completed("7").map_err(|e| e.to_string()));
}

#[tokio::test(start_paused = true)]
async fn r6_30_an_outage_is_waited_out() {
    let script = [Err(outage()), running(), Err(outage()), Err(outage()), completed("7")];
    let (_, client) = Fake::new().with_statuses(script).client();
    assert_eq!(wait(&client, SECOND).await, (Ok(completed("7").unwrap()), 75));
}

#[tokio::test(start_paused = true)]
async fn r6_30_an_outage_that_lasts_is_the_answer_at_the_deadline() {
    let (_, client) = Fake::new().with_statuses([running(), Err(outage())]).client();
    assert_eq!(wait(&client, ms(50)).await, (Err(outage().to_string()), 50));
    // One that is over by then is not.
    let (_, client) = Fake::new().with_statuses([Err(outage()), running()]).client();
    assert_eq!(wait(&client, ms(50)).await, (Err(TIMEOUT.to_owned()), 50));
}

#[tokio::test(start_paused = true)]
async fn r6_30_a_permanent_error_ends_the_wait_at_once() {
    let (_, client) = Fake::new().with_statuses([running(), Err(corrupt())]).client();
    assert_eq!(wait(&client, SECOND).await, (Err(corrupt().to_string()), 5));
}

#[tokio::test(start_paused = true)]
async fn r6_34_r8_134_l46_a_commit_of_this_process_wakes_the_wait() {
    let (store, client) = Fake::new().telling_commits().with_statuses([running()]).client();
    let waiter = tokio::spawn(async move { wait(&client, 60 * SECOND).await });
    tokio::time::sleep(ms(3_333)).await;
    *store.statuses.lock().unwrap() = [completed("7")].into();
    store.commit();
    assert_eq!(waiter.await.unwrap(), (Ok(completed("7").unwrap()), 3_333));
    // Looks for the commits of other processes become rare.
    assert_eq!(store.looks_ms(), [0, 5, 15, 35, 75, 155, 315, 635, 1_275, 2_275, 3_275, 3_333]);
}

#[tokio::test(start_paused = true)]
async fn r6_34_a_commit_between_look_and_wait_is_not_missed() {
    // Each look reads "running" and then, before the client can wait, somebody commits.
    let mut store = Fake::new().telling_commits();
    store.commits_while_looking = true;
    let script = [running(), running(), running(), completed("7")];
    let (_, client) = store.with_statuses(script).client();
    assert_eq!(wait(&client, SECOND).await, (Ok(completed("7").unwrap()), 0));
}

#[tokio::test(start_paused = true)]
async fn r6_34_commits_of_other_processes_are_found_by_looking() {
    let (store, client) = Fake::new().telling_commits().with_statuses([running()]).client();
    let waiter = tokio::spawn(async move { wait(&client, 60 * SECOND).await });
    tokio::time::sleep(10 * SECOND).await;
    *store.statuses.lock().unwrap() = [completed("7")].into();
    let (answer, took) = waiter.await.unwrap();
    assert_eq!(answer, Ok(completed("7").unwrap()));
    assert!((10_000..=11_000).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn r6_34_a_store_that_answers_too_early_does_not_make_the_wait_spin() {
    let mut store = Fake::new().telling_commits();
    store.impatient = true;
    let (store, client) = store.with_statuses([running()]).client();
    assert_eq!(wait(&client, SECOND).await, (Err(TIMEOUT.to_owned()), 1_000));
    assert_eq!(store.looks_ms(), [0, 5, 15, 35, 75, 155, 315, 635, 1_000]);
}

/// The answer of a wait for a newer custom status, and how long it took.
async fn wait_change(
    client: &Client,
    seen: u64,
    interval: Duration,
    timeout: Duration,
) -> (Result<OrchestrationStatus, ClientError>, u128) {
    let began_at = Instant::now();
    let answer = client.wait_for_status_change("a", seen, interval, timeout).await;
    (answer, began_at.elapsed().as_millis())
}

#[tokio::test(start_paused = true)]
async fn r6_32_a_newer_custom_status_ends_the_wait() {
    let script = [Ok(OrchestrationStatus::NotFound), running_at(2), running_at(2), running_at(3)];
    let (store, client) = Fake::new().with_statuses(script).client();
    let (answer, took) = wait_change(&client, 2, ms(30), SECOND).await;
    assert_eq!((answer.unwrap(), took), (running_at(3).unwrap(), 90));
    assert_eq!(store.looks_ms(), [0, 30, 60, 90]);
}

#[tokio::test(start_paused = true)]
async fn r6_32_so_does_the_end() {
    for end in [completed("7"), failed()] {
        let (_, client) = Fake::new().with_statuses([running_at(2), end.clone()]).client();
        let (answer, took) = wait_change(&client, 2, ms(30), SECOND).await;
        assert_eq!((answer.unwrap(), took), (end.unwrap(), 30));
    }
}

#[tokio::test(start_paused = true)]
async fn r6_32_the_interval_is_cut_at_the_deadline() {
    let (store, client) = Fake::new().with_statuses([running_at(2)]).client();
    let (answer, took) = wait_change(&client, 2, ms(30), ms(70)).await;
    assert!(matches!(answer, Err(ClientError::Timeout)), "{answer:?}");
    assert_eq!((took, store.looks_ms()), (70, vec![0, 30, 60, 70]));
    let (answer, took) = wait_change(&client, 2, Duration::MAX, ms(70)).await;
    assert!(matches!(answer, Err(ClientError::Timeout)), "{answer:?}");
    assert_eq!(took, 70);
}

#[tokio::test(start_paused = true)]
async fn r6_32_a_zero_timeout_looks_at_nothing() {
    let (store, client) = Fake::new().with_statuses([completed("7")]).client();
    let (answer, _) = wait_change(&client, 0, ms(30), Duration::ZERO).await;
    assert!(matches!(answer, Err(ClientError::Timeout)), "{answer:?}");
    assert!(store.looks_ms().is_empty());
}

#[tokio::test(start_paused = true)]
async fn r6_32_a_zero_interval_does_not_spin() {
    let (store, client) = Fake::new().with_statuses([running_at(2)]).client();
    let (answer, _) = wait_change(&client, 2, Duration::ZERO, ms(10)).await;
    assert!(matches!(answer, Err(ClientError::Timeout)), "{answer:?}");
    assert_eq!(store.looks_ms().len(), 11);
}

#[tokio::test(start_paused = true)]
async fn r6_32_a_commit_wakes_it_before_the_interval_is_over() {
    let (store, client) = Fake::new().telling_commits().with_statuses([running_at(2)]).client();
    let waiter = tokio::spawn(async move { wait_change(&client, 2, SECOND, 9 * SECOND).await });
    tokio::time::sleep(ms(1_500)).await;
    *store.statuses.lock().unwrap() = [running_at(3)].into();
    store.commit();
    let (answer, took) = waiter.await.unwrap();
    assert_eq!((answer.unwrap(), took), (running_at(3).unwrap(), 1_500));
    assert_eq!(store.looks_ms(), [0, 1_000, 1_500]);
}
