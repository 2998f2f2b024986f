//! The cases, by name.

mod throughput;
mod one_at_a_time;
mod timers;
mod raise;
mod idle;
mod backlog;
mod sleepers;
mod crowd;

use super::Failure;
use super::args::Args;
use super::outcome::Outcome;

/// Instances in flight where a case wants as many as can be.
const MANY: usize = 256;
/// Executions of an instance that continues as new.
const EXECUTIONS: u64 = 200;
const PAYLOAD_BYTES: usize = 64 * 1024;

/// Runs the case the arguments name.
pub(crate) async fn run(args: Args) -> Result<Outcome, Failure> {
    let case = args.case.clone();
    let (name, size) = split(&case)?;
    match (name, size) {
        ("w1-throughput", None) => throughput::run(args, "Hello", "hello", MANY).await,
        ("w1-latency", None) => one_at_a_time::latency(args).await,
        ("w2-chain", Some(length)) => one_at_a_time::chain(args, length).await,
        ("w3-fan-out", Some(width)) => one_at_a_time::fan_out(args, width).await,
        ("w4-stress", None) => throughput::run(args, "FanOut", "5", 50).await,
        ("w5-children", None) => throughput::run(args, "Parent", "10", 50).await,
        ("w6-timers", Some(count)) => timers::run(args, count).await,
        ("w7-raise", None) => raise::run(args).await,
        ("w8-continue", None) => one_at_a_time::continue_as_new(args, EXECUTIONS).await,
        ("w9-idle", None) => idle::run(args).await,
        ("w10-payload", None) => throughput::run(args, "Hello", &payload(), 50).await,
        ("w11-backlog", Some(count)) => backlog::run(args, count).await,
        ("s1-crowd", Some(finished)) => crowd::run(args, finished, MANY).await,
        ("m1-sleepers", Some(count)) => sleepers::run(args, count).await,
        _ => crate::store::own_case(args, name, size).await,
    }
}

/// `w2-chain:100` is the case `w2-chain` at size 100.
fn split(case: &str) -> Result<(&str, Option<u64>), Failure> {
    match case.split_once(':') {
        None => Ok((case, None)),
        Some((name, size)) => Ok((name, Some(size.parse()?))),
    }
}

/// Letters in no order, so that nothing can be gained by packing them.
fn payload() -> String {
    let mut state = 1_u64;
    let letters = std::iter::from_fn(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        char::from_digit((state >> 33) as u32 % 36, 36)
    });
    letters.take(PAYLOAD_BYTES).collect()
}
