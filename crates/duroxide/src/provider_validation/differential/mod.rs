//! Random operations on a store and on the memory provider: every answer has to be the same, and so
//! has everything that can be seen in between.
//!
//! The validation suite asks one question at a time; this asks what happens when things come
//! together that nobody thought of together. Time stands still between operations and moves by
//! operations, so locks, delays, timers and leases end exactly when they should, and a seed always
//! means the same sequence.
//!
//! ```
//! use std::sync::Arc;
//!
//! use duroxide::provider_validation::differential::{DifferentialOptions, compare_with_memory};
//! use duroxide::providers::Provider;
//! use duroxide::providers::memory::{MemoryOptions, MemoryProvider};
//!
//! # #[tokio::main]
//! # async fn main() {
//! let options = DifferentialOptions { sequences: 5, ..DifferentialOptions::from_env() };
//! let report = compare_with_memory(
//!     async |clock| {
//!         // Your store here, new and empty, with this clock.
//!         let options = MemoryOptions { clock, ..MemoryOptions::default() };
//!         Arc::new(MemoryProvider::with_options(options)) as Arc<dyn Provider>
//!     },
//!     options,
//! )
//! .await
//! .unwrap_or_else(|difference| panic!("{difference}"));
//! println!("{report}");
//! # }
//! ```
//!
//! Reading order: `ops.rs` (what can be done), `dice.rs`, `messages.rs`, `commits.rs` and
//! `generate.rs` (what is done next), `call.rs` (how it is done), `answer.rs` and `dump.rs` (what is
//! compared), `run.rs` (a sequence), `shrink.rs` (a shorter one).

mod clock;
mod dice;
mod ops;
mod answer;
mod world;
mod messages;
mod commits;
mod generate;
mod call;
mod dump;
mod report;
mod run;
mod shrink;

use std::sync::Arc;
use std::time::Duration;

use dice::Dice;
use run::{Looks, Steps, run_sequence};

use crate::clock::Clock;
use crate::providers::Provider;
use crate::random::Random;

pub use report::{CallCount, Difference, DifferentialReport};

/// How long the stores have to keep messages for instances that do not exist: an hour, as is usual
/// (R8.29).
pub const ORPHAN_RETENTION: Duration = Duration::from_secs(3600);

/// How much to compare.
#[derive(Debug, Clone)]
pub struct DifferentialOptions {
    /// Seed of the first sequence; the others follow by one.
    pub seed: u64,
    /// Sequences, each on new stores.
    pub sequences: usize,
    /// Operations of a sequence, to which its end adds a few.
    pub operations_per_sequence: usize,
    /// After how many operations everything that can be seen is compared. A difference that shows
    /// in no answer is found later with a larger number, and the sequence is shortened all the same.
    pub dump_every: usize,
    /// Whether dead letters are compared (R8.137); not every store lists them.
    pub dead_letters: bool,
    /// Whether to do what no runtime does, in places where the contract leaves room: first commits
    /// without a start event, or without name and version, commits to executions other than the
    /// turn's or the next, events appended outside turns, deletions of what does not exist, filters
    /// without versions.
    pub strange: bool,
    /// How many shorter sequences are tried when a difference was found.
    pub shrinking_tries: usize,
}

impl Default for DifferentialOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            sequences: 60,
            operations_per_sequence: 200,
            dump_every: 10,
            dead_letters: true,
            strange: true,
            shrinking_tries: 1000,
        }
    }
}

impl DifferentialOptions {
    /// The usual options, with the seed of the environment variable `DUROXIDE_SEED`, if there is
    /// one (`random` means another one each time), and so many sequences as `DUROXIDE_SEQUENCES`
    /// says.
    ///
    /// # Panics
    /// If one of them is not a number.
    pub fn from_env() -> Self {
        let mut options = Self::default();
        match std::env::var("DUROXIDE_SEED").as_deref() {
            Ok("random") => options.seed = Random::from_os().next_u64(),
            Ok(text) => options.seed = text.parse().expect("DUROXIDE_SEED is a number"),
            Err(_) => {}
        }
        if let Ok(text) = std::env::var("DUROXIDE_SEQUENCES") {
            options.sequences = text.parse().expect("DUROXIDE_SEQUENCES is a number");
        }
        options
    }
}

/// Compares a store with the memory provider. `make` makes a new, empty store that goes by the given
/// clock and keeps messages for nobody for [`ORPHAN_RETENTION`].
pub async fn compare_with_memory<F>(
    make: F,
    options: DifferentialOptions,
) -> Result<DifferentialReport, Box<Difference>>
where
    F: AsyncFn(Arc<dyn Clock>) -> Arc<dyn Provider>,
{
    compare(&Fresh(make), options).await
}

/// Like [`compare_with_memory`], and closes the store now and then in the middle of a sequence.
/// `reopen` is given the store, the last reference to it, and returns another one on the same data.
pub async fn compare_with_memory_and_reopen<F, R>(
    make: F,
    reopen: R,
    options: DifferentialOptions,
) -> Result<DifferentialReport, Box<Difference>>
where
    F: AsyncFn(Arc<dyn Clock>) -> Arc<dyn Provider>,
    R: AsyncFn(Arc<dyn Provider>, Arc<dyn Clock>) -> Arc<dyn Provider>,
{
    compare(&Reopening(make, reopen), options).await
}

async fn compare(
    maker: &impl Maker,
    options: DifferentialOptions,
) -> Result<DifferentialReport, Box<Difference>> {
    let looks = Looks { every: options.dump_every, dead_letters: options.dead_letters };
    let mut report = DifferentialReport { seed: options.seed, ..DifferentialReport::default() };
    for number in 0..options.sequences as u64 {
        let seed = options.seed.wrapping_add(number);
        let _notice = Notice { seed };
        let dice = Dice::new(seed);
        let rolls = (0..options.operations_per_sequence).map(|_| dice.roll());
        let rolls: Vec<u64> = rolls.collect();
        let steps = Steps { seed, strange: options.strange, dice: &rolls };
        if let Err(found) = run_sequence(maker, steps, looks, &mut report).await {
            let found = shrink::shrink(maker, steps, (looks, options.shrinking_tries), found).await;
            return Err(Box::new(Difference {
                seed,
                store: found.store,
                operations: found.operations,
                question: found.question,
                expected: found.expected,
                got: found.got,
            }));
        }
    }
    Ok(report)
}

/// Where the other store comes from.
trait Maker {
    /// A new, empty store.
    async fn make(&self, clock: Arc<dyn Clock>) -> Arc<dyn Provider>;

    /// Whether stores can be closed and opened again.
    fn can_reopen(&self) -> bool;

    /// Another store on the same data.
    async fn reopen(&self, store: Arc<dyn Provider>, clock: Arc<dyn Clock>) -> Arc<dyn Provider>;
}

/// Makes stores that stay open.
struct Fresh<F>(F);

impl<F> Maker for Fresh<F>
where
    F: AsyncFn(Arc<dyn Clock>) -> Arc<dyn Provider>,
{
    async fn make(&self, clock: Arc<dyn Clock>) -> Arc<dyn Provider> {
        (self.0)(clock).await
    }

    fn can_reopen(&self) -> bool {
        false
    }

    async fn reopen(&self, store: Arc<dyn Provider>, _clock: Arc<dyn Clock>) -> Arc<dyn Provider> {
        store
    }
}

/// Makes stores that can be closed and opened again.
struct Reopening<F, R>(F, R);

impl<F, R> Maker for Reopening<F, R>
where
    F: AsyncFn(Arc<dyn Clock>) -> Arc<dyn Provider>,
    R: AsyncFn(Arc<dyn Provider>, Arc<dyn Clock>) -> Arc<dyn Provider>,
{
    async fn make(&self, clock: Arc<dyn Clock>) -> Arc<dyn Provider> {
        (self.0)(clock).await
    }

    fn can_reopen(&self) -> bool {
        true
    }

    async fn reopen(&self, store: Arc<dyn Provider>, clock: Arc<dyn Clock>) -> Arc<dyn Provider> {
        (self.1)(store, clock).await
    }
}

/// Says how to repeat a sequence in which a store panics.
struct Notice {
    seed: u64,
}

impl Drop for Notice {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", report::how_to_repeat(self.seed));
        }
    }
}
