//! Which time limit of an activity was hit. Errors of activities are texts, so the kind is at the
//! beginning of the text (R4.102).

use std::time::Duration;

/// The inherited text, to the letter: histories hold it, and code compares with it (R4.24).
const ATTEMPT: &str = "timeout: activity timed out";
const START_TO_CLOSE: &str = "timeout: start-to-close: ";
const SCHEDULE_TO_CLOSE: &str = "timeout: schedule-to-close: ";

/// A time limit that an activity has run into.
///
/// ```
/// # use duroxide_core::context::OrchestrationContext;
/// # use duroxide_core::model::{ActivityTimeout, RetryPolicy};
/// # use std::time::Duration;
/// async fn pay(ctx: OrchestrationContext, cents: String) -> Result<String, String> {
///     let paid = ctx
///         .schedule_activity_with_retry("Charge", cents, RetryPolicy::new(5))
///         .with_schedule_to_close(Duration::from_secs(3600))
///         .await;
///     match paid {
///         Err(error) if ActivityTimeout::of(&error).is_some() => Ok("on account".into()),
///         other => other,
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActivityTimeout {
    /// `RetryPolicy::timeout`: one attempt, from being scheduled to its result, the wait for a worker
    /// and outages included. Not retried.
    Attempt,
    /// The activity's own limit, set where it is registered: one attempt, from the start of its code.
    /// Retried like any error.
    StartToClose,
    /// All attempts and the pauses between them, from the first call.
    ScheduleToClose,
}

impl ActivityTimeout {
    /// Whether the error of an activity is that of a time limit, and of which. An activity can return
    /// such a text itself, for instance that of another one: then this is what it says.
    pub fn of(error: &str) -> Option<Self> {
        if error.starts_with(START_TO_CLOSE) {
            Some(Self::StartToClose)
        } else if error.starts_with(SCHEDULE_TO_CLOSE) {
            Some(Self::ScheduleToClose)
        } else {
            (error == ATTEMPT).then_some(Self::Attempt)
        }
    }

    /// The error of `RetryPolicy::timeout`.
    pub(crate) fn attempt_error() -> String {
        ATTEMPT.to_owned()
    }

    /// The error of an attempt whose code ran too long.
    #[doc(hidden)]
    pub fn start_to_close_error(name: &str, limit: Duration) -> String {
        format!("{START_TO_CLOSE}activity {name} ran longer than {limit:?}")
    }

    /// The error of a call that did not end in time, with the attempt that was under way and the error
    /// of the one before it.
    pub(crate) fn schedule_to_close_error(
        name: &str,
        limit: Duration,
        attempt: u32,
        last_error: Option<&str>,
    ) -> String {
        let head = format!(
            "{SCHEDULE_TO_CLOSE}activity {name} did not end within {limit:?} (attempt {attempt}"
        );
        match last_error {
            Some(error) => format!("{head}; the one before failed: {error})"),
            None => head + ")",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r4_102_the_kind_is_read_off_the_text() {
        let minute = Duration::from_secs(60);
        let started = ActivityTimeout::start_to_close_error("Charge", minute);
        assert_eq!(started, "timeout: start-to-close: activity Charge ran longer than 60s");
        assert_eq!(ActivityTimeout::of(&started), Some(ActivityTimeout::StartToClose));
        let scheduled = ActivityTimeout::schedule_to_close_error("Charge", minute, 2, Some("busy"));
        assert_eq!(
            scheduled,
            "timeout: schedule-to-close: activity Charge did not end within 60s (attempt 2; the one before failed: busy)"
        );
        assert_eq!(ActivityTimeout::of(&scheduled), Some(ActivityTimeout::ScheduleToClose));
        let attempt = ActivityTimeout::attempt_error();
        assert_eq!(ActivityTimeout::of(&attempt), Some(ActivityTimeout::Attempt));
        for other in ["", "busy", "timeout", "timeout: activity timed out while dialling"] {
            assert_eq!(ActivityTimeout::of(other), None, "{other}");
        }
    }
}
