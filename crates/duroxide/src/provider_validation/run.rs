//! What is made of the list of all checks: one call that runs them all, and one macro that makes a
//! test of each.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::Instant;

use super::ProviderFactory;
use super::report::{Outcome, ValidationReport, ValidationResult};
use crate::providers::Provider;
use crate::runtime::catch_panic::catch_panic;

/// Makes a `#[tokio::test]` of every check, in one module per category, for the factory that the
/// expression gives.
#[macro_export]
macro_rules! provider_validation_tests {
    ($factory:expr) => {
        $crate::__provider_validations! { __provider_validation_tests $factory }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __provider_validation_tests {
    (($factory:expr) $($category:ident { $($kind:ident $check:ident,)* })*) => {
        $(
            mod $category {
                #[allow(unused_imports)]
                use super::*;
                $(
                    #[tokio::test]
                    async fn $check() {
                        let factory = $factory;
                        let skipped =
                            $crate::__run_validation!($kind $category $check &factory);
                        if let Some(why) = skipped {
                            println!("skipped: {why}");
                        }
                    }
                )*
            }
        )*
    };
}

/// Runs one check; `None` if it passed, else why it was skipped.
#[doc(hidden)]
#[macro_export]
macro_rules! __run_validation {
    (G $category:ident $check:ident $factory:expr) => {{
        $crate::provider_validation::$category::$check($factory).await;
        None::<&'static str>
    }};
    (D $category:ident $check:ident $factory:expr) => {{
        $crate::provider_validation::$category::$check($factory).await;
        None::<&'static str>
    }};
    (S $category:ident $check:ident $factory:expr) => {{
        for stamp in $crate::provider_validation::STAMPS {
            $crate::provider_validation::$category::$check($factory, stamp).await;
        }
        None::<&'static str>
    }};
    (P $category:ident $check:ident $factory:expr) => {{
        let store = $crate::provider_validation::ProviderFactory::create_provider($factory).await;
        if $crate::provider_validation::waits_for_work(store.as_ref()).await {
            $crate::provider_validation::$category::$check(store.as_ref()).await;
            None::<&'static str>
        } else {
            Some("the provider has no long polls")
        }
    }};
    (O $category:ident $check:ident $factory:expr) => {{ $crate::provider_validation::$category::$check($factory).await }};
    (W $category:ident $check:ident $factory:expr) => {{
        let store = $crate::provider_validation::ProviderFactory::create_provider($factory).await;
        if $crate::provider_validation::waits_for_work(store.as_ref()).await {
            $crate::provider_validation::$category::$check($factory).await;
            None::<&'static str>
        } else {
            Some("the provider has no long polls")
        }
    }};
    (T $category:ident $check:ident $factory:expr) => {{
        let store = $crate::provider_validation::ProviderFactory::create_provider($factory).await;
        if $crate::provider_validation::waits_for_work(store.as_ref()).await {
            Some("the provider has long polls")
        } else {
            let limit =
                $crate::provider_validation::ProviderFactory::short_poll_threshold($factory);
            $crate::provider_validation::$category::$check(store.as_ref(), limit).await;
            None::<&'static str>
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __run_validations {
    (($factory:ident $results:ident) $($category:ident { $($kind:ident $check:ident,)* })*) => {
        $($(
            // Boxed: two hundred futures side by side would not fit on a thread's stack.
            let check = Box::pin(async { $crate::__run_validation!($kind $category $check $factory) });
            $results.push(run_one((stringify!($category), stringify!($check)), check).await);
        )*)*
    };
}

/// Runs every check, one after the other, each on a store of its own.
pub async fn run_all_validations<F: ProviderFactory>(factory: &F) -> ValidationReport {
    let mut results = Vec::new();
    crate::__provider_validations! { __run_validations factory results }
    ValidationReport { results }
}

/// Runs one check and notes how it ended.
async fn run_one(
    (category, name): (&'static str, &'static str),
    check: Pin<Box<dyn Future<Output = Option<&'static str>> + '_>>,
) -> ValidationResult {
    let began = Instant::now();
    let outcome = match catch_panic(check).await {
        Ok(None) => Outcome::Passed,
        Ok(Some(why)) => Outcome::Skipped(why),
        Err(reason) => Outcome::Failed(reason),
    };
    ValidationResult { category, name, outcome, took: began.elapsed() }
}

/// Version stamps that checks of replay run with: this library's, and one under the old race policy.
#[doc(hidden)]
pub const STAMPS: [&str; 2] = [duroxide_core::model::version::BUILD_VERSION, "0.1.30"];

/// Whether a fetch from an empty queue waits, as it may or may not (R8.32).
#[doc(hidden)]
pub async fn waits_for_work(store: &dyn Provider) -> bool {
    let poll = Duration::from_millis(300);
    let began = Instant::now();
    let nothing = store.fetch_orchestration_item(Duration::from_secs(1), poll, None).await;
    nothing.is_ok_and(|found| found.is_none()) && began.elapsed() >= poll / 2
}
