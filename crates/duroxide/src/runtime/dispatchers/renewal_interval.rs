//! When locks are renewed.

use std::time::Duration;

/// How long to wait between renewals (R7.61). Never so long that less than a second is left of the
/// lock, or of a short lock less than half: the renewal would come too late.
pub(crate) fn renewal_interval(timeout: Duration, buffer: Duration) -> Duration {
    const SECOND: Duration = Duration::from_secs(1);
    let interval = if timeout >= Duration::from_secs(15) {
        timeout.saturating_sub(buffer)
    } else {
        Duration::from_secs((timeout / 2).as_secs_f64().ceil() as u64)
    };
    let latest = timeout.saturating_sub(SECOND).max(timeout / 2);
    interval.max(SECOND).min(latest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r7_61_intervals() {
        let s = Duration::from_secs;
        for (timeout, buffer, expected) in [
            (s(30), s(5), s(25)),
            (s(5), s(2), s(3)),
            (s(2), s(2), s(1)),
            (s(15), s(20), s(1)),
            (s(30), s(0), s(29)),
            (Duration::from_millis(1500), s(0), Duration::from_millis(750)),
            (s(14), s(1), s(7)),
            (s(1), s(0), Duration::from_millis(500)),
            (Duration::from_millis(400), s(0), Duration::from_millis(200)),
        ] {
            assert_eq!(renewal_interval(timeout, buffer), expected, "{timeout:?} {buffer:?}");
        }
    }
}
