//! Each invariant, kept and broken.

use std::sync::Arc;
use std::time::Duration;

use duroxide_core::model::{ErrorDetails, Event, EventKind, WorkItem};

use super::{check_invariants, check_invariants_in_flight};
use crate::providers::memory::MemoryProvider;
use crate::providers::{Provider, ProviderAdmin, PruneOptions, TurnCommit};

struct Lab(Arc<MemoryProvider>);

impl Lab {
    fn new() -> Self {
        Self(Arc::new(MemoryProvider::new()))
    }

    /// Commits one turn with these events, numbered on, and the metadata they call for.
    async fn turn(&self, instance: &str, execution_id: u64, kinds: Vec<(Option<u64>, EventKind)>) {
        let first = self.0.read_with_execution(instance, execution_id).await.unwrap().len() as u64;
        let number = |(position, (source, kind)): (usize, (Option<u64>, EventKind))| {
            let event_id = first + position as u64 + 1;
            Event::with_event_id(event_id, instance, execution_id, source, kind)
        };
        let events = kinds.into_iter().enumerate().map(number).collect();
        self.commit(instance, execution_id, events).await;
    }

    async fn commit(&self, instance: &str, execution_id: u64, events: Vec<Event>) {
        let mut commit = TurnCommit { execution_id, ..TurnCommit::default() };
        let ended = events.iter().find_map(|event| match &event.kind {
            EventKind::OrchestrationCompleted { output } => Some(("Completed", output.clone())),
            EventKind::OrchestrationFailed { details } => {
                Some(("Failed", details.display_message()))
            }
            EventKind::OrchestrationContinuedAsNew { input } => {
                Some(("ContinuedAsNew", input.clone()))
            }
            _ => None,
        });
        if let Some((status, output)) = ended {
            commit.metadata.status = Some(status.into());
            commit.metadata.output = Some(output);
        }
        commit.metadata.orchestration_name = Some("Orch".into());
        commit.metadata.orchestration_version = Some("1.0.0".into());
        commit.history_delta = events;
        self.commit_raw(instance, commit).await;
    }

    async fn commit_raw(&self, instance: &str, commit: TurnCommit) {
        let start = WorkItem::StartOrchestration {
            instance: instance.into(),
            orchestration: "Orch".into(),
            input: String::new(),
            version: None,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: 1,
        };
        self.0.enqueue_for_orchestrator(start, None).await.unwrap();
        let lock = Duration::from_secs(5);
        let turn = self.0.fetch_turn(lock, Duration::ZERO, None).await.unwrap().unwrap();
        self.0.commit_turn(&turn.lock_token, commit).await.unwrap();
    }

    /// The violations, joined; empty if there are none.
    async fn violations(&self) -> String {
        check_invariants(&*self.0).await.err().unwrap_or_default().join("\n")
    }
}

fn started() -> (Option<u64>, EventKind) {
    let kind = EventKind::OrchestrationStarted {
        name: "Orch".into(),
        version: "1.0.0".into(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    (None, kind)
}

fn scheduled() -> (Option<u64>, EventKind) {
    let (name, input) = ("Act".into(), String::new());
    (None, EventKind::ActivityScheduled { name, input, session_id: None, tag: None })
}

fn answered(source: u64) -> (Option<u64>, EventKind) {
    (Some(source), EventKind::ActivityCompleted { result: "ok".into() })
}

fn cancelled(source: u64) -> (Option<u64>, EventKind) {
    (Some(source), EventKind::ActivityCancelRequested { reason: "dropped_future".into() })
}

fn timer() -> (Option<u64>, EventKind) {
    (None, EventKind::TimerCreated { fire_at_ms: 1 })
}

fn child(id: &str) -> (Option<u64>, EventKind) {
    let (name, instance, input) = ("Child".into(), id.into(), String::new());
    (None, EventKind::SubOrchestrationScheduled { name, instance, input })
}

fn set(key: &str, value: &str) -> (Option<u64>, EventKind) {
    let (key, value) = (key.into(), value.into());
    (None, EventKind::KeyValueSet { key, value, last_updated_at_ms: 0 })
}

fn completed() -> (Option<u64>, EventKind) {
    (None, EventKind::OrchestrationCompleted { output: "out".into() })
}

fn failed() -> (Option<u64>, EventKind) {
    (None, EventKind::OrchestrationFailed { details: ErrorDetails::cancelled("why") })
}

fn continued() -> (Option<u64>, EventKind) {
    (None, EventKind::OrchestrationContinuedAsNew { input: "next".into() })
}

/// Checks one history of instance `a` and compares what is found.
async fn check(kinds: Vec<(Option<u64>, EventKind)>, expected: &str) {
    let lab = Lab::new();
    lab.turn("a", 1, kinds).await;
    assert_eq!(lab.violations().await, expected);
}

#[tokio::test]
async fn good_histories_pass() {
    check(vec![started()], "").await;
    check(vec![started(), scheduled(), answered(2), completed()], "").await;
    check(vec![started(), scheduled(), answered(2), cancelled(2), failed()], "").await; // R3.102
    check(vec![started(), scheduled(), completed(), cancelled(2)], "").await; // R1.35
    check(vec![started(), set("k", "v"), timer(), child("sub::4")], "").await;
    assert!(Lab::new().violations().await.is_empty());
}

#[tokio::test]
async fn starts_and_ends() {
    let at = "instance a, execution 1, event";
    check(vec![scheduled()], &format!("{at} 1: the history does not begin with its start")).await;
    check(vec![started(), started()], &format!("{at} 2: is another start")).await;
    check(vec![started(), completed(), failed()], &format!("{at} 3: is another end")).await; // L5
    check(vec![started(), completed(), timer()], &format!("{at} 3: follows the end")).await;
}

#[tokio::test]
async fn answers_point_at_what_they_answer() {
    let at = "instance a, execution 1, event";
    check(
        vec![started(), answered(3), scheduled()],
        &format!("{at} 2: points at event 3, no earlier Activity"),
    )
    .await;
    check(
        vec![started(), timer(), answered(2)],
        &format!("{at} 3: points at event 2, no earlier Activity"),
    )
    .await;
    let nothing = (None, EventKind::TimerFired { fire_at_ms: 1 });
    check(vec![started(), nothing], &format!("{at} 2: points at no schedule event")).await;
    check(
        vec![started(), scheduled(), answered(2), answered(2)],
        &format!("{at} 4: answers event 2 again"),
    )
    .await;
    check(
        vec![started(), scheduled(), cancelled(2), cancelled(2)],
        &format!("{at} 4: cancels event 2 again"),
    )
    .await;
}

#[tokio::test]
async fn ids_have_no_gaps_but_the_known_ones() {
    let numbered = |ids: &[u64], last: (Option<u64>, EventKind)| {
        let mut kinds = vec![started()];
        kinds.extend((2..ids.len()).map(|_| scheduled()));
        kinds.push(last);
        let pairs = ids.iter().zip(kinds);
        pairs.map(|(id, (s, kind))| Event::with_event_id(*id, "a", 1, s, kind)).collect::<Vec<_>>()
    };
    for (ids, last, expected) in [
        (vec![1, 2, 4], completed(), "instance a, execution 1, event 4: should have id 3"),
        (vec![1, 2, 4], continued(), ""), // R2.12
        (vec![1, 3, 5], continued(), "instance a, execution 1, event 5: should have id 4"),
        (vec![1, 2, 99_999], failed(), ""), // R2.15
    ] {
        let lab = Lab::new();
        lab.commit("a", 1, numbered(&ids, last)).await;
        assert_eq!(lab.violations().await, expected, "{ids:?}");
    }
}

#[tokio::test]
async fn events_stay_with_their_owner() {
    let lab = Lab::new();
    lab.commit("a", 1, vec![Event::with_event_id(1, "b", 2, None, started().1)]).await;
    let expected = "instance a, execution 1, event 1: says it belongs to instance b, execution 2";
    assert_eq!(lab.violations().await, expected);
}

#[tokio::test]
async fn the_row_agrees_with_the_history() {
    let lab = Lab::new();
    lab.turn("a", 1, vec![started()]).await;
    let mut wrong = TurnCommit { execution_id: 1, ..TurnCommit::default() };
    wrong.metadata.status = Some("Completed".into());
    lab.commit_raw("a", wrong).await;
    let violations = lab.violations().await;
    assert!(violations.contains(
        "instance a, execution 1: is stored as Completed with output None, but its history says \
         Running with None"
    ));
    assert!(violations.contains("is Running, but its time of completion is Some("));
}

#[tokio::test]
async fn executions_follow_each_other() {
    let lab = Lab::new();
    for number in 1..=2 {
        lab.turn("a", number, vec![started(), continued()]).await;
    }
    lab.turn("a", 3, vec![started()]).await;
    assert_eq!(lab.violations().await, "");
    let keep = PruneOptions { keep_last: Some(2), ..PruneOptions::default() };
    lab.0.prune_executions("a", keep).await.unwrap();
    assert_eq!(lab.violations().await, "", "pruned from below");

    lab.turn("a", 5, vec![started()]).await;
    assert_eq!(
        lab.violations().await,
        "instance a: is in execution 5, but its executions are [2, 3, 5]\n\
         instance a, execution 3: is Running, but execution 5 follows"
    );
}

#[tokio::test]
async fn values_are_what_histories_add_up_to() {
    let lab = Lab::new();
    let clear = (None, EventKind::KeyValueCleared { key: "k".into() });
    lab.turn("a", 1, vec![started(), set("k", "1"), set("l", "2"), continued()]).await;
    lab.turn("a", 2, vec![started(), clear, set("m", "3")]).await;
    assert_eq!(lab.violations().await, "");
    let unapplied = Event::with_event_id(4, "a", 2, None, EventKind::KeyValuesCleared);
    lab.0.append_with_execution("a", 2, vec![unapplied]).await.unwrap(); // Behind the store's back.
    let expected = r#"instance a: has the values {"l": "2", "m": "3"}, but its histories tell {}"#;
    assert_eq!(lab.violations().await, expected);
    lab.0.prune_executions("a", PruneOptions::default()).await.unwrap();
    assert_eq!(lab.violations().await, "", "nothing can be said after pruning");
}

#[tokio::test]
async fn results_of_children_arrive() {
    let lab = Lab::new();
    lab.turn("p", 1, vec![started(), child("sub::2"), child("named")]).await;
    lab.turn("p::sub::2", 1, vec![started(), completed()]).await;
    lab.turn("named", 1, vec![started()]).await; // Still runs.
    let expected = "instance p, execution 1, event 2: child p::sub::2 is Completed, but that never \
                    arrived";
    assert_eq!(lab.violations().await, expected);
    check_invariants_in_flight(&*lab.0).await.unwrap(); // It may be on its way.
    let result = (Some(2), EventKind::SubOrchestrationCompleted { result: "out".into() });
    lab.turn("p", 1, vec![result]).await;
    assert_eq!(lab.violations().await, "");
    lab.turn("named", 1, vec![failed()]).await;
    assert_ne!(lab.violations().await, "");
    lab.turn("p", 1, vec![completed()]).await;
    assert_eq!(lab.violations().await, "", "an ended parent does not want to know");
}

#[tokio::test]
async fn unreadable_histories_are_reported() {
    let lab = Lab::new();
    lab.turn("a", 1, vec![started()]).await;
    lab.0.corrupt_history("a", "garbage");
    let violations = lab.violations().await;
    assert!(violations.starts_with("instance a, execution 1: the history is unreadable: "));
}
