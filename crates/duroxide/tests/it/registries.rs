//! What a runtime does with registries that were not built as meant (chapter 7.10).

use std::sync::Arc;

use duroxide::providers::memory::MemoryProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, OrchestrationContext, OrchestrationRegistry};
use tracing::Level;

use crate::support::logs::listen;

async fn first(_: OrchestrationContext, _: String) -> Result<String, String> {
    Ok("first".to_owned())
}

async fn second(_: OrchestrationContext, _: String) -> Result<String, String> {
    Ok("second".to_owned())
}

async fn echo(_: ActivityContext, input: String) -> Result<String, String> {
    Ok(input)
}

/// What a start with these registries panics with.
async fn refused(activities: ActivityRegistry, orchestrations: OrchestrationRegistry) -> String {
    let store = Arc::new(MemoryProvider::new());
    let start = tokio::spawn(async move {
        Runtime::start_with_store(store, activities, orchestrations).await;
    });
    let payload = start.await.expect_err("the start should be refused").into_panic();
    *payload.downcast::<String>().unwrap()
}

#[tokio::test]
async fn r7_112_a_runtime_does_not_choose_between_two_handlers_of_one_name() {
    let none = || OrchestrationRegistry::builder().build();
    let no_activities = || ActivityRegistry::builder().build();
    let one = || OrchestrationRegistry::builder().register("A", first);
    for (twice, mistake) in [
        (one().register("A", second), "duplicate orchestration registration: A@1.0.0"),
        (one().register_typed("A", second), "duplicate orchestration registration: A@1.0.0"),
        (
            one().register_versioned("A", "1.0.0", second),
            "duplicate orchestration registration: A@1.0.0",
        ),
        (one().merge(one().build()), "duplicate orchestration in merge: A@1.0.0"),
    ] {
        let refusal = refused(no_activities(), twice.build()).await;
        assert!(refusal.ends_with(mistake), "{refusal}");
    }
    let activities = ActivityRegistry::builder().register("E", echo).register_typed("E", echo);
    let refusal = refused(activities.build(), none()).await;
    assert!(refusal.ends_with("duplicate activity registration: E@1.0.0"), "{refusal}");
}

#[tokio::test]
async fn r7_112_a_reserved_name_is_complained_of_when_a_runtime_starts() {
    let logs = listen();
    let reserved = ActivityRegistry::builder().register("__duroxide_syscall:new_guid", echo);
    let orchestrations = OrchestrationRegistry::builder().build();
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::start_with_store(store, reserved.build(), orchestrations).await;
    runtime.shutdown(None).await;
    assert_eq!(logs.one("uses reserved prefix").level, Level::ERROR);
}
