//! Named points at which tests kill the process, to see what survives.

/// Ends the process as `kill -9` would, if the environment says so: `DUROXIDE_CRASH_AT` names a
/// point and how often it may be passed, as in `before-commit:3`.
#[cfg(feature = "test-hooks")]
pub(crate) fn crash_point(name: &str) {
    use std::collections::HashMap;
    use std::sync::{LazyLock, Mutex, PoisonError};

    static WANTED: LazyLock<Option<(String, u64)>> = LazyLock::new(|| {
        let wanted = std::env::var("DUROXIDE_CRASH_AT").ok()?;
        let (name, passes) = wanted.split_once(':')?;
        Some((name.to_owned(), passes.parse().ok()?))
    });
    static PASSED: LazyLock<Mutex<HashMap<String, u64>>> = LazyLock::new(Mutex::default);

    let Some((wanted, passes)) = &*WANTED else { return };
    if wanted != name {
        return;
    }
    let mut passed = PASSED.lock().unwrap_or_else(PoisonError::into_inner);
    let count = passed.entry(name.to_owned()).or_default();
    *count += 1;
    if *passes < *count {
        std::process::abort();
    }
}

/// Does nothing.
#[cfg(not(feature = "test-hooks"))]
pub(crate) fn crash_point(_name: &str) {}
