//! The default bodies of the contract: what a provider gets that implements only the required
//! methods (R8.130 – R8.141).

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod plain_store;

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use duroxide_core::model::{ErrorDetails, Event, EventKind, OrchestrationStatus};
use duroxide_core::provider::{
    DeleteRefused, Provider, ProviderAdmin, ProviderError, RejectedCommit, TagFilter, TurnCommit,
};

use plain_store::{PlainAdmin, PlainStore};

/// The result of a future that never has to wait.
fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the future waits"),
    }
}

fn event(event_id: u64, kind: EventKind) -> Event {
    Event::with_event_id(event_id, "a", 1, None, kind)
}

fn started() -> EventKind {
    EventKind::OrchestrationStarted {
        name: "Order".into(),
        version: "1.0.0".into(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    }
}

fn history(kinds: impl IntoIterator<Item = EventKind>) -> Vec<Event> {
    kinds.into_iter().zip(1..).map(|(kind, event_id)| event(event_id, kind)).collect()
}

fn status_of(kinds: impl IntoIterator<Item = EventKind>) -> OrchestrationStatus {
    let store = PlainStore { history: Ok(history(kinds)), ..PlainStore::default() };
    now(store.read_status("a")).unwrap()
}

#[test]
fn r6_20_r6_21_r8_133_the_last_terminal_event_decides() {
    let custom_status = None;
    let custom_status_version = 0;
    assert_eq!(status_of([]), OrchestrationStatus::NotFound); // R6.24
    let running = OrchestrationStatus::Running {
        custom_status: custom_status.clone(),
        custom_status_version,
    };
    assert_eq!(status_of([started()]), running);
    let timer = EventKind::TimerCreated { fire_at_ms: 1 };
    let done = EventKind::OrchestrationCompleted { output: "7".into() };
    assert_eq!(
        status_of([started(), timer, done]),
        OrchestrationStatus::Completed {
            output: "7".into(),
            custom_status: custom_status.clone(),
            custom_status_version
        }
    );
    let details = ErrorDetails::cancelled("enough");
    let failed = EventKind::OrchestrationFailed { details: details.clone() };
    assert_eq!(
        status_of([started(), failed]),
        OrchestrationStatus::Failed { details, custom_status, custom_status_version }
    );
}

#[test]
fn r6_22_between_two_executions_an_instance_is_running() {
    let next = EventKind::OrchestrationContinuedAsNew { input: "2".into() };
    assert!(matches!(status_of([started(), next]), OrchestrationStatus::Running { .. }));
}

#[test]
fn r6_23_the_custom_status_is_decoration() {
    let mut store = PlainStore {
        history: Ok(history([started()])),
        custom_status: Ok(Some((Some("busy".into()), 3))),
        ..PlainStore::default()
    };
    assert_eq!(
        now(store.read_status("a")),
        Ok(OrchestrationStatus::Running {
            custom_status: Some("busy".into()),
            custom_status_version: 3
        })
    );
    store.custom_status = Err(ProviderError::retryable("get_custom_status", "busy"));
    assert_eq!(
        now(store.read_status("a")),
        Ok(OrchestrationStatus::Running { custom_status: None, custom_status_version: 0 })
    );
}

#[test]
fn r6_25_an_unreadable_history_is_an_error() {
    let error = ProviderError::permanent("read", "row unreadable");
    let store = PlainStore { history: Err(error.clone()), ..PlainStore::default() };
    assert_eq!(now(store.read_status("a")), Err(error));
}

#[test]
fn r8_130_a_fetched_turn_brings_its_history() {
    let store =
        PlainStore { history: Ok(history([started(), started()])), ..PlainStore::default() };
    let turn = now(store.fetch_turn(Duration::ZERO, Duration::ZERO, None)).unwrap().unwrap();
    assert!(turn.history_included);
    assert_eq!((turn.last_event_id, turn.item.history.len()), (2, 2));
    assert_eq!((turn.lock_token.as_str(), turn.attempt_count), ("token", 1));
    let turn = now(PlainStore::default().fetch_turn(Duration::ZERO, Duration::ZERO, None));
    assert_eq!(turn.unwrap().unwrap().last_event_id, 0);
}

#[test]
fn r8_138_r8_139_several_are_one_unless_none_are_wanted() {
    let (store, at_once) = (PlainStore::default(), Duration::ZERO);
    for (max, expected) in [(0, 0), (1, 1), (7, 1)] {
        let turns = now(store.fetch_turns(at_once, at_once, None, max)).unwrap();
        assert_eq!(turns.len(), expected);
        let tags = TagFilter::DefaultOnly;
        let work = now(store.fetch_work_items(at_once, at_once, None, &tags, max)).unwrap();
        assert_eq!(work.len(), expected);
    }
}

#[test]
fn r8_131_a_history_is_read_from_an_event_on() {
    let store = PlainStore {
        history: Ok(history(std::iter::repeat_with(started).take(5))),
        ..PlainStore::default()
    };
    for (from, limit, expected) in [
        (0, None, vec![1, 2, 3, 4, 5]),
        (3, None, vec![3, 4, 5]),
        (3, Some(2), vec![3, 4]),
        (6, None, vec![]),
        (1, Some(0), vec![]),
    ] {
        let events = now(store.read_history_from("a", 1, from, limit)).unwrap();
        assert_eq!(events.iter().map(|e| e.event_id).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn r8_132_l48_a_rejected_commit_comes_back_whole() {
    let commit = TurnCommit {
        execution_id: 4,
        history_delta: history([started()]),
        ..TurnCommit::default()
    };
    let store = PlainStore::default();
    now(store.commit_turn("token", commit.clone())).unwrap();
    assert_eq!(*store.acked.lock().unwrap(), [4]);

    let error = ProviderError::retryable("ack", "busy");
    let store = PlainStore { ack: Err(error.clone()), ..PlainStore::default() };
    let RejectedCommit { error: found, commit: back } =
        now(store.commit_turn("token", commit.clone())).unwrap_err();
    assert_eq!((found, back.execution_id), (error, 4));
    assert_eq!(back.history_delta, commit.history_delta);
}

#[test]
fn r8_134_r8_135_a_plain_store_tells_neither_commits_nor_time() {
    let store = PlainStore::default();
    assert_eq!(now(store.wait_for_commit("a", 0, Duration::from_secs(60))), None);
    assert_eq!(store.store_time_ms(), None);
    assert_eq!((store.name(), store.version()), ("unknown", "0.0.0"));
    assert!(store.as_management_capability().is_none());
}

#[test]
fn r6_63_r8_136_a_refusal_is_read_off_the_text() {
    let refused = |message: &str| {
        let error = ProviderError::permanent("delete", message);
        let admin = PlainAdmin { deletion: Err(error), ..PlainAdmin::default() };
        now(admin.try_delete_instance("a", false))
    };
    for (message, refusal) in [
        ("Instance a NOT FOUND", DeleteRefused::NotFound),
        ("not found, still running", DeleteRefused::NotFound),
        ("a is Still Running, a sub-orchestration", DeleteRefused::StillRunning),
        ("a is a Sub-Orchestration", DeleteRefused::SubOrchestration),
        ("please delete the ROOT", DeleteRefused::SubOrchestration),
    ] {
        assert!(matches!(refused(message), Ok(Err(found)) if found == refusal), "{message}");
    }
    assert_eq!(refused("disk full").unwrap_err().message, "disk full");
    let deleted = now(PlainAdmin::default().try_delete_instance("a", false)).unwrap().unwrap();
    assert_eq!(deleted.instances_deleted, 3);
}

#[test]
fn r6_61_the_texts_of_refusals_are_recognised_again() {
    for refusal in
        [DeleteRefused::NotFound, DeleteRefused::StillRunning, DeleteRefused::SubOrchestration]
    {
        let admin = PlainAdmin { deletion: Err(refusal.into_error("a")), ..PlainAdmin::default() };
        let answer = now(admin.try_delete_instance("a", false)).unwrap();
        assert_eq!(answer.unwrap_err(), refusal);
    }
}

#[test]
fn r6_60_r6_61_a_deletion_takes_the_tree_and_starts_at_the_root() {
    let admin = PlainAdmin::default();
    now(admin.delete_instance("a", false)).unwrap();
    assert_eq!(*admin.deleted.lock().unwrap(), ["a", "a1", "a2", "a11"]);
    let tree = now(admin.get_instance_tree("a")).unwrap();
    assert_eq!((tree.root_id.as_str(), tree.size(), tree.is_root_only()), ("a", 4, false));

    let error = now(admin.delete_instance("a1", true)).unwrap_err();
    assert!(!error.retryable && error.message.contains("sub-orchestration"), "{error}");
    assert_eq!(
        now(admin.try_delete_instance("a1", true)).unwrap().unwrap_err(),
        DeleteRefused::SubOrchestration
    );
}

#[test]
fn r8_141_running_instances_are_part_of_the_totals() {
    let store = PlainAdmin::default();
    assert_eq!(now(store.count_running_instances()), Ok(3));
}

#[test]
fn r8_137_a_plain_store_has_no_dead_letters() {
    assert_eq!(now(PlainAdmin::default().list_dead_letters()), Ok(Vec::new()));
}

#[test]
fn r8_140_a_store_that_says_nothing_takes_one_turn_at_a_time() {
    let store = PlainStore::default();
    assert!(!store.commits_successors());
    let next = TurnCommit { execution_id: 2, ..TurnCommit::default() };
    let successor = Some(Box::new(next));
    let both = TurnCommit { execution_id: 1, successor, ..TurnCommit::default() };
    let RejectedCommit { error, commit } = now(store.commit_turn("t", both)).unwrap_err();
    assert!(!error.is_retryable() && error.message.contains("commits_successors"), "{error}");
    assert!(commit.successor.is_some());
}

#[test]
fn r8_140_turns_that_go_together_follow_one_another() {
    let turn = |execution_id, successor: Option<TurnCommit>| {
        let successor = successor.map(Box::new);
        TurnCommit { execution_id, successor, ..TurnCommit::default() }
    };
    let numbers = |commit: &TurnCommit| {
        commit.turns().map(|turns| turns.iter().map(|turn| turn.execution_id).collect::<Vec<_>>())
    };
    assert_eq!(numbers(&turn(4, None)).unwrap(), [4]);
    assert_eq!(numbers(&turn(4, Some(turn(5, Some(turn(6, None)))))).unwrap(), [4, 5, 6]);
    for wrong in [3, 4, 6] {
        let refusal = numbers(&turn(4, Some(turn(wrong, None)))).unwrap_err();
        assert!(refusal.message().contains("does not follow execution 4"), "{wrong}");
    }
    assert!(numbers(&turn(u64::MAX, Some(turn(0, None)))).is_err());
}
