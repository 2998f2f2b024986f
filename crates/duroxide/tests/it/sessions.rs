//! Sessions as the runtime serves them: one owner at a time, by slot or by node (chapter 7.8).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use duroxide::OrchestrationContext;
use duroxide::providers::memory::{MemoryProvider, SessionSnapshot};
use tokio::sync::Barrier;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep};

use crate::support::{Door, World, WorldBuilder, world, world_on};

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// An activity that answers with the slot it runs on.
fn telling_slots(world: WorldBuilder) -> WorldBuilder {
    world.activity("Where", |ctx, _| async move { Ok(ctx.worker_id().to_owned()) })
}

/// Calls "Where" on each session of the comma-separated input, all at once.
async fn ask_all(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let calls = input.split(',').map(|id| ctx.schedule_activity_on_session("Where", id, id));
    let answers = ctx.join(calls.collect()).await;
    Ok(answers.into_iter().collect::<Result<Vec<String>, String>>()?.join(" "))
}

fn session(world: &World, id: &str) -> Option<SessionSnapshot> {
    world.memory.snapshot().sessions.get(id).cloned()
}

#[tokio::test]
async fn r7_67_r7_70_a_session_is_served_by_one_slot() {
    let world = telling_slots(world())
        .orchestration("Main", ask_all)
        .options(|options| options.worker_concurrency = 4)
        .start()
        .await;
    let answer = world.run("m", "Main", "s,s,s,s,s,s").await;
    let slots: HashSet<&str> = answer.split(' ').collect();
    assert_eq!(slots.len(), 1, "{answer}");
    let later = world.run("n", "Main", "s,s,s").await;
    assert!(later.split(' ').all(|slot| slots.contains(slot)), "{later}");
    world.finish().await;
}

/// An activity of which `size` must run at the same time before any of them ends.
fn meeting(world: WorldBuilder, size: usize) -> WorldBuilder {
    let barrier = Arc::new(Barrier::new(size));
    world.activity("Where", move |ctx, _| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            Ok(ctx.worker_id().to_owned())
        }
    })
}

#[tokio::test]
async fn r7_70_different_sessions_run_at_the_same_time() {
    let world = meeting(world(), 2).orchestration("Main", ask_all).start().await;
    let answer = world.run("m", "Main", "a,b").await;
    let (a, b) = answer.split_once(' ').unwrap();
    assert_ne!(a, b);
    world.finish().await;
}

#[tokio::test]
async fn r7_70_a_session_owned_by_a_node_may_run_on_several_slots_at_once() {
    let world = meeting(world(), 3)
        .orchestration("Main", ask_all)
        .options(|options| {
            options.worker_concurrency = 3;
            options.worker_node_id = Some("n1".to_owned());
        })
        .start()
        .await;
    let answer = world.run("m", "Main", "s,s,s").await;
    let slots: HashSet<&str> = answer.split(' ').collect();
    assert_eq!(slots, HashSet::from(["work-0-n1", "work-1-n1", "work-2-n1"]));
    assert_eq!(session(&world, "s").unwrap().owner.as_deref(), Some("n1"));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_70_with_owners_by_slot_a_session_never_runs_twice_at_once() {
    let door = Door::default();
    let world = world()
        .behind("Where", &door)
        .orchestration("Main", ask_all)
        .options(|options| options.worker_concurrency = 3)
        .start()
        .await;
    world.begin("m", "Main", "s,s,s").await;
    for _ in 0..3 {
        door.knock().await;
        sleep(seconds(100)).await;
        assert!(!door.has_knock());
        door.open();
    }
    world.output("m").await;
    world.finish().await;
}

/// A node with a name, on a shared store.
async fn node(memory: &Arc<MemoryProvider>, name: &str) -> World {
    let node_id = name.to_owned();
    telling_slots(world_on(Arc::clone(memory)))
        .patient()
        .orchestration("Main", ask_all)
        .options(|options| options.worker_node_id = Some(node_id))
        .start()
        .await
}

#[tokio::test(start_paused = true)]
async fn r7_67_r7_72_a_session_stays_with_its_node_and_moves_when_the_node_goes() {
    let memory = Arc::new(MemoryProvider::new());
    let first = node(&memory, "n1").await;
    assert!(first.run("a", "Main", "s").await.ends_with("-n1"));
    let second = node(&memory, "n2").await;
    for instance in ["b", "c", "d"] {
        sleep(seconds(60)).await; // Twice a lease: R7.71 keeps it.
        assert!(second.run(instance, "Main", "s,s").await.split(' ').all(|w| w.ends_with("-n1")));
    }
    first.finish().await;
    let began = Instant::now();
    assert!(second.run("e", "Main", "s").await.ends_with("-n2"));
    assert!(began.elapsed() <= seconds(30), "{:?}", began.elapsed()); // R8.83: its last lease
    second.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_71_sessions_are_kept_while_used_and_let_go_when_idle() {
    let world = telling_slots(world())
        .patient()
        .orchestration("Main", ask_all)
        .options(|options| options.worker_concurrency = 1)
        .start()
        .await;
    world.run("m", "Main", "s").await;
    let owner = session(&world, "s").unwrap().owner;
    sleep(seconds(299)).await;
    let kept = session(&world, "s").unwrap();
    assert!(kept.leased_until.is_some() && kept.owner == owner);
    // Not renewed when idle for 300 s; the lease ends, and the next sweep, at 600 s, removes it.
    sleep(seconds(40)).await;
    assert_eq!(session(&world, "s").unwrap().leased_until, None);
    sleep(seconds(300)).await;
    assert!(session(&world, "s").is_none());
    assert!(!world.run("n", "Main", "s").await.is_empty()); // R8.87: made anew
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_71_a_long_activity_keeps_its_session() {
    let door = Door::default();
    let world =
        world().patient().behind("Where", &door).orchestration("Main", ask_all).start().await;
    world.begin("m", "Main", "s").await;
    door.knock().await;
    let owner = session(&world, "s").unwrap().owner;
    sleep(seconds(3600)).await; // R8.85: its lock renewals count as use.
    let kept = session(&world, "s").unwrap();
    assert!(kept.leased_until.is_some() && kept.owner == owner);
    door.open();
    world.output("m").await;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_70_a_slot_looks_for_its_sessions_work_however_long_the_last_one_took() {
    let door = Door::default();
    let world =
        world().patient().behind("Where", &door).orchestration("Main", ask_all).start().await;
    world.begin("m", "Main", "s,s").await; // The second is for the slot that has the first.
    door.knock().await;
    sleep(seconds(400)).await; // Longer than an idle session lives.
    assert!(!door.has_knock());
    door.open();
    let began = Instant::now();
    door.knock().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    door.open();
    world.output("m").await;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_71_never_and_always_are_intervals_too() {
    for (idle, cleanup) in [(Duration::MAX, Duration::MAX), (seconds(300), Duration::ZERO)] {
        let world = telling_slots(world())
            .patient()
            .orchestration("Main", ask_all)
            .options(|options| {
                options.worker_concurrency = 1;
                options.session_idle_timeout = idle;
                options.session_cleanup_interval = cleanup;
            })
            .start()
            .await;
        for instance in ["a", "b", "c"] {
            assert!(!world.run(instance, "Main", "s").await.is_empty());
            sleep(seconds(60)).await;
        }
        assert!(session(&world, "s").unwrap().leased_until.is_some());
        world.finish().await;
    }
}

/// An activity that tells its session and waits at the door; one without a session just answers.
fn limited(
    max_sessions: usize,
    slots: usize,
    door: &Door,
) -> (WorldBuilder, UnboundedReceiver<String>) {
    let (tell, told) = unbounded_channel();
    let door = door.clone();
    let world = world()
        .patient()
        .activity("Where", move |ctx, _| {
            let (door, tell) = (door.clone(), tell.clone());
            async move {
                tell.send(ctx.session_id().unwrap().to_owned()).unwrap();
                door.pass().await;
                Ok(ctx.worker_id().to_owned())
            }
        })
        .echo("Plain")
        .orchestration("Main", ask_all)
        .orchestration(
            "Plain",
            |ctx, input| async move { ctx.schedule_activity("Plain", input).await },
        )
        .options(|options| {
            options.worker_concurrency = slots;
            options.max_sessions_per_runtime = max_sessions;
        });
    (world, told)
}

#[tokio::test(start_paused = true)]
async fn r7_68_at_the_limit_only_work_without_a_session_is_taken() {
    let door = Door::default();
    let (world, mut told) = limited(2, 4, &door);
    let world = world.start().await;
    world.begin("m", "Main", "a,b,c,a").await;
    let in_flight = HashSet::from([told.recv().await.unwrap(), told.recv().await.unwrap()]);
    assert_eq!(in_flight, HashSet::from(["a".to_owned(), "b".to_owned()]));
    assert_eq!(world.run("p", "Plain", "x").await, "Plain:x"); // R7.73
    sleep(seconds(60)).await;
    assert!(told.is_empty()); // Neither the third session nor more of the first two.
    let began = Instant::now();
    door.open();
    let next = told.recv().await.unwrap();
    assert!(next == "c" || next == "a", "{next}");
    assert!(began.elapsed() <= Duration::from_millis(300), "{:?}", began.elapsed());
    (0..3).for_each(|_| door.open());
    world.output("m").await;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_69_a_session_too_many_is_given_back_and_the_attempt_undone() {
    let door = Door::default();
    let (world, mut told) = limited(1, 2, &door);
    let world = world.start().await;
    // One slot owns a; it will wait for a's work while the other waits for anything.
    door.open();
    world.run("first", "Main", "a").await;
    told.recv().await.unwrap();
    sleep(seconds(1)).await; // The other asks for sessions again.
    world.begin("m", "Main", "a,b").await; // Both are fetched before either is counted.
    told.recv().await.unwrap();
    sleep(seconds(10)).await;
    assert!(told.is_empty());
    let waiting = world.memory.snapshot().worker_queue;
    let attempts: Vec<u32> = waiting.iter().map(|row| row.attempts).collect();
    assert_eq!(attempts.iter().sum::<u32>(), 1, "{attempts:?}");
    let fetched = world.runtime.metrics_snapshot().unwrap().worker_dispatcher_items_fetched;
    assert_eq!(fetched, 3); // One of them in vain.
    door.open();
    told.recv().await.unwrap();
    door.open();
    world.output("m").await;
    world.finish().await;
}

#[tokio::test]
async fn r7_72_a_session_survives_continue_as_new() {
    let world = telling_slots(world())
        .orchestration("Main", |ctx, input| async move {
            let here = ctx.schedule_activity_on_session("Where", "", "s").await?;
            match input.as_str() {
                "" => ctx.continue_as_new(here).await,
                before => Ok((before == here).to_string()),
            }
        })
        .options(|options| options.worker_concurrency = 4)
        .start()
        .await;
    assert_eq!(world.run("m", "Main", "").await, "true");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_73_nodes_with_and_without_room_for_sessions_cooperate() {
    let memory = Arc::new(MemoryProvider::new());
    let plain_only = telling_slots(world_on(Arc::clone(&memory)))
        .orchestration("Main", ask_all)
        .options(|options| {
            options.max_sessions_per_runtime = 0;
            options.worker_node_id = Some("plain".to_owned());
        })
        .start()
        .await;
    let node = node(&memory, "n1").await;
    let answer = plain_only.run("m", "Main", "s,t,s").await;
    assert!(answer.split(' ').all(|slot| slot.ends_with("-n1")), "{answer}");
    node.finish().await;
    plain_only.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_70_a_session_does_not_wait_behind_work_that_any_slot_could_do() {
    let world = world()
        .patient()
        .echo("A")
        .activity("Long", |_ctx, _| async move {
            tokio::time::sleep(seconds(4)).await;
            Ok(String::new())
        })
        .orchestration("Session", |ctx: OrchestrationContext, input| async move {
            ctx.schedule_activity_on_session("A", "1", input.clone()).await?;
            ctx.schedule_wait("go").await;
            ctx.schedule_activity_on_session("A", "2", input).await
        })
        .orchestration("Plain", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_activity("Long", "").await
        })
        .start()
        .await;
    for round in 0..6 {
        let (bound, plain) = (format!("s{round}"), format!("p{round}"));
        world.begin(&bound, "Session", &bound).await;
        world.until_kind(&bound, "ExternalSubscribed").await;
        world.begin(&plain, "Plain", "").await;
        tokio::time::sleep(seconds(1)).await;
        let began = tokio::time::Instant::now();
        world.client.raise_event(&bound, "go", "").await.unwrap();
        assert_eq!(world.output(&bound).await, "A:2");
        assert_eq!(began.elapsed().as_secs(), 0, "round {round}");
        world.output(&plain).await;
    }
    world.finish().await;
}
