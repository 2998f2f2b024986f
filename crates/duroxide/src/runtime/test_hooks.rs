//! Artificial delays for tests of lock renewal (R7.132). Process-wide.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

struct Delay {
    delay: Duration,
    instance_prefix: Option<String>,
}

static DELAY: Mutex<Option<Delay>> = Mutex::new(None);

/// Delays every turn, or those of instances whose id begins with a prefix. Zero disables.
pub fn set_orch_processing_delay(delay: Duration, instance_prefix: Option<&str>) {
    let instance_prefix = instance_prefix.map(str::to_owned);
    *current() = (!delay.is_zero()).then_some(Delay { delay, instance_prefix });
}

/// The delay for an instance.
pub fn get_orch_processing_delay(instance: &str) -> Option<Duration> {
    let current = current();
    let delay = current.as_ref()?;
    let prefix = delay.instance_prefix.as_deref().unwrap_or_default();
    instance.starts_with(prefix).then_some(delay.delay)
}

/// Removes the delay.
pub fn clear_orch_processing_delay() {
    *current() = None;
}

fn current() -> MutexGuard<'static, Option<Delay>> {
    DELAY.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r7_132_delay_by_prefix() {
        let second = Duration::from_secs(1);
        set_orch_processing_delay(second, Some("hooked-"));
        assert_eq!(get_orch_processing_delay("hooked-1"), Some(second));
        assert_eq!(get_orch_processing_delay("other"), None);
        set_orch_processing_delay(Duration::ZERO, None);
        assert_eq!(get_orch_processing_delay("hooked-1"), None);
        set_orch_processing_delay(second, Some("hooked-"));
        clear_orch_processing_delay();
        assert_eq!(get_orch_processing_delay("hooked-1"), None);
    }
}
