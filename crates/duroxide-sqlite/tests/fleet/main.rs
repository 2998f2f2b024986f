//! Real processes on one file: a fleet under fire, crash points, and work that changes hands.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;
mod store;
mod crash_points;
mod fresh_file;
mod idle;
mod stopped;

use duroxide_fleet::torture::{Siege, lay_siege};
use duroxide_fleet::{Stage, alone, company, killers, reuse, takeover, zombies};
use store::SQLITE;

const ROUNDS: usize = 5;

/// What the processes of the tests run.
#[test]
#[ignore = "not a test: a process of the others"]
fn role() {
    duroxide_fleet::play(&SQLITE, async |stage: &Stage, role: &str| match role {
        "scenario" => crash_points::play_scenario(stage).await,
        "opener" => fresh_file::open_and_close(stage).await,
        "holder" => stopped::hold_the_write_lock(stage).await,
        other => panic!("no such role: {other}"),
    });
}

#[test]
fn torture_of_killed_and_stopped_workers_loses_nothing_and_doubles_nothing() {
    let _turn = alone();
    lay_siege(&SQLITE, Siege::of(3, 40));
    store::assert_short_log();
}

#[test]
fn another_process_starts_signals_cancels_deletes_and_reads() {
    let _turn = alone();
    company::another_process_starts_signals_cancels_deletes_and_reads(&SQLITE);
}

#[test]
fn two_runtimes_share_the_work() {
    let _turn = alone();
    company::two_runtimes_share_the_work(&SQLITE);
}

#[test]
fn timers_fire_in_either_process() {
    let _turn = alone();
    company::timers_fire_in_either_process(&SQLITE);
}

#[test]
fn a_timer_outlives_the_process_that_set_it() {
    let _turn = alone();
    company::a_timer_outlives_the_process_that_set_it(&SQLITE);
}

// R6.34: it need not poll for commits of other processes, the store looks out for them.
#[test]
fn a_client_in_another_process_is_told_of_the_end_at_once() {
    let _turn = alone();
    company::a_client_in_another_process_is_told_of_the_end_at_once(&SQLITE);
}

// Neither a client nor a runtime is told that the file is busy.
#[test]
fn four_busy_processes_do_not_get_in_each_others_way() {
    let _turn = alone();
    company::four_busy_processes_do_not_get_in_each_others_way(&SQLITE);
}

#[test]
fn a_survivor_takes_up_what_a_killed_process_held_before_its_leases_end() {
    let _turn = alone();
    takeover::by_a_survivor(&SQLITE, ROUNDS);
}

#[test]
fn a_restarted_process_takes_up_what_it_held_before_its_leases_end() {
    let _turn = alone();
    takeover::by_a_new_process(&SQLITE, ROUNDS);
}

// R8.81: a session has no owner once its owner is dead, also between two activities.
#[test]
fn a_session_without_work_in_hand_changes_hands_too() {
    let _turn = alone();
    takeover::of_a_session(&SQLITE, ROUNDS);
}

// R8.40, R8.41: of two processes that have a turn, the one whose lock is valid commits it.
#[test]
fn a_turn_that_was_taken_over_is_not_committed_by_its_first_holder() {
    let _turn = alone();
    zombies::late_turn(&SQLITE);
}

// R8.74: the same for activities.
#[test]
fn an_activity_that_was_taken_over_is_not_answered_by_its_first_holder() {
    let _turn = alone();
    zombies::late_activity(&SQLITE);
}

// An answer belongs to the input of its own life, though its name was used before.
#[test]
fn r6_68_names_are_used_again_while_workers_are_killed() {
    let _turn = alone();
    reuse::names_are_used_again(&SQLITE, 12);
}

// R7.28: what may have ended its process runs alone.
#[test]
fn code_that_ends_its_process_harms_no_other_instance() {
    let _turn = alone();
    killers::code_that_ends_its_process_harms_no_other_instance(&SQLITE);
}

// R8.146: what was tried is handed out alone, and behind what was not.
#[test]
fn r8_146_processes_that_end_at_once_harm_no_instance() {
    let _turn = alone();
    killers::processes_that_end_at_once_harm_no_instance(&SQLITE);
}
