//! What features add.

// R7.132
#[cfg(feature = "test-hooks")]
#[test]
fn test_hooks() {
    use std::time::Duration;

    use duroxide::runtime::test_hooks::{
        clear_orch_processing_delay, get_orch_processing_delay, set_orch_processing_delay,
    };

    let delay = Duration::from_millis(5);
    set_orch_processing_delay(delay, Some("only-these-"));
    assert_eq!(get_orch_processing_delay("only-these-1"), Some(delay));
    assert_eq!(get_orch_processing_delay("others"), None);
    clear_orch_processing_delay();
    assert_eq!(get_orch_processing_delay("only-these-1"), None);
}

// R2.60
#[cfg(feature = "replay-version-test")]
#[test]
fn second_generation_events_keep_their_names() {
    use duroxide::EventKind;

    let kind = EventKind::ExternalEvent2 { name: "n".into(), topic: "t".into(), data: "d".into() };
    let json = serde_json::to_value(&kind).unwrap();
    assert_eq!(json["type"], "ExternalEvent2");
    let kind = EventKind::ExternalSubscribed2 { name: "n".into(), topic: "t".into() };
    assert_eq!(serde_json::to_value(&kind).unwrap()["type"], "ExternalSubscribed2");
}
