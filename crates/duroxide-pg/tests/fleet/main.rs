//! Real processes on one database: a fleet under fire, and work that changes hands.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;
mod store;

use std::sync::MutexGuard;
use std::time::Duration;

use duroxide_fleet::torture::{Siege, lay_siege};
use duroxide_fleet::{Stage, alone, company, killers, reuse, takeover, zombies};
use store::POSTGRES;

const ROUNDS: usize = 2;

/// What the processes of the tests run.
#[test]
#[ignore = "not a test: a process of the others"]
fn role() {
    duroxide_fleet::play(&POSTGRES, async |_: &Stage, role: &str| panic!("no such role: {role}"));
}

/// The machine and a server; `None` if there is no server.
fn turn() -> Option<MutexGuard<'static, ()>> {
    support::has_server().then(alone)
}

#[test]
fn torture_of_killed_and_stopped_workers_loses_nothing_and_doubles_nothing() {
    let Some(_turn) = turn() else { return };
    lay_siege(&POSTGRES, Siege::of(4, 15));
}

#[test]
fn another_process_starts_signals_cancels_deletes_and_reads() {
    let Some(_turn) = turn() else { return };
    company::another_process_starts_signals_cancels_deletes_and_reads(&POSTGRES);
}

#[test]
fn two_runtimes_share_the_work() {
    let Some(_turn) = turn() else { return };
    company::two_runtimes_share_the_work(&POSTGRES);
}

#[test]
fn timers_fire_in_either_process() {
    let Some(_turn) = turn() else { return };
    company::timers_fire_in_either_process(&POSTGRES);
}

#[test]
fn a_timer_outlives_the_process_that_set_it() {
    let Some(_turn) = turn() else { return };
    company::a_timer_outlives_the_process_that_set_it(&POSTGRES);
}

// R6.34: it need not poll for commits of other processes, the store looks out for them.
#[test]
fn a_client_in_another_process_is_told_of_the_end_at_once() {
    let Some(_turn) = turn() else { return };
    company::a_client_in_another_process_is_told_of_the_end_at_once(&POSTGRES);
}

#[test]
fn four_busy_processes_do_not_get_in_each_others_way() {
    let Some(_turn) = turn() else { return };
    company::four_busy_processes_do_not_get_in_each_others_way(&POSTGRES);
}

#[test]
fn a_survivor_takes_up_what_a_killed_node_held_before_its_leases_end() {
    let Some(_turn) = turn() else { return };
    takeover::by_a_survivor(&POSTGRES, ROUNDS);
}

#[test]
fn a_restarted_node_takes_up_what_it_held_before_its_leases_end() {
    let Some(_turn) = turn() else { return };
    takeover::by_a_new_process(&POSTGRES, ROUNDS);
}

// R8.81: a session belongs to nobody once its owner is dead, also between two activities.
#[test]
fn a_session_without_work_in_hand_changes_hands_too() {
    let Some(_turn) = turn() else { return };
    takeover::of_a_session(&POSTGRES, ROUNDS);
}

// R8.40, R8.41: of two who have a turn, the one whose lock holds commits it.
#[test]
fn a_turn_that_was_taken_over_is_not_committed_by_its_first_holder() {
    let Some(_turn) = turn() else { return };
    zombies::late_turn(&POSTGRES);
}

// R8.74: the same for activities.
#[test]
fn an_activity_that_was_taken_over_is_not_answered_by_its_first_holder() {
    let Some(_turn) = turn() else { return };
    zombies::late_activity(&POSTGRES);
}

// An answer belongs to the input of its own life, though its name was used before.
#[test]
fn r6_68_names_are_used_again_while_workers_are_killed() {
    let Some(_turn) = turn() else { return };
    reuse::names_are_used_again(&POSTGRES, 12);
}

// R7.28: what ends its process is given up in the end, and nobody else is.
#[test]
fn code_that_ends_its_process_harms_no_other_instance() {
    let Some(_turn) = turn() else { return };
    killers::code_that_ends_its_process_harms_no_other_instance(&POSTGRES);
}

// R8.146: processes that are ended before they have run anything use up the attempts of nobody.
#[test]
fn r8_146_processes_that_end_at_once_harm_no_instance() {
    let Some(_turn) = turn() else { return };
    killers::processes_that_end_at_once_harm_no_instance(&POSTGRES);
}

// The same for some that have fetched: the first fetch takes a while here.
#[test]
fn r8_146_processes_that_end_with_their_first_fetches_harm_no_instance() {
    let Some(_turn) = turn() else { return };
    killers::processes_that_end_early_harm_no_instance(&POSTGRES, Duration::from_millis(80));
}
