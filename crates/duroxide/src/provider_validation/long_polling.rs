//! A fetch from an empty queue waits for work, or it does not: as the provider likes, but never
//! longer than it was told. These checks leave the store as empty as they need it.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::lab::{AT_ONCE, Promise};
use crate::providers::{Provider, ProviderError, TagFilter};

const SECTION: &str = "long-polls";
const LOCK: Duration = Duration::from_secs(5);
/// How long the checks let a fetch wait.
const POLL: Duration = Duration::from_millis(400);
/// How much longer it may take.
const MARGIN: Duration = Duration::from_millis(250);
/// How often a call is made before it counts as slow: a busy machine may spoil one.
const TRIES: usize = 3;

/// A provider without long polls answers at once that there is no turn.
pub async fn test_short_poll_returns_immediately(provider: &dyn Provider, threshold: Duration) {
    let promise = without_long_polls();
    for poll in [AT_ONCE, POLL + threshold * 2] {
        let fetch = || provider.fetch_orchestration_item(LOCK, poll, None);
        at_most(promise, "fetch_orchestration_item", threshold, fetch).await;
    }
}

/// A provider with long polls waits for a turn as long as it was told.
pub async fn test_long_poll_waits_for_timeout(provider: &dyn Provider) {
    let fetch = || provider.fetch_orchestration_item(LOCK, POLL, None);
    at_least(with_long_polls(), "fetch_orchestration_item", fetch).await;
}

/// No fetch takes much longer than it was told.
pub async fn test_fetch_respects_timeout_upper_bound(provider: &dyn Provider) {
    let says = "a fetch from an empty queue never takes much longer than its poll timeout";
    let promise = Promise { rule: "R8.32", says, section: SECTION };
    for poll in [AT_ONCE, POLL / 4, POLL] {
        let fetch = || provider.fetch_orchestration_item(LOCK, poll, None);
        at_most(promise, "fetch_orchestration_item", poll + MARGIN, fetch).await;
        let fetch = || provider.fetch_work_item(LOCK, poll, None, &TagFilter::DefaultOnly);
        at_most(promise, "fetch_work_item", poll + MARGIN, fetch).await;
    }
}

/// A provider without long polls answers at once that there is no activity.
pub async fn test_short_poll_work_item_returns_immediately(
    provider: &dyn Provider,
    threshold: Duration,
) {
    let promise = without_long_polls();
    for poll in [AT_ONCE, POLL + threshold * 2] {
        let fetch = || provider.fetch_work_item(LOCK, poll, None, &TagFilter::DefaultOnly);
        at_most(promise, "fetch_work_item", threshold, fetch).await;
    }
}

/// A provider with long polls waits for an activity as long as it was told.
pub async fn test_long_poll_work_item_waits_for_timeout(provider: &dyn Provider) {
    let fetch = || provider.fetch_work_item(LOCK, POLL, None, &TagFilter::DefaultOnly);
    at_least(with_long_polls(), "fetch_work_item", fetch).await;
}

fn with_long_polls() -> Promise {
    let says = "a provider with long polls waits on an empty queue until the poll timeout";
    Promise { rule: "R8.32", says, section: SECTION }
}

fn without_long_polls() -> Promise {
    let says = "a provider without long polls answers at once, whatever the poll timeout";
    Promise { rule: "R8.32", says, section: SECTION }
}

async fn at_least<T, Fut>(promise: Promise, call: &str, fetch: impl Fn() -> Fut)
where
    T: Debug,
    Fut: Future<Output = Result<Option<T>, ProviderError>>,
{
    let took = time_of(promise, call, fetch).await;
    if took < POLL * 9 / 10 {
        promise.broken(&format!("{call} to wait {POLL:?}"), took);
    }
}

async fn at_most<T, Fut>(promise: Promise, call: &str, limit: Duration, fetch: impl Fn() -> Fut)
where
    T: Debug,
    Fut: Future<Output = Result<Option<T>, ProviderError>>,
{
    let mut times = Vec::new();
    while times.len() < TRIES {
        let took = time_of(promise, call, &fetch).await;
        if took <= limit {
            return;
        }
        times.push(took);
    }
    promise.broken(&format!("{call} to take {limit:?} at most"), times)
}

/// How long a fetch takes that must find nothing.
async fn time_of<T, Fut>(promise: Promise, call: &str, fetch: impl Fn() -> Fut) -> Duration
where
    T: Debug,
    Fut: Future<Output = Result<Option<T>, ProviderError>>,
{
    let began = Instant::now();
    match fetch().await {
        Ok(None) => began.elapsed(),
        other => promise.broken(&format!("{call} to find an empty queue"), other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::memory::MemoryProvider;
    use crate::providers::scripted::ScriptedProvider;
    use crate::runtime::catch_panic::catch_panic;

    const THRESHOLD: Duration = Duration::from_millis(100);

    async fn assert_fails(check: impl Future<Output = ()>) {
        let reason = catch_panic(check).await.expect_err("the check should fail");
        assert!(reason.contains("R8.32"), "{reason}");
    }

    #[tokio::test(start_paused = true)]
    async fn r8_32_the_short_checks_know_who_answers_at_once() {
        let prompt = ScriptedProvider::default();
        test_short_poll_returns_immediately(&prompt, THRESHOLD).await;
        test_short_poll_work_item_returns_immediately(&prompt, THRESHOLD).await;
        let waiting = MemoryProvider::new();
        assert_fails(test_short_poll_returns_immediately(&waiting, THRESHOLD)).await;
        assert_fails(test_short_poll_work_item_returns_immediately(&waiting, THRESHOLD)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn r8_32_the_long_checks_know_who_waits() {
        let waiting = MemoryProvider::new();
        test_long_poll_waits_for_timeout(&waiting).await;
        test_long_poll_work_item_waits_for_timeout(&waiting).await;
        test_fetch_respects_timeout_upper_bound(&waiting).await;
        let prompt = ScriptedProvider::default();
        assert_fails(test_long_poll_waits_for_timeout(&prompt)).await;
        assert_fails(test_long_poll_work_item_waits_for_timeout(&prompt)).await;
        test_fetch_respects_timeout_upper_bound(&prompt).await;
    }

    #[tokio::test(start_paused = true)]
    async fn r8_32_nobody_may_wait_too_long_or_fail() {
        let broken = ScriptedProvider::default();
        broken.take(POLL + MARGIN * 2);
        assert_fails(test_fetch_respects_timeout_upper_bound(&broken)).await;
        broken.fail_with("down");
        assert_fails(test_long_poll_waits_for_timeout(&broken)).await;
    }
}
