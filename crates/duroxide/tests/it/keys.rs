//! Attempts and idempotency keys of activities (R5.44, R5.45).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use duroxide::{BackoffStrategy, OrchestrationContext, RetryPolicy};
use tokio::time::sleep;

use crate::support::faults::{Faults, FaultyProvider, broken};
use crate::support::{Door, WorldBuilder, world, world_on};

type Seen = Arc<Mutex<Vec<(u32, String)>>>;

/// An activity that notes its attempt and key, and fails as often as it is told.
fn noting(world: WorldBuilder, seen: &Seen) -> WorldBuilder {
    let seen = Arc::clone(seen);
    world.patient().activity("A", move |ctx, failures| {
        let seen = Arc::clone(&seen);
        async move {
            let key = ctx.idempotency_key().await?;
            assert_eq!(ctx.clone().idempotency_key().await?, key);
            let mut seen = seen.lock().unwrap();
            seen.push((ctx.attempt(), key));
            let wanted = failures.parse().unwrap();
            if seen.len() <= wanted { Err("busy".to_owned()) } else { Ok(failures) }
        }
    })
}

fn take(seen: &Seen) -> Vec<(u32, String)> {
    std::mem::take(&mut *seen.lock().unwrap())
}

async fn call_a(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.schedule_activity("A", input).await
}

#[tokio::test(start_paused = true)]
async fn r5_44_r5_45_all_attempts_of_an_activity_have_one_key() {
    let (seen, faults) = (Seen::default(), Faults::default());
    let world = noting(world().through(|store| FaultyProvider::wrap(store, &faults)), &seen)
        .orchestration("Main", call_a)
        .start()
        .await;
    faults.next("ack_work_item", [broken(), broken()]); // Two results are lost.
    assert_eq!(world.run("m", "Main", "0").await, "0");
    let begun = world.history("m").await[0].timestamp_ms;
    let key = format!("m/1/2/{begun}");
    assert_eq!(take(&seen), [(1, key.clone()), (2, key.clone()), (3, key)]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_44_r5_45_another_process_makes_the_same_key() {
    let (seen, door) = (Seen::default(), Door::default());
    let first = world().behind("A", &door).orchestration("Main", call_a).start().await;
    first.begin("m", "Main", "0").await;
    door.knock().await;
    let memory = Arc::clone(&first.memory);
    let begun = first.history("m").await[0].timestamp_ms;
    first.runtime.shutdown(Some(0)).await;
    sleep(Duration::from_secs(60)).await;
    let second = noting(world_on(memory), &seen).orchestration("Main", call_a).start().await;
    assert_eq!(second.output("m").await, "0");
    assert_eq!(take(&seen), [(2, format!("m/1/2/{begun}"))]);
    second.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_45_other_schedulings_executions_and_lives_have_other_keys() {
    let seen = Seen::default();
    let world = noting(world(), &seen)
        .orchestration("Main", |ctx, input| async move {
            ctx.schedule_activity("A", "0").await?;
            ctx.schedule_activity("A", "0").await?;
            match input.as_str() {
                "again" => ctx.continue_as_new("").await,
                _ => Ok(String::new()),
            }
        })
        .orchestration("Retry", |ctx, input| async move {
            let policy = RetryPolicy::new(3).with_backoff(BackoffStrategy::None);
            ctx.schedule_activity_with_retry("A", input, policy).await
        })
        .start()
        .await;
    for _ in 0..2 {
        world.run("m", "Main", "again").await;
        world.client.delete_instance("m", false).await.unwrap();
        sleep(Duration::from_millis(1)).await;
    }
    let keys: Vec<String> = take(&seen).into_iter().map(|(_, key)| key).collect();
    let different: std::collections::BTreeSet<&String> = keys.iter().collect();
    assert_eq!((keys.len(), different.len()), (8, 8), "{keys:?}");

    // Each try of a policy is an activity of its own.
    assert_eq!(world.run("r", "Retry", "2").await, "2");
    let begun = world.history("r").await[0].timestamp_ms;
    let expected = [2, 4, 6].map(|event| (1, format!("r/1/{event}/{begun}")));
    assert_eq!(take(&seen), expected);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_45_a_store_that_is_away_is_waited_for() {
    let (seen, faults, door) = (Seen::default(), Faults::default(), Door::default());
    let (noted, arrived) = (Arc::clone(&seen), door.clone());
    let world = world()
        .patient()
        .through(|store| FaultyProvider::wrap(store, &faults))
        .activity("A", move |ctx, _| {
            let (seen, door) = (Arc::clone(&noted), arrived.clone());
            async move {
                door.pass().await;
                let key = ctx.idempotency_key().await?;
                seen.lock().unwrap().push((ctx.attempt(), key.clone()));
                Ok(key)
            }
        })
        .orchestration("Main", call_a)
        .start()
        .await;
    for outage in [10, 100] {
        let id = format!("m{outage}");
        world.begin(&id, "Main", "").await;
        door.knock().await;
        faults.outage(true);
        door.open();
        sleep(Duration::from_secs(outage)).await;
        faults.outage(false);
        if outage == 100 {
            door.open(); // Its lock was lost meanwhile.
        }
        let begun = world.history(&id).await[0].timestamp_ms;
        assert_eq!(world.output(&id).await, format!("{id}/1/2/{begun}"));
        assert_eq!(take(&seen).len(), 1);
    }
    world.finish().await;
}
