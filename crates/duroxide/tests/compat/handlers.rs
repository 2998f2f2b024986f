//! Handlers in every shape callers write them: functions, closures, methods, boxed futures, typed
//! ones, and implementations of the traits.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use duroxide::providers::memory::MemoryProvider;
use duroxide::runtime::registry::{ActivityRegistry, ActivityRegistryBuilder, VersionPolicy};
use duroxide::runtime::{ActivityHandler, FnActivity, FnOrchestration, Runtime};
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationHandler, OrchestrationHandlerRef,
    OrchestrationRegistry, OrchestrationRegistryBuilder,
};
use semver::Version;
use serde::{Deserialize, Serialize};

type Text = Result<String, String>;
type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    id: u32,
    note: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    total: u32,
}

// ---- activities ---------------------------------------------------------------------------------

async fn function(_ctx: ActivityContext, input: String) -> Text {
    Ok(format!("function {input}"))
}

fn boxed(_ctx: ActivityContext, input: String) -> BoxFuture<Text> {
    Box::pin(async move { Ok(format!("boxed {input}")) })
}

fn boxed_too(_ctx: ActivityContext, input: String) -> BoxFuture<Text> {
    Box::pin(async move { Ok(format!("boxed too {input}")) })
}

async fn charge(_ctx: ActivityContext, order: Order) -> Result<Receipt, String> {
    Ok(Receipt { total: order.id + order.note.map_or(0, |note| note.len() as u32) })
}

struct Service {
    calls: AtomicUsize,
}

impl Service {
    fn call(self: Arc<Self>, input: String) -> impl Future<Output = Text> + Send {
        async move { Ok(format!("call {} {input}", self.calls.fetch_add(1, Ordering::SeqCst))) }
    }
}

/// A handler with state of its own.
struct Prefixed(&'static str);

#[async_trait]
impl ActivityHandler for Prefixed {
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String> {
        Ok(format!("{} {} {input}", self.0, ctx.activity_name()))
    }
}

fn activities() -> ActivityRegistryBuilder {
    let service = Arc::new(Service { calls: AtomicUsize::new(0) });
    let shared = Arc::new(String::from("shared"));
    let handler: Arc<dyn ActivityHandler> = Arc::new(Prefixed("prefixed"));
    let pointers: Vec<(&str, fn(ActivityContext, String) -> BoxFuture<Text>)> =
        vec![("boxed", boxed), ("boxed too", boxed_too)];
    let typed = |_ctx: ActivityContext, order: Order| async move { Ok(order.id) };
    ActivityRegistry::builder()
        .register("function", function)
        .register(String::from("closure"), |_ctx: ActivityContext, input: String| async move {
            Ok(format!("closure {input}"))
        })
        .register("untyped closure", |ctx, _input| async move { Ok(ctx.worker_id().to_owned()) })
        .register("capturing", move |_ctx, input| {
            let shared = Arc::clone(&shared);
            async move { Ok(format!("{shared} {input}")) }
        })
        .register("method", move |_ctx, input| Arc::clone(&service).call(input))
        .register("boxing closure", |_ctx, input: String| -> BoxFuture<Text> {
            Box::pin(async move { Ok(format!("boxing {input}")) })
        })
        .register("trait", move |ctx, input| {
            let handler = Arc::clone(&handler);
            async move { handler.invoke(ctx, input).await }
        })
        .register(
            "wrapped",
            |ctx, input| async move { FnActivity(function).invoke(ctx, input).await },
        )
        .register_all(pointers)
        .register_all(vec![("twice 1", function), ("twice 2", function)])
        .register_typed("charge", charge)
        .register_typed("typed closure", typed)
        .register_typed::<u32, u32, _, _>("turbofish", |_ctx, n| async move { Ok(n + 1) })
}

// ---- orchestrations -----------------------------------------------------------------------------

async fn calls_all(ctx: OrchestrationContext, input: String) -> Text {
    let mut answers = BTreeMap::new();
    for name in ["function", "closure", "capturing", "method", "boxing closure", "boxed"] {
        answers.insert(name, ctx.schedule_activity(name, input.as_str()).await?);
    }
    for name in ["boxed too", "trait", "wrapped", "twice 1", "twice 2"] {
        answers.insert(name, ctx.schedule_activity(name, input.as_str()).await?);
    }
    let order = Order { id: 40, note: Some("hi".into()) };
    let receipt: Receipt = ctx.schedule_activity_typed("charge", &order).await?;
    assert_eq!(receipt, Receipt { total: 42 });
    let id: u32 = ctx.schedule_activity_typed("typed closure", &order).await?;
    let next: u32 = ctx.schedule_activity_typed("turbofish", &id).await?;
    assert_eq!(next, 41);
    Ok(answers.into_values().collect::<Vec<_>>().join("; "))
}

fn boxed_orchestration(_ctx: OrchestrationContext, input: String) -> BoxFuture<Text> {
    Box::pin(async move { Ok(format!("boxed {input}")) })
}

async fn typed_orchestration(ctx: OrchestrationContext, order: Order) -> Result<Receipt, String> {
    ctx.schedule_activity_typed("charge", &order).await
}

struct Greeter {
    greeting: String,
}

#[async_trait]
impl OrchestrationHandler for Greeter {
    async fn invoke(&self, ctx: OrchestrationContext, input: String) -> Result<String, String> {
        Ok(format!("{} {input} from {}", self.greeting, ctx.orchestration_version()))
    }
}

fn orchestrations() -> OrchestrationRegistryBuilder {
    let greeter: OrchestrationHandlerRef = Arc::new(Greeter { greeting: "hello".into() });
    let pointers: Vec<(&str, fn(OrchestrationContext, String) -> BoxFuture<Text>)> =
        vec![("pointer", boxed_orchestration)];
    OrchestrationRegistry::builder()
        .register("calls_all", calls_all)
        .register("closure", |_ctx, input| async move { Ok(input) })
        .register("boxed", boxed_orchestration)
        .register("trait", move |ctx, input| {
            let greeter = greeter.clone();
            async move { greeter.invoke(ctx, input).await }
        })
        .register("wrapped", |ctx, input| async move {
            FnOrchestration(boxed_orchestration).invoke(ctx, input).await
        })
        .register_all(pointers)
        .register_typed("typed", typed_orchestration)
        .register_typed("typed closure", |_ctx: OrchestrationContext, n: u32| async move {
            Ok::<_, String>(vec![n, n + 1])
        })
        .register_versioned("versioned", "1.0.0", |_ctx, _input| async move { Ok("1".into()) })
        .register_versioned("versioned", String::from("1.1.0"), |_ctx, _input| async move {
            Ok("1.1".into())
        })
        .register_versioned_typed(
            "versioned",
            "2.0.0",
            |_ctx: OrchestrationContext, n: u8| async move { Ok::<u8, String>(n) },
        )
        .set_policy("versioned", VersionPolicy::Exact(Version::new(1, 1, 0)))
}

#[test]
fn registries_tell_what_they_hold() {
    let activities = activities().build_result().unwrap();
    assert_eq!((activities.count(), activities.has("trait")), (15, true));
    let more = ActivityRegistryBuilder::from_registry(&activities).register("more", function);
    let other = ActivityRegistry::builder().register("function", function).build();
    let clash = more.merge(other).build_result();
    assert_eq!(clash.err().unwrap(), "duplicate activity in merge: function@1.0.0");

    let orchestrations = orchestrations().build_result().unwrap();
    assert_eq!(orchestrations.list_versions("versioned").len(), 3);
    assert_eq!(orchestrations.resolve_version("versioned"), Some(Version::new(1, 1, 0)));
    orchestrations.set_version_policy("versioned", VersionPolicy::Latest);
    let (version, _handler) = orchestrations.resolve_handler("versioned").unwrap();
    assert_eq!(version, Version::new(2, 0, 0));
    assert!(orchestrations.resolve_handler_exact("versioned", &Version::new(3, 0, 0)).is_none());
    let copied = OrchestrationRegistry::builder_from(&orchestrations)
        .merge(OrchestrationRegistry::default())
        .register_all_handlers(vec![("all", boxed_orchestration)], |builder, name, handler| {
            builder.register(name, handler)
        })
        .build();
    assert_eq!(copied.count(), orchestrations.count() + 1);
}

#[tokio::test]
async fn all_shapes_run() {
    let store = Arc::new(MemoryProvider::new());
    let runtime =
        Runtime::start_with_store(store.clone(), activities().build(), orchestrations().build())
            .await;
    let client = Client::new(store);
    let run = async |name: &str, input: &str| {
        client.start_orchestration(name, name, input).await.unwrap();
        let patience = Duration::from_secs(20);
        client.wait_for_orchestration_typed::<String>(name, patience).await.unwrap().unwrap()
    };
    assert_eq!(
        run("calls_all", "x").await,
        "boxed x; boxed too x; boxing x; shared x; closure x; function x; call 0 x; \
         prefixed trait x; function x; function x; function x"
    );
    assert_eq!(run("closure", "x").await, "x");
    assert_eq!(run("boxed", "x").await, "boxed x");
    assert_eq!(run("trait", "x").await, "hello x from 1.0.0");
    assert_eq!(run("wrapped", "x").await, "boxed x");
    assert_eq!(run("pointer", "x").await, "boxed x");
    assert_eq!(run("typed", r#"{"id":3,"note":null}"#).await, r#"{"total":3}"#);
    assert_eq!(run("typed closure", "4").await, "[4,5]");
    assert_eq!(run("versioned", "").await, "1.1");
    runtime.shutdown(None).await;
}
