//! Runs checks against mutants, several at a time.

use std::any::Any;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::{Arc, Mutex, Once};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use duroxide::provider_validation::ProviderFactory;
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

/// A check that can be run.
type Runnable<'f> = (Check, Pin<Box<dyn Future<Output = Option<&'static str>> + 'f>>);

/// All checks, in the order of the suite.
pub fn all_checks() -> Vec<Check> {
    let factory = MutantFactory::new(None);
    let checks = Builder::new_current_thread().build().unwrap().block_on(list_checks(&factory));
    checks.into_iter().map(|(check, _)| check).collect()
}

/// Runs one check against one mutant.
pub fn run_check(mutant: Option<Mutant>, wanted: Check) -> Verdict {
    silence_broken_promises();
    let factory = MutantFactory::new(mutant);
    let tokio = Builder::new_current_thread().enable_all().build().unwrap();
    let verdict = tokio.block_on(async {
        let checks = list_checks(&factory).await;
        let (_, check) = checks.into_iter().find(|(check, _)| *check == wanted).unwrap();
        match timeout(LIMIT, catch_panic(check)).await {
            Err(_) => Verdict::Hung,
            Ok(Ok(_)) => Verdict::Passed,
            Ok(Err(reason)) if reason.contains(BROKEN) => Verdict::Caught,
            Ok(Err(reason)) => Verdict::Stumbled(reason),
        }
    });
    tokio.shutdown_background();
    verdict
}

async fn list_checks(factory: &MutantFactory) -> Vec<Runnable<'_>> {
    let mut checks = Vec::new();
    duroxide::__provider_validations! { __run_validations factory checks }
    checks
}

/// What the suite's list calls for each check: where the suite runs it, we only note it.
async fn run_one<'f>(
    check: Check,
    run: Pin<Box<dyn Future<Output = Option<&'static str>> + 'f>>,
) -> Runnable<'f> {
    (check, run)
}

/// Runs a future; its panic text if it panics.
async fn catch_panic<T>(mut future: Pin<Box<dyn Future<Output = T> + '_>>) -> Result<T, String> {
    poll_fn(|cx| match panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(payload) => Poll::Ready(Err(text_of(payload.as_ref()).unwrap_or_default().to_owned())),
    })
    .await
}

fn text_of(payload: &(dyn Any + Send)) -> Option<&str> {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied())
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
            if !text_of(info.payload()).is_some_and(|text| text.contains(BROKEN)) {
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
