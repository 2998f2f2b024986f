//! Many at a time: what is done with one lock happens once, and nobody gets in the way of others.

mod crowds;
mod loops;
mod races;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::lab::Lab;
use crate::providers::ProviderError;

pub use crowds::*;
pub use loops::*;
pub use races::*;

const SECTION: &str = "fetching-a-turn";

/// Several threads at the same moment, each with a number of its own, from 0 in order of arrival.
pub(super) async fn cast<T, Fut>(
    lab: &Lab,
    people: usize,
    each: impl Fn(Lab, usize) -> Fut + Clone + Send + 'static,
) -> Vec<T>
where
    T: Send + 'static,
    Fut: Future<Output = T>,
{
    let next = Arc::new(AtomicUsize::new(0));
    lab.crowd(people, move |lab| each(lab, next.fetch_add(1, Ordering::SeqCst))).await
}

/// Whether a call succeeds, once the store no longer asks to try again (R8.6).
pub(super) async fn succeeds<T, Fut>(lab: &Lab, call: &str, attempt: impl Fn() -> Fut) -> bool
where
    Fut: Future<Output = Result<T, ProviderError>>,
{
    let answer = || async {
        match attempt().await {
            Err(error) if error.is_retryable() => None,
            other => Some(other.is_ok()),
        }
    };
    lab.soon(&format!("{call} to get through"), answer).await
}
