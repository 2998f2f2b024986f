//! What people are told when something is wrong: which payload, which name, which store.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::memory::MemoryProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{Client, ClientError, ErrorDetails, OrchestrationContext, OrchestrationRegistry};

use crate::support::numbers::{Board, counters};
use crate::support::{world, world_on};

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn r9_60_a_payload_that_new_code_cannot_read_is_named_and_counted() {
    let before = world()
        .echo("Count")
        .orchestration("Main", |ctx, _| async move {
            let count: String = ctx.schedule_activity_typed("Count", &"many").await?;
            ctx.schedule_wait("go").await;
            Ok(count)
        })
        .start()
        .await;
    before.begin("m", "Main", "").await;
    before.until("m", |history| history.len() == 4).await;
    let memory = before.close().await;

    let board = Board::default();
    let _counting = board.count();
    let after = world_on(memory)
        .echo("Count")
        .orchestration("Main", |ctx, _| async move {
            let count: u32 = ctx.schedule_activity_typed("Count", &"many").await?;
            ctx.schedule_wait("go").await;
            Ok(count.to_string())
        })
        .start()
        .await;
    after.client.raise_event("m", "go", "").await.unwrap();
    let error = after.error("m").await;
    assert!(matches!(error, ErrorDetails::Configuration { .. }), "{error:?}");
    let shown = error.display_message();
    let expected = "nondeterministic: result of activity 'Count' (event 2) of instance 'm' cannot \
                    be decoded as u32: expected value at line 1 column 1; so code returned before \
                    history was consumed: ";
    assert!(shown.starts_with(expected), "{shown}");
    let numbers = board.take();
    let failures = counters(&numbers, "duroxide_orchestration_failures");
    let [(name, 1)] = &failures[..] else { panic!("{failures:?}") };
    assert!(name.contains("error_category=configuration,error_type=decode_error"), "{name}");
    assert_eq!(after.runtime.metrics_snapshot().unwrap().orch_configuration_errors, 1);
    after.finish().await;
}

#[tokio::test]
async fn r9_61_errors_of_decoding_say_what_of_whom() {
    let store = Arc::new(MemoryProvider::new());
    let activities = ActivityRegistry::builder()
        .register_typed("Double", |_ctx, n: u32| async move { Ok(n * 2) })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register_typed("Typed", |_: OrchestrationContext, n: u32| async move { Ok(n) })
        .register("Wrong", |ctx: OrchestrationContext, input: String| async move {
            ctx.set_kv_value("size", "large");
            ctx.schedule_activity("Double", input).await
        })
        .register("Event", |ctx: OrchestrationContext, _: String| async move {
            let n: u32 = ctx.dequeue_event_typed("numbers").await;
            Ok(n.to_string())
        })
        .register("Child", |ctx: OrchestrationContext, _: String| async move {
            let text: Vec<u8> = ctx.schedule_sub_orchestration_typed("Typed", &7).await?;
            Ok(format!("{text:?}"))
        })
        .register("Text", |_: OrchestrationContext, input: String| async move { Ok(input) })
        .build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);
    client.enqueue_event("e", "numbers", "some").await.unwrap();
    for (id, name) in
        [("t", "Typed"), ("w", "Wrong"), ("e", "Event"), ("c", "Child"), ("x", "Text")]
    {
        client.start_orchestration(id, name, "some").await.unwrap();
    }
    let value = "expected value at line 1 column 1";
    for (id, expected) in [
        ("t", format!("input of orchestration 'Typed' cannot be decoded: {value}")),
        (
            "w",
            format!("input of activity 'Double' of instance 'w' cannot be decoded as u32: {value}"),
        ),
        (
            "e",
            format!(
                "orchestration panicked: queue message 'numbers' (event 3) cannot be decoded: {value}"
            ),
        ),
        (
            "c",
            "result of sub-orchestration 'Typed' (event 2) cannot be decoded: invalid type: \
             integer `7`, expected a sequence at line 1 column 1"
                .to_owned(),
        ),
    ] {
        let ended: Result<String, String> =
            client.wait_for_orchestration_typed(id, PATIENCE).await.unwrap();
        assert_eq!(ended, Err(expected));
    }
    let typed = client.wait_for_orchestration_typed::<u32>("x", PATIENCE).await;
    assert_invalid(typed, &format!("decode failed: output of instance 'x' is not u32: {value}"));
    let typed = client.get_kv_value_typed::<u32>("w", "size").await;
    let expected = "KV deserialization error: value of key 'size' of instance 'w' is not u32: ";
    assert_invalid(typed, &format!("{expected}{value}"));
    runtime.shutdown(None).await;
}

fn assert_invalid<T: std::fmt::Debug>(answer: Result<T, ClientError>, expected: &str) {
    match answer {
        Err(ClientError::InvalidInput { message }) => assert_eq!(message, expected),
        other => panic!("{other:?}"),
    }
}
