//! Chooses operations: by dice, and by what has happened so far.

use std::time::Duration;

use semver::Version;

use super::commits;
use super::dice::{Dice, INSTANCES, KEYS, OWNERS, TAGS, VERSIONS};
use super::messages;
use super::ops::{Op, Token};
use super::world::{LONGEST_STEP_MS, World};
use crate::providers::{
    DispatcherCapabilityFilter, InstanceFilter, PruneOptions, SemverRange, SessionFetchConfig,
    TagFilter,
};

/// Chooses one operation.
type Choice = fn(&Dice, &World) -> Op;

/// How many of the first choices no sequence can do without.
const NEEDED: usize = 4;
/// How many sequences in a hundred do without one of the others: what is not deleted grows.
const MUTED_PERCENT: u64 = 35;

/// The choices that only some stores have; the last.
pub(super) const DIRECT_TURNS: usize = CHOICES.len() - 1;
pub(super) const TIMER_TURNS: usize = CHOICES.len() - 2;

/// How often what is chosen; the numbers are relative.
const CHOICES: &[(u64, Choice)] = &[
    (14, send),
    (20, fetch_turn),
    (30, commit),
    (8, advance),
    (4, abandon_turn),
    (4, renew_turn),
    (1, append),
    (6, queue_work),
    (14, fetch_work),
    (12, ack_work),
    (5, renew_work),
    (4, abandon_work),
    (4, renew_sessions),
    (2, clean_sessions),
    (4, read),
    (1, outlast_retention),
    (1, reopen),
    (3, delete),
    (2, delete_exactly),
    (2, delete_bulk),
    (3, prune),
    (2, prune_bulk),
    (25, commit_timers),
    (10, commit_direct),
];

/// Tokens that no store ever made.
const MADE_UP: &[&str] = &["", "made up", "it's", "lock_", "\0", "0"];

/// What a sequence consists of: by number, the choices it makes.
pub(super) fn menu(dice: &Dice) -> Vec<usize> {
    let all = 0..CHOICES.len();
    all.filter(|number| *number < NEEDED || !dice.chance(MUTED_PERCENT)).collect()
}

/// The operation that these dice say.
pub(super) fn next_op(dice: &Dice, world: &World) -> Op {
    let choices = || world.menu.iter().filter_map(|number| CHOICES.get(*number));
    let mut rest = dice.below(choices().map(|(weight, _)| weight).sum());
    let mut op = Op::OutlastRetention;
    for (weight, choose) in choices() {
        if rest < *weight {
            op = choose(dice, world);
            break;
        }
        rest -= weight;
    }
    match op.token() {
        // Without a lock there is little to do but to get one.
        Some(Token::MadeUp(_)) if dice.chance(90) => get_lock(&op, dice, world),
        _ => op,
    }
}

fn get_lock(op: &Op, dice: &Dice, world: &World) -> Op {
    match op {
        Op::Commit { .. } | Op::AbandonTurn { .. } | Op::RenewTurn { .. } => {
            if dice.chance(50) {
                send(dice, world)
            } else {
                fetch_turn(dice, world)
            }
        }
        _ => fetch_work(dice, world),
    }
}

/// Any version, both included.
pub(super) fn range(min: &str, max: &str) -> SemverRange {
    let version = |text: &str| Version::parse(text).unwrap_or(Version::new(0, 0, 0));
    SemverRange::new(version(min), version(max))
}

// ---- Turns --------------------------------------------------------------------------------------

fn send(dice: &Dice, world: &World) -> Op {
    let item = match dice.below(60) {
        0 => messages::activity(dice, &dice.instance(), 1),
        1..20 => messages::start(dice, &dice.instance()),
        _ => messages::any(dice, &known_instance(dice, world), world.now()),
    };
    Op::Send { item, delay: dice.delay() }
}

/// An instance that exists, as a rule.
fn known_instance(dice: &Dice, world: &World) -> String {
    let known = dice.pick(&world.instances).filter(|_| dice.chance(80));
    known.cloned().unwrap_or_else(|| dice.instance())
}

fn fetch_turn(dice: &Dice, world: &World) -> Op {
    Op::FetchTurn { lock: dice.lock(), filter: filter(dice, world), bare: dice.chance(50) }
}

fn filter(dice: &Dice, world: &World) -> Option<DispatcherCapabilityFilter> {
    let ranges = [
        range("0.0.0", "0.2.0"),
        range("0.2.0", "0.2.0"),
        range("0.2.0-alpha.9", "0.2.0-alpha.10"),
        range("0.2.0-alpha.2", "1.0.0-rc.1"),
        range("1.0.0", "18446744073709551615.0.0"),
        range("0.1.0", "0.1.0"),
    ];
    let supported_duroxide_versions = match dice.below(20) {
        0..12 => return None,
        12 if world.strange => Vec::new(),
        13 => ranges.into_iter().rev().collect(),
        _ => dice.pick(&ranges).cloned().into_iter().collect(),
    };
    Some(DispatcherCapabilityFilter { supported_duroxide_versions })
}

fn commit(dice: &Dice, world: &World) -> Op {
    let token = token(dice, world, true);
    let mut commit = commits::commit(dice, world, token);
    let bundled = dice.chance(50);
    let continues = commit.metadata.status.as_deref() == Some("ContinuedAsNew");
    if world.takes_successors && bundled && continues && dice.chance(70) {
        commits::add_successor(dice, world, token, &mut commit);
    }
    Op::Commit { token, commit: Box::new(commit), bundled }
}

fn abandon_turn(dice: &Dice, world: &World) -> Op {
    let token = token(dice, world, true);
    Op::AbandonTurn { token, delay: dice.pause(), ignore_attempt: dice.chance(40) }
}

fn renew_turn(dice: &Dice, world: &World) -> Op {
    Op::RenewTurn { token: token(dice, world, true), extend_for: dice.lock() }
}

fn append(dice: &Dice, world: &World) -> Op {
    if !world.strange {
        return read(dice, world);
    }
    let (instance, execution_id) = (known_instance(dice, world), 1 + dice.below(2));
    let events = commits::loose_events(dice, &instance, execution_id, world.now());
    Op::Append { instance, execution_id, events }
}

/// A token for a call about turns or about activities: most are valid.
fn token(dice: &Dice, world: &World, turns: bool) -> Token {
    let chosen = match dice.below(30) {
        0 => None,
        1 => world.locks_on(!turns).next().map(|(token, _)| token),
        2 | 3 => dice.favour(&world.expired_locks_on(turns)).copied(),
        4 => {
            let all: Vec<Token> = world.locks_on(turns).map(|(token, _)| token).collect();
            dice.favour(&all).copied()
        }
        _ => dice.favour(&world.live_locks_on(turns)).copied(),
    };
    chosen.unwrap_or_else(|| Token::MadeUp(dice.pick(MADE_UP).copied().unwrap_or_default()))
}

// ---- Activities ---------------------------------------------------------------------------------

fn queue_work(dice: &Dice, world: &World) -> Op {
    let instance = dice.instance();
    let item = match dice.below(20) {
        0 => messages::any(dice, &instance, world.now()),
        _ => messages::activity(dice, &instance, 1 + dice.below(4)),
    };
    Op::QueueWork { item }
}

fn fetch_work(dice: &Dice, _world: &World) -> Op {
    let tags = || dice.names(TAGS).into_iter().collect();
    let tags = match dice.below(12) {
        0 => TagFilter::None,
        1..3 => TagFilter::DefaultOnly,
        3..5 => TagFilter::Tags(tags()),
        5..7 => TagFilter::DefaultAnd(tags()),
        _ => TagFilter::Any,
    };
    let owner_id = dice.name(OWNERS);
    let session = SessionFetchConfig { owner_id, lock_timeout: dice.lock() };
    Op::FetchWork { lock: dice.lock(), session: dice.chance(75).then_some(session), tags }
}

fn ack_work(dice: &Dice, world: &World) -> Op {
    let token = token(dice, world, false);
    let completion = match dice.below(20) {
        0 => Some(messages::any(dice, &dice.instance(), world.now())),
        1..5 => None,
        _ => Some(messages::outcome_of(dice, world, token)),
    };
    Op::AckWork { token, completion }
}

fn commit_direct(dice: &Dice, world: &World) -> Op {
    let token = token(dice, world, false);
    Op::CommitDirect { token, turn: Box::new(commits::direct(dice, world, token)) }
}

fn commit_timers(dice: &Dice, world: &World) -> Op {
    match commits::fired(dice, world) {
        Some(turn) => Op::CommitTimers { turn: Box::new(turn) },
        None => fetch_turn(dice, world),
    }
}

fn renew_work(dice: &Dice, world: &World) -> Op {
    Op::RenewWork { token: token(dice, world, false), extend_for: dice.lock() }
}

fn abandon_work(dice: &Dice, world: &World) -> Op {
    let token = token(dice, world, false);
    Op::AbandonWork { token, delay: dice.pause(), ignore_attempt: dice.chance(40) }
}

fn renew_sessions(dice: &Dice, world: &World) -> Op {
    let idle = idle(dice, world);
    Op::RenewSessions { owners: dice.names(OWNERS), extend_for: dice.lock(), idle }
}

fn clean_sessions(dice: &Dice, world: &World) -> Op {
    Op::CleanSessions { idle: idle(dice, world) }
}

fn idle(dice: &Dice, world: &World) -> Duration {
    let recent: Vec<u64> = world.moments.iter().rev().copied().collect();
    match dice.favour(&recent) {
        Some(at) if dice.chance(60) => {
            Duration::from_millis(world.now().saturating_sub(*at) + dice.below(2))
        }
        _ => Duration::from_secs(300),
    }
}

// ---- Time, reading ------------------------------------------------------------------------------

fn advance(dice: &Dice, world: &World) -> Op {
    if !world.may_step() {
        return Op::OutlastRetention;
    }
    let now = world.now();
    let ms = match dice.pick(&world.next_deadlines()) {
        // Just before, at and just after.
        Some(at) if dice.chance(75) => at - now - 1 + dice.below(3),
        _ => dice.ms(),
    };
    Op::Advance { ms: ms.min(LONGEST_STEP_MS) }
}

fn outlast_retention(_dice: &Dice, _world: &World) -> Op {
    Op::OutlastRetention
}

fn reopen(dice: &Dice, world: &World) -> Op {
    if world.can_reopen { Op::Reopen } else { read(dice, world) }
}

fn read(dice: &Dice, world: &World) -> Op {
    let instance = known_instance(dice, world);
    match dice.below(3) {
        0 => Op::ReadFrom {
            instance,
            execution_id: dice.below(4),
            from: dice.below(8),
            limit: dice.chance(50).then(|| dice.below(4) as usize),
        },
        1 => Op::CustomStatus { instance, last_seen: dice.below(4) },
        _ => Op::Value { instance, key: dice.name(KEYS) },
    }
}

// ---- Management ---------------------------------------------------------------------------------

fn delete(dice: &Dice, world: &World) -> Op {
    let op = Op::Delete {
        instance: known_instance(dice, world),
        force: dice.chance(50),
        typed: dice.chance(40),
    };
    managed(op, dice, world)
}

fn delete_exactly(dice: &Dice, world: &World) -> Op {
    let mut ids = dice.names(INSTANCES);
    if !world.strange {
        ids.retain(|id| world.instances.contains(id));
    }
    managed(Op::DeleteExactly { ids, force: dice.chance(60) }, dice, world)
}

fn delete_bulk(dice: &Dice, world: &World) -> Op {
    managed(Op::DeleteBulk { filter: instance_filter(dice, world) }, dice, world)
}

fn prune(dice: &Dice, world: &World) -> Op {
    let options = prune_options(dice, world);
    managed(Op::Prune { instance: known_instance(dice, world), options }, dice, world)
}

fn prune_bulk(dice: &Dice, world: &World) -> Op {
    let (filter, options) = (instance_filter(dice, world), prune_options(dice, world));
    managed(Op::PruneBulk { filter, options }, dice, world)
}

fn instance_filter(dice: &Dice, world: &World) -> InstanceFilter {
    InstanceFilter {
        instance_ids: match dice.below(10) {
            0 => Some(Vec::new()),
            1..4 => Some(dice.names(INSTANCES)),
            _ => None,
        },
        completed_before: dice.chance(40).then(|| moment(dice, world)),
        limit: dice.chance(40).then(|| dice.below(4) as u32),
    }
}

fn prune_options(dice: &Dice, world: &World) -> PruneOptions {
    PruneOptions {
        keep_last: dice.chance(60).then(|| dice.below(4) as u32),
        completed_before: dice.chance(40).then(|| moment(dice, world)),
    }
}

/// A time at which an execution ended, or one next to it, or any.
fn moment(dice: &Dice, world: &World) -> u64 {
    match dice.pick(&world.ends) {
        Some(at) if dice.chance(80) => at - 1 + dice.below(3),
        _ => dice.time(world.now()),
    }
}

/// An operation of the management side, if there is one.
fn managed(op: Op, dice: &Dice, world: &World) -> Op {
    if world.has_admin { op } else { read(dice, world) }
}

/// A handler version, seldom none.
pub(super) fn version(dice: &Dice) -> Option<String> {
    dice.maybe_name(80, VERSIONS)
}
