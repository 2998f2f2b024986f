//! A process that starts random programs and sees them through, until it is told to end, or killed.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use duroxide::random::Random;

use crate::attend::Attendant;
use crate::programs::Program;
use crate::roles::{Stage, told_to_end};

/// Seed of the programs.
pub const SEED: &str = "FLEET_SEED";
/// Programs at a time.
pub const AT_ONCE: &str = "FLEET_AT_ONCE";

/// If set, a call is made again while the store says that it may work later.
pub const PATIENT: &str = "FLEET_PATIENT";

/// Starts programs. Ends when all of them have been seen through.
pub(crate) async fn run(stage: &Stage) {
    let number = |name| stage.setting(name).and_then(|text| text.parse::<u64>().ok()).unwrap();
    let (seed, at_once) = (number(SEED), number(AT_ONCE));
    let attendant = Arc::new(Attendant::new(stage, HashSet::new()).await);
    let ending = Arc::new(AtomicBool::new(false));
    stage.journal.note("UP");
    let customers = (0..at_once).map(|customer| {
        let (attendant, ending) = (Arc::clone(&attendant), Arc::clone(&ending));
        let random = Random::seeded(seed + customer);
        tokio::spawn(async move {
            for number in 0.. {
                if ending.load(Ordering::Relaxed) {
                    break;
                }
                let id = format!("p{seed}-{customer}-{number}");
                attendant.attend(&id, &Program::random(&random)).await.unwrap();
            }
        })
    });
    let customers: Vec<_> = customers.collect();
    told_to_end().await;
    ending.store(true, Ordering::Relaxed);
    for customer in customers {
        customer.await.unwrap();
    }
}
