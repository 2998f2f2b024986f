//! Commits tell of the timers that nothing waits for any more (R3.104e, R8.151).

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::WorkItem;
use duroxide::providers::memory::MemoryProvider;
use duroxide::runtime::WarmMode;
use duroxide::{Event, EventKind, OrchestrationContext};

use crate::support::faults::{Faults, FaultyProvider};
use crate::support::{WorldBuilder, world_on};

const AN_HOUR: Duration = Duration::from_secs(3600);

fn on_store(faults: &Faults, mode: WarmMode) -> WorldBuilder {
    faults.take_direct_turns();
    faults.take_timer_turns();
    faults.take_successors();
    world_on(Arc::new(MemoryProvider::new()))
        .through(|store| FaultyProvider::wrap(store, faults))
        .echo("A")
        .tuning(|tuning| tuning.warm.mode = mode)
}

/// Execution and number of the timers that commits have told of.
fn told(faults: &Faults) -> Vec<(u64, u64)> {
    let told = faults.dropped_timers();
    let timer = |timer: &WorkItem| match timer {
        WorkItem::TimerFired { instance, execution_id, id, .. } if instance == "i" => {
            (*execution_id, *id)
        }
        other => panic!("{other:?}"),
    };
    told.iter().map(timer).collect()
}

/// Loses a timer in a turn of each kind; none of them is waited for at the end.
async fn loses(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let timer = || ctx.schedule_timer(AN_HOUR);
    drop(timer());
    ctx.select2(ctx.schedule_activity("A", "x"), timer()).await;
    ctx.select2(ctx.schedule_timer(Duration::from_secs(2)), timer()).await;
    ctx.select2(ctx.schedule_wait("go"), timer()).await;
    if ctx.execution_id() == 1 {
        return ctx.continue_as_new(input).await;
    }
    ctx.schedule_wait("end").await;
    Ok(input)
}

#[tokio::test(start_paused = true)]
async fn r3_104e_every_way_to_commit_a_turn_tells_of_dropped_timers() {
    for mode in [WarmMode::On, WarmMode::Off, WarmMode::Compare] {
        let faults = Faults::default();
        let world = on_store(&faults, mode).orchestration("Loses", loses).start().await;
        world.begin("i", "Loses", "x").await;
        for (execution, event) in [(1, "go"), (2, "go"), (2, "end")] {
            let waits = |seen: &Event| {
                seen.execution_id == execution
                    && matches!(&seen.kind, EventKind::ExternalSubscribed { name } if name == event)
            };
            world.until("i", |history| history.iter().any(waits)).await;
            world.client.raise_event("i", event, "").await.unwrap();
        }
        world.output("i").await;
        // The last of the first execution was dropped in the turn that ended it.
        let first = [(1, 2), (1, 4), (1, 7)];
        let second = [(2, 2), (2, 4), (2, 7), (2, 10)];
        assert_eq!(told(&faults), [&first[..], &second].concat(), "{mode:?}");
        assert_eq!(faults.calls("commit_direct_turn") > 0, mode != WarmMode::Off);
        assert_eq!(faults.calls("commit_timer_turn") > 0, mode != WarmMode::Off);
        world.finish().await;
    }
}
