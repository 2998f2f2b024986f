//! The version that began an execution decides by which rules it is replayed, so it must come back
//! as it was stored.

use duroxide_core::model::version::BUILD_VERSION;
use duroxide_core::model::{Event, EventKind};
use semver::Version;

use super::scene::{HOUR, SECTION, fired, scene, signal};
use crate::provider_validation::ProviderFactory;
use crate::provider_validation::lab::{Promise, lab};
use crate::provider_validation::words::*;
use crate::providers::TurnCommit;
use crate::{Either2, OrchestrationContext};

/// Under the rules of this version a lost race keeps its place until the turn ends.
const OLD: &str = "0.1.30";

/// Stamps come back unchanged, also ones that are no version.
pub async fn test_queue_replay_version_stamp_roundtrip<F: ProviderFactory>(factory: &F) {
    let says = "the version stamp of an event comes back exactly as it was stored";
    for stamp in [OLD, BUILD_VERSION, "0.1.31-rc.1+build.5", "", "no version"] {
        let lab = lab(factory, Promise { rule: "R2.5", says, section: SECTION }).await;
        let begun = stamped(stamp, first_commit("a").event(subscribed(2)));
        let stored = begun.history_delta.clone();
        lab.begin_as("a", begun).await;
        lab.same("the events by read", lab.ok("read", lab.read("a").await), &stored[..]);
        let read = lab.ok("read_with_execution", lab.read_with_execution("a", 1).await);
        lab.same("the events by read_with_execution", read, &stored[..]);
        lab.send(queue_message("a", "one")).await;
        let turn = lab.turn_of("a").await;
        lab.same("the events by fetch_orchestration_item", turn.item.history, &stored[..]);
    }
}

/// An execution keeps the race rules it began with, on whatever library it goes on.
pub async fn test_legacy_queue_race_decision_preserved<F: ProviderFactory>(factory: &F) {
    let says = "an execution keeps the race rules of the version that began it";
    // Only by the old rules the dequeue that lost holds on to the message, and the next loses too.
    for (stamp, outcome) in [(OLD, "timer timer"), (BUILD_VERSION, "timer one")] {
        let scene = scene(factory, ("R3.92", says), two_races).await;
        let timer = |id| event(id, EventKind::TimerCreated { fire_at_ms: u64::MAX });
        let begun = first_commit("a").event(subscribed(2)).event(subscribed(3));
        let begun = begun.event(timer(4)).event(timer(5));
        scene.lab.begin_as("a", stamped(stamp, begun)).await;
        scene.batch([fired(4), queue_message("a", "one"), fired(5)]).await;
        scene.send([signal("end", "")]).await;
        let ended = scene.outcome("a").await;
        let what = format!("what came of the races of an execution begun by {stamp}");
        scene.lab.same(&what, ended, Ok(outcome.to_owned()));
        scene.replays(1, &format!("Completed({outcome:?})")).await;
        let first = scene.execution(1).await.first().map(|event| event.duroxide_version.clone());
        scene.lab.same("its stamp", first.as_deref(), Some(stamp));
    }
}

/// Two dequeues (2, 3), each against a timer (4, 5), one race after the other.
async fn two_races(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let (first, second) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
    let (soon, later) = (ctx.schedule_timer(HOUR), ctx.schedule_timer(HOUR));
    let mut won = Vec::new();
    for (message, timer) in [(first, soon), (second, later)] {
        won.push(match ctx.select2(message, timer).await {
            Either2::First(text) => text,
            Either2::Second(()) => "timer".to_owned(),
        });
    }
    ctx.schedule_wait("end").await;
    Ok(won.join(" "))
}

fn subscribed(event_id: u64) -> Event {
    event(event_id, EventKind::QueueSubscribed { name: "q".into() })
}

/// The same commit, made by another version.
fn stamped(stamp: &str, mut commit: TurnCommit) -> TurnCommit {
    commit.metadata.pinned_duroxide_version = Version::parse(stamp).ok();
    for event in &mut commit.history_delta {
        event.duroxide_version = stamp.into();
    }
    commit
}
