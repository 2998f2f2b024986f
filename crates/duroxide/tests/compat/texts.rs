//! Texts that callers and their tests read: `Debug`, `Display`, and the values behind `Default`.

use std::time::Duration;

use duroxide::providers::{ExecutionMetadata, ProviderError};
use duroxide::runtime::observability::MetricsSnapshot;
use duroxide::runtime::{LogFormat, UnregisteredBackoffConfig};
use duroxide::*;

use crate::samples;

// R7.10
#[test]
fn runtime_options_print_their_defaults() {
    let expected = "\
RuntimeOptions {
    dispatcher_min_poll_interval: 100ms,
    dispatcher_long_poll_timeout: 30s,
    orchestration_concurrency: 2,
    worker_concurrency: 2,
    orchestrator_lock_timeout: 5s,
    orchestrator_lock_renewal_buffer: 2s,
    worker_lock_timeout: 30s,
    worker_lock_renewal_buffer: 5s,
    observability: ObservabilityConfig {
        log_format: Pretty,
        log_level: \"info\",
        service_name: \"duroxide\",
        service_version: None,
        gauge_poll_interval: 60s,
    },
    unregistered_backoff: UnregisteredBackoffConfig {
        base_delay: 1s,
        max_delay: 60s,
    },
    max_attempts: 10,
    activity_cancellation_grace_period: 10s,
    supported_replay_versions: None,
    session_lock_timeout: 30s,
    session_lock_renewal_buffer: 5s,
    session_idle_timeout: 300s,
    session_cleanup_interval: 300s,
    max_sessions_per_runtime: 10,
    worker_node_id: None,
    worker_tag_filter: DefaultOnly,
}";
    assert_eq!(format!("{:#?}", RuntimeOptions::default()), expected);
    assert_eq!(format!("{:#?}", samples::options()), expected);
}

#[test]
fn statuses_print_their_fields() {
    let [not_found, running, completed, failed] =
        samples::statuses().map(|status| format!("{status:?}"));
    assert_eq!(not_found, "NotFound");
    assert_eq!(running, r#"Running { custom_status: Some("50%"), custom_status_version: 3 }"#);
    assert_eq!(
        completed,
        r#"Completed { output: "out", custom_status: None, custom_status_version: 0 }"#
    );
    assert_eq!(
        failed,
        r#"Failed { details: Application { kind: ActivityFailed, message: "boom", retryable: false }, custom_status: None, custom_status_version: 0 }"#
    );
}

// R4.20
#[test]
fn policies_filters_and_ranges_print_their_fields() {
    assert_eq!(
        format!("{:?}", RetryPolicy::default()),
        "RetryPolicy { max_attempts: 3, backoff: Exponential { base: 100ms, multiplier: 2.0, max: 30s }, timeout: None }"
    );
    let [default_only, tags, default_and, ..] =
        samples::tag_filters().map(|filter| format!("{filter:?}"));
    assert_eq!(default_only, "DefaultOnly");
    assert_eq!(tags, r#"Tags({"gpu"})"#);
    assert_eq!(default_and, r#"DefaultAnd({"gpu"})"#);
    let range = &samples::filter().supported_duroxide_versions[0];
    assert_eq!(
        format!("{range:?}"),
        "SemverRange { min: Version { major: 0, minor: 0, patch: 0 }, max: Version { major: 0, minor: 1, patch: 32 } }"
    );
}

#[test]
fn provider_errors_read_operation_and_message() {
    assert_eq!(ProviderError::retryable("op", "msg").to_string(), "op: msg");
    let expected = r#"ProviderError { operation: "unknown", message: "msg", retryable: true }"#;
    assert_eq!(format!("{:?}", ProviderError::from("msg")), expected);
    assert_eq!(format!("{:?}", ProviderError::from(String::from("msg"))), expected);
}

#[test]
fn client_errors_say_what_happened_and_whether_to_retry() {
    let expected = [
        (true, "op: msg"),
        (false, "Management features not available - provider doesn't implement ProviderAdmin"),
        (false, "Invalid input: m"),
        (true, "Operation timed out"),
        (false, "Instance x is still running. Use force=true or cancel first."),
        (
            false,
            "Cannot delete sub-orchestration x directly. Delete the root orchestration instead.",
        ),
        (false, "Instance x not found"),
    ];
    let found = samples::client_errors().map(|error| (error.is_retryable(), error.to_string()));
    assert_eq!(found.each_ref().map(|(retryable, text)| (*retryable, text.as_str())), expected);
}

#[test]
fn error_details_have_a_category_and_a_text() {
    let found: Vec<(&str, bool, String)> = samples::errors()
        .iter()
        .map(|error| (error.category(), error.is_retryable(), error.display_message()))
        .collect();
    let expected = [
        ("infrastructure", true, "infrastructure:ack_orchestration_item: db down"),
        ("configuration", false, "nondeterministic: schedule mismatch"),
        ("application", false, "boom"),
        ("application", false, "boom"),
        ("application", false, "orchestration panicked: boom"),
        ("application", false, "canceled: user asked"),
        ("poison", false, "poison: orchestration inst-1 exceeded 11 attempts (max 10)"),
        ("poison", false, "poison: activity A#2 exceeded 11 attempts (max 10)"),
        (
            "poison",
            false,
            "poison: orchestration inst-1 history deserialization failed after 11 attempts (max 10): unknown variant",
        ),
    ];
    assert_eq!(found.iter().map(|(c, r, m)| (*c, *r, m.as_str())).collect::<Vec<_>>(), expected);
    let without_message = ErrorDetails::Configuration {
        kind: ConfigErrorKind::Nondeterminism,
        resource: "MyOrch".into(),
        message: None,
    };
    assert_eq!(without_message.display_message(), "nondeterministic in MyOrch");
}

#[test]
fn other_defaults() {
    assert_eq!(LogFormat::default(), LogFormat::Compact);
    assert_eq!(TagFilter::default(), TagFilter::DefaultOnly);
    assert_eq!(MetricsSnapshot::default(), samples::metrics_snapshot());
    let backoff = UnregisteredBackoffConfig::default();
    assert_eq!((backoff.base_delay.as_secs(), backoff.max_delay.as_secs()), (1, 60));
    assert_eq!(
        format!("{:?}", ExecutionMetadata::default()),
        "ExecutionMetadata { status: None, output: None, orchestration_name: None, orchestration_version: None, parent_instance_id: None, pinned_duroxide_version: None }"
    );
    assert_eq!(
        format!("{:?}", InstanceFilter::default()),
        "InstanceFilter { instance_ids: None, completed_before: None, limit: None }"
    );
    assert_eq!(
        format!("{:?}", PruneOptions::default()),
        "PruneOptions { keep_last: None, completed_before: None }"
    );
    assert_eq!(
        format!("{:?}", QueueDepths::default()),
        "QueueDepths { orchestrator_queue: 0, worker_queue: 0, timer_queue: 0 }"
    );
    assert_eq!(DeleteInstanceResult::default().instances_deleted, 0);
    assert_eq!(PruneResult::default().instances_processed, 0);
    assert_eq!(SystemMetrics::default().total_events, 0);
}

#[test]
fn computed_values() {
    let ms = Duration::from_millis;
    let delays = |backoff: BackoffStrategy| [1, 2, 3].map(|n| backoff.delay_for_attempt(n));
    assert_eq!(delays(BackoffStrategy::None), [ms(0); 3]);
    assert_eq!(delays(BackoffStrategy::Fixed { delay: ms(7) }), [ms(7); 3]);
    let linear = BackoffStrategy::Linear { base: ms(10), max: ms(25) };
    assert_eq!(delays(linear), [ms(10), ms(20), ms(25)]);
    assert_eq!(delays(BackoffStrategy::default()), [ms(100), ms(200), ms(400)]);
    let policy = RetryPolicy::new(4).with_timeout(ms(5)).with_backoff(BackoffStrategy::None);
    assert_eq!((policy.max_attempts, policy.timeout), (4, Some(ms(5))));
    assert_eq!(RetryPolicy::new(1).with_total_timeout(ms(6)).timeout, Some(ms(6)));
    assert_eq!(RetryPolicy::new(1).delay_for_attempt(2), ms(200));

    let event = Event::with_event_id(3, "i", 2, Some(1), EventKind::KeyValuesCleared);
    assert_eq!(
        (event.event_id(), event.source_event_id(), event.is_terminal()),
        (3, Some(1), false)
    );
    assert_eq!(event.duroxide_version, current_build_version().to_string());
    assert!(event.timestamp_ms > 1_700_000_000_000);
    assert_eq!(Event::new(String::from("i"), 2, None, event.kind).event_id, 0);

    assert_eq!(Either2::<u8, u8>::Second(5).into_tuple(), (1, 5));
    assert_eq!(Either3::<u8, u8, u8>::Third(5).into_tuple(), (2, 5));
    let first: Either2<u8, &str> = Either2::First(1);
    assert!(first.is_first() && !first.is_second() && first.index() == 0);

    assert_eq!(build_child_instance_id("p", "sub::2"), "p::sub::2");
    assert!(is_auto_generated_sub_orch_id("sub::2"));
    let tree = samples::management().tree;
    assert_eq!((tree.size(), tree.is_root_only()), (2, false));
}
