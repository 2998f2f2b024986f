//! Runs checks against mutants, several at a time.

use std::collections::VecDeque;
use std::panic;
use std::sync::{Arc, Mutex, Once};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use duroxide::provider_validation::{Outcome, ProviderFactory, run_validations};
use duroxide::providers::Provider;
use duroxide::providers::memory::MemoryProvider;
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::list::Mutant;
use super::wrapper::MutantProvider;

/// How long a check may take before it counts as hanging.
const LIMIT: Duration = Duration::from_secs(40);
/// What every expectation of the suite says when it is not met.
const BROKEN: &str = "provider contract broken";

/// How a check went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing noticed.
    Passed,
    /// Noticed, and said which promise is broken.
    Caught,
    /// Noticed, but with other words.
    Stumbled(String),
    /// It did not come to an end.
    Hung,
}

/// Category and name of a check.
pub type Check = (&'static str, &'static str);

/// All checks, in the order of the suite.
pub fn all_checks() -> Vec<Check> {
    let seen = Mutex::new(Vec::new());
    let factory = MutantFactory::new(None);
    let none = run_validations(&factory, |category, name| {
        seen.lock().unwrap().push((category, name));
        false
    });
    Builder::new_current_thread().build().unwrap().block_on(none);
    seen.into_inner().unwrap()
}

/// Runs one check against one mutant.
pub fn run_check(mutant: Option<Mutant>, check: Check) -> Verdict {
    silence_broken_promises();
    let factory = MutantFactory::new(mutant);
    let tokio = Builder::new_current_thread().enable_all().build().unwrap();
    let verdict = tokio.block_on(async {
        let run = run_validations(&factory, |category, name| (category, name) == check);
        let Ok(report) = timeout(LIMIT, run).await else { return Verdict::Hung };
        match &report.results.first().expect("a check of the suite").outcome {
            Outcome::Failed(reason) if reason.contains(BROKEN) => Verdict::Caught,
            Outcome::Failed(reason) => Verdict::Stumbled(reason.clone()),
            Outcome::Passed | Outcome::Skipped(_) => Verdict::Passed,
        }
    });
    tokio.shutdown_background();
    verdict
}

/// Does the jobs with so many threads; the results in the order of the jobs.
pub fn in_parallel<J: Send, R: Send>(
    threads: usize,
    jobs: Vec<J>,
    work: impl Fn(J) -> R + Sync,
) -> Vec<R> {
    let jobs: Mutex<VecDeque<(usize, J)>> = Mutex::new(jobs.into_iter().enumerate().collect());
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((number, job)) = take(&jobs) {
                    let result = work(job);
                    results.lock().unwrap().push((number, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

fn take<T>(jobs: &Mutex<VecDeque<T>>) -> Option<T> {
    jobs.lock().unwrap().pop_front()
}

/// Thousands of checks fail here as they should: that is not worth a line each.
fn silence_broken_promises() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let text = info.payload().downcast_ref::<String>();
            if !text.is_some_and(|text| text.contains(BROKEN)) {
                usual(info);
            }
        }));
    });
}

/// Makes stores that are wrong in one way.
struct MutantFactory {
    mutant: Option<Mutant>,
    latest: Mutex<Option<Arc<MemoryProvider>>>,
}

impl MutantFactory {
    fn new(mutant: Option<Mutant>) -> Self {
        Self { mutant, latest: Mutex::default() }
    }

    fn latest(&self) -> Arc<MemoryProvider> {
        self.latest.lock().unwrap().clone().expect("a store was made")
    }
}

#[async_trait]
impl ProviderFactory for MutantFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        let store = MutantProvider::new(self.mutant);
        *self.latest.lock().unwrap() = Some(Arc::clone(&store.inner));
        Arc::new(store)
    }

    fn lock_timeout(&self) -> Duration {
        Duration::from_millis(200)
    }

    async fn corrupt_instance_history(&self, instance: &str) {
        self.latest().corrupt_history(instance, "bits rotted");
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        self.latest().max_attempt_count(instance)
    }
}
