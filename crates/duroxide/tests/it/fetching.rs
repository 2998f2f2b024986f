//! Waiting for turns: pauses, errors, lost answers.

use std::time::Duration;

use duroxide::OrchestrationContext;
use duroxide::providers::ProviderError;
use tokio::time::{Instant, sleep};

use crate::support::faults::{Fault, Faults, FaultyProvider, broken, busy};
use crate::support::look::queued;
use crate::support::{WorldBuilder, world};

async fn waits(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    Ok(ctx.schedule_wait("go").await)
}

fn on_faulty(faults: &Faults) -> WorldBuilder {
    world().through(|store| FaultyProvider::wrap(store, faults)).orchestration("Waits", waits)
}

/// How many fetches a slot makes in a minute.
async fn fetches_in_a_minute(trouble: Fault) -> usize {
    let faults = Faults::default();
    faults.always("fetch_orchestration_item", trouble);
    let world =
        on_faulty(&faults).options(|options| options.orchestration_concurrency = 1).start().await;
    sleep(Duration::from_secs(60)).await;
    let calls = faults.calls("fetch_orchestration_item");
    faults.clear();
    world.begin("i", "Waits", "").await;
    world.until_kind("i", "ExternalSubscribed").await; // The slot lives.
    world.finish().await;
    calls
}

#[tokio::test(start_paused = true)]
async fn r7_22_r7_23_fetch_errors_are_paced() {
    // After 0, 0.2, 0.6, 1.4 and 3 s, then every 3 s.
    assert_eq!(fetches_in_a_minute(busy()).await, 4 + 19);
    assert_eq!(fetches_in_a_minute(broken()).await, 600);
}

#[tokio::test(start_paused = true)]
async fn l25_r7_22_slots_survive_any_number_of_errors() {
    let faults = Faults::default();
    faults.always("fetch_orchestration_item", busy());
    let world = on_faulty(&faults).start().await;
    sleep(Duration::from_secs(3600)).await;
    assert!(1_000 < faults.calls("fetch_orchestration_item"));
    faults.clear();
    world.begin("i", "Waits", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn l25_a_fetch_that_panics_costs_a_pause_not_the_slot() {
    let faults = Faults::default();
    faults.next("fetch_orchestration_item", [Fault::Panic, Fault::Panic, Fault::Panic]);
    let world = on_faulty(&faults).start().await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(faults.calls("fetch_orchestration_item"), 4);
    world.begin("i", "Waits", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_21_fruitless_fetches_keep_their_distance() {
    let faults = Faults::default();
    let world = on_faulty(&faults)
        .options(|options| options.dispatcher_long_poll_timeout = Duration::ZERO)
        .start()
        .await;
    sleep(Duration::from_millis(9_950)).await;
    assert_eq!(faults.calls("fetch_orchestration_item"), 100);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_24_a_fetch_whose_answer_is_lost_costs_one_lock_time() {
    let faults = Faults::default();
    let world = on_faulty(&faults).start().await;
    let lost = Fault::After(ProviderError::retryable("fault", "answer lost"));
    faults.next("fetch_orchestration_item", [Fault::Slow(Duration::ZERO), lost]);
    let began = Instant::now();
    world.begin("i", "Waits", "").await;
    sleep(Duration::from_millis(1)).await;
    world.send([queued("i", "q", "")]).await;
    world.until_kind("i", "ExternalSubscribed").await;
    assert!(began.elapsed() <= Duration::from_secs(5 + 3), "{:?}", began.elapsed());
    world.finish().await;
}
