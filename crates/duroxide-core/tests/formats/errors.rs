//! Errors: stored form, family, text.

use duroxide_core::model::{
    AppErrorKind, ConfigErrorKind, ErrorDetails, PoisonMessageType, SystemStats,
};

use super::{assert_complete, assert_golden, variants};

variants! { ErrorDetails: Infrastructure, Configuration, Application, Poison }

fn s(text: &str) -> String {
    text.to_owned()
}

fn poison(message_type: PoisonMessageType, message: &str) -> ErrorDetails {
    ErrorDetails::Poison { attempt_count: 11, max_attempts: 10, message_type, message: s(message) }
}

fn nondeterminism(message: Option<&str>) -> ErrorDetails {
    ErrorDetails::Configuration {
        kind: ConfigErrorKind::Nondeterminism,
        resource: s("MyOrch"),
        message: message.map(s),
    }
}

/// The errors of `errors.jsonl`: family, whether trying again may help, text.
fn errors() -> Vec<(ErrorDetails, &'static str, bool, &'static str)> {
    let app = |kind| ErrorDetails::application(kind, "boom");
    let (instance, execution_id) = (s("inst-1"), 1);
    let activity = PoisonMessageType::Activity {
        instance: instance.clone(),
        execution_id,
        activity_name: s("A"),
        activity_id: 2,
    };
    let unreadable = PoisonMessageType::FailedDeserialization {
        instance: instance.clone(),
        execution_id,
        error: s("unknown variant"),
    };
    let infrastructure = ErrorDetails::Infrastructure {
        operation: s("ack_orchestration_item"),
        message: s("db down"),
        retryable: true,
    };
    vec![
        (infrastructure, "infrastructure", true, "infrastructure:ack_orchestration_item: db down"),
        (
            nondeterminism(Some("schedule mismatch")),
            "configuration",
            false,
            "nondeterministic: schedule mismatch",
        ),
        (nondeterminism(None), "configuration", false, "nondeterministic in MyOrch"),
        (app(AppErrorKind::ActivityFailed), "application", false, "boom"),
        (app(AppErrorKind::OrchestrationFailed), "application", false, "boom"),
        (app(AppErrorKind::Panicked), "application", false, "orchestration panicked: boom"),
        (ErrorDetails::cancelled("user asked"), "application", false, "canceled: user asked"),
        (
            poison(PoisonMessageType::Orchestration { instance, execution_id }, "[]"),
            "poison",
            false,
            "poison: orchestration inst-1 exceeded 11 attempts (max 10)",
        ),
        (
            poison(activity, "{}"),
            "poison",
            false,
            "poison: activity A#2 exceeded 11 attempts (max 10)",
        ),
        (
            poison(unreadable, "{}"),
            "poison",
            false,
            "poison: orchestration inst-1 history deserialization failed after 11 attempts (max 10): unknown variant",
        ),
    ]
}

#[test]
fn r2_80_r2_86_errors() {
    let details: Vec<ErrorDetails> = errors().into_iter().map(|(details, ..)| details).collect();
    assert_golden(include_str!("errors.jsonl"), &details);
    assert_complete(VARIANTS, details.iter().map(variant));
}

#[test]
fn r2_81_r2_82_r2_83_families_and_texts() {
    for (details, category, retryable, text) in errors() {
        assert_eq!(details.category(), category);
        assert_eq!(details.is_retryable(), retryable);
        assert_eq!(details.display_message(), text);
    }
    let retryable = ErrorDetails::Application {
        kind: AppErrorKind::ActivityFailed,
        message: s("boom"),
        retryable: true,
    };
    assert!(retryable.is_retryable());
}

#[test]
fn r2_80_parts_alone() {
    assert_golden("\"Nondeterminism\"", &[ConfigErrorKind::Nondeterminism]);
    assert_golden("\"ActivityFailed\"", &[AppErrorKind::ActivityFailed]);
    assert_golden(r#"{"Cancelled":{"reason":"x"}}"#, &[AppErrorKind::Cancelled { reason: s("x") }]);
}

#[test]
fn system_stats() {
    assert_golden(
        r#"{"history_event_count":1,"history_size_bytes":2,"queue_pending_count":3,"kv_user_key_count":4,"kv_total_value_bytes":5}"#,
        &[SystemStats {
            history_event_count: 1,
            history_size_bytes: 2,
            queue_pending_count: 3,
            kv_user_key_count: 4,
            kv_total_value_bytes: 5,
        }],
    );
}
