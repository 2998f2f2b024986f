//! Retry policies: arithmetic only (R4.20 – R4.22).

use std::time::Duration;

/// How long to wait between attempts.
///
/// ```
/// # use duroxide_core::model::BackoffStrategy;
/// # use std::time::Duration;
/// let (base, max) = (Duration::from_secs(2), Duration::from_secs(5));
/// let seconds = |backoff: BackoffStrategy| [1, 2, 3].map(|n| backoff.delay_for_attempt(n).as_secs());
///
/// assert_eq!(seconds(BackoffStrategy::None), [0, 0, 0]);
/// assert_eq!(seconds(BackoffStrategy::Fixed { delay: base }), [2, 2, 2]);
/// assert_eq!(seconds(BackoffStrategy::Linear { base, max }), [2, 4, 5]);
/// assert_eq!(seconds(BackoffStrategy::Exponential { base, multiplier: 2.0, max }), [2, 4, 5]);
/// ```
#[derive(Debug, Clone)]
pub enum BackoffStrategy {
    /// Not at all.
    None,
    /// Always the same.
    Fixed {
        /// How long.
        delay: Duration,
    },
    /// Growing by `base` with each attempt.
    Linear {
        /// Growth.
        base: Duration,
        /// Longest wait.
        max: Duration,
    },
    /// Growing by a factor with each attempt.
    Exponential {
        /// First wait.
        base: Duration,
        /// Factor.
        multiplier: f64,
        /// Longest wait.
        max: Duration,
    },
}

impl BackoffStrategy {
    /// The wait after failed attempt `attempt`, counted from 1. Saturates at the strategy's maximum.
    pub fn delay_for_attempt(&self, attempt: u32) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Fixed { delay } => *delay,
            Self::Linear { base, max } => base.saturating_mul(attempt).min(*max),
            Self::Exponential { base, multiplier, max } => {
                let exponent = attempt.saturating_sub(1).min(i32::MAX as u32) as i32;
                let seconds = base.as_secs_f64() * multiplier.powi(exponent);
                // Also catches NaN: a meaningless factor waits the longest allowed.
                if seconds < max.as_secs_f64() {
                    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
                } else {
                    *max
                }
            }
        }
    }
}

impl Default for BackoffStrategy {
    fn default() -> Self {
        Self::Exponential {
            base: Duration::from_millis(100),
            multiplier: 2.0,
            max: Duration::from_secs(30),
        }
    }
}

/// How often and how patiently an activity is tried.
///
/// ```
/// # use duroxide_core::model::{BackoffStrategy, RetryPolicy};
/// # use std::time::Duration;
/// let policy = RetryPolicy::new(5)
///     .with_backoff(BackoffStrategy::Exponential {
///         base: Duration::from_millis(100),
///         multiplier: 3.0,
///         max: Duration::from_secs(2),
///     })
///     .with_timeout(Duration::from_secs(30)); // Of one attempt and its wait for a worker.
///
/// let pauses = [1, 2, 3, 4].map(|failed| policy.delay_for_attempt(failed).as_millis());
/// assert_eq!(pauses, [100, 300, 900, 2_000]);
/// ```
///
/// Orchestrations pass it to `schedule_activity_with_retry`.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// Attempts in all, at least 1.
    pub max_attempts: u32,
    /// Wait between attempts.
    pub backoff: BackoffStrategy,
    /// Longest time from the scheduling of an attempt to its result; see
    /// [`with_timeout`](Self::with_timeout) for what that counts.
    pub timeout: Option<Duration>,
}

impl RetryPolicy {
    /// A policy of `max_attempts` attempts with the default backoff.
    ///
    /// # Panics
    /// If `max_attempts` is 0.
    pub fn new(max_attempts: u32) -> Self {
        assert!(max_attempts >= 1, "max_attempts must be at least 1");
        Self { max_attempts, ..Self::default() }
    }

    /// Sets the time limit of each attempt: a durable timer beside it, from when the attempt is
    /// *scheduled*. So it counts the wait for a free worker, and the time in which workers or the store
    /// are down; and it is not retried, running into it ends the loop. For a limit on how long the code
    /// of an attempt runs, which is retried, set a start-to-close timeout where the activity is
    /// registered; for one over all attempts use `with_schedule_to_close` on the call.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Older name of [`with_timeout`](Self::with_timeout).
    #[doc(hidden)]
    pub fn with_total_timeout(self, timeout: Duration) -> Self {
        self.with_timeout(timeout)
    }

    /// Sets the wait between attempts.
    pub fn with_backoff(mut self, backoff: BackoffStrategy) -> Self {
        self.backoff = backoff;
        self
    }

    /// The wait after failed attempt `attempt`, counted from 1.
    pub fn delay_for_attempt(&self, attempt: u32) -> Duration {
        self.backoff.delay_for_attempt(attempt)
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 3, backoff: BackoffStrategy::default(), timeout: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn r4_20_defaults() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.max_attempts, 3);
        assert!(policy.timeout.is_none());
        assert_eq!(policy.delay_for_attempt(1), MS(100));
        assert_eq!(policy.delay_for_attempt(30), MS(30_000));
    }

    #[test]
    #[should_panic(expected = "max_attempts must be at least 1")]
    fn r4_21_zero_attempts_panic() {
        RetryPolicy::new(0);
    }

    #[test]
    fn r4_22_delays_saturate() {
        let linear = BackoffStrategy::Linear { base: MS(100), max: MS(250) };
        assert_eq!(
            [1, 2, 3, u32::MAX].map(|n| linear.delay_for_attempt(n)),
            [100, 200, 250, 250].map(MS)
        );
        let exponential =
            BackoffStrategy::Exponential { base: MS(100), multiplier: 2.0, max: MS(500) };
        assert_eq!(
            [1, 2, 3, 4, u32::MAX].map(|n| exponential.delay_for_attempt(n)),
            [100, 200, 400, 500, 500].map(MS)
        );
        let odd =
            BackoffStrategy::Exponential { base: MS(100), multiplier: f64::NAN, max: MS(500) };
        assert_eq!(odd.delay_for_attempt(2), MS(500));
        assert_eq!(BackoffStrategy::None.delay_for_attempt(9), Duration::ZERO);
        assert_eq!(BackoffStrategy::Fixed { delay: MS(7) }.delay_for_attempt(9), MS(7));
    }
}
