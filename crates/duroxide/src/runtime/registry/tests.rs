//! Registration, clashes, policies and lookup, rule by rule.

use duroxide_core::context::OrchestrationContext;

use super::*;
use crate::runtime::activity::tests::some_context;

/// An orchestration that says `text`.
fn saying(
    text: &'static str,
) -> impl Fn(OrchestrationContext, String) -> std::future::Ready<Result<String, String>> + Clone {
    move |_, _| std::future::ready(Ok(text.to_owned()))
}

fn orchestration_context() -> OrchestrationContext {
    let text = String::from;
    OrchestrationContext::new(vec![], 1, text("i1"), text("Order"), text("1.0.0"), None)
}

async fn said(handler: Arc<dyn OrchestrationHandler>, input: &str) -> Result<String, String> {
    handler.invoke(orchestration_context(), input.to_owned()).await
}

/// What a new execution would say.
async fn said_by(registry: &OrchestrationRegistry, name: &str) -> String {
    said(registry.resolve_handler(name).unwrap().1, "").await.unwrap()
}

async fn done(registry: &ActivityRegistry, name: &str, input: &str) -> Result<String, String> {
    let (_, handler) = registry.resolve_handler(name).unwrap();
    handler.invoke(some_context(), input.to_owned()).await
}

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn three_versions() -> OrchestrationRegistryBuilder {
    OrchestrationRegistry::builder()
        .register("Order", saying("one"))
        .register_versioned("Order", "1.1.0", saying("one-one"))
        .register_versioned("Order", "2.0.0", saying("two"))
}

/// The text of the panic that `action` ends in.
fn panic_of(action: impl FnOnce() + std::panic::UnwindSafe) -> String {
    *std::panic::catch_unwind(action).unwrap_err().downcast::<String>().unwrap()
}

#[tokio::test]
async fn r7_100_r7_101_plain_registrations_are_version_1() {
    let orchestrations = OrchestrationRegistry::builder().register("Order", saying("one")).build();
    assert_eq!(orchestrations.resolve_version("Order"), Some(version("1.0.0")));
    assert_eq!(said_by(&orchestrations, "Order").await, "one");

    let activities = ActivityRegistry::builder()
        .register("Echo", |ctx: crate::runtime::ActivityContext, input: String| async move {
            Ok(format!("{}: {input}", ctx.activity_name()))
        })
        .build_result()
        .unwrap();
    assert_eq!(activities.resolve_version("Echo"), Some(version("1.0.0")));
    assert_eq!(done(&activities, "Echo", "hello").await.unwrap(), "Charge: hello");
}

#[tokio::test]
async fn r7_101_typed_registrations_use_the_codec() {
    let double = |_: OrchestrationContext, number: u32| async move { Ok(number * 2) };
    let orchestrations = OrchestrationRegistry::builder()
        .register_typed("Double", double)
        .register_versioned_typed("Double", "1.1.0", |_, name: String| async move { Ok(name) })
        .build_result()
        .unwrap();
    let first = orchestrations.resolve_handler_exact("Double", &version("1.0.0")).unwrap();
    assert_eq!(said(first.clone(), "21").await.unwrap(), "42");
    assert!(said(first, "many").await.unwrap_err().contains("expected"));
    let second = orchestrations.resolve_handler("Double").unwrap().1;
    assert_eq!(said(second, "raw text").await.unwrap(), "raw text");

    let activities = ActivityRegistry::builder()
        .register_typed(
            "Sum",
            |_, numbers: Vec<u32>| async move { Ok(numbers.iter().sum::<u32>()) },
        )
        .register_typed("Refuse", |_, (): ()| async move { Err::<u32, _>("no".to_owned()) })
        .build_result()
        .unwrap();
    assert_eq!(done(&activities, "Sum", "[1,2,3]").await.unwrap(), "6");
    // R5.13
    assert!(done(&activities, "Sum", "six").await.unwrap_err().contains("expected"));
    assert_eq!(done(&activities, "Refuse", "null").await.unwrap_err(), "no");
}

#[tokio::test]
async fn r7_102_the_first_registration_stays_and_the_second_is_an_error() {
    let twice = || {
        OrchestrationRegistry::builder()
            .register("Order", saying("first"))
            .register("Order", saying("second"))
            .register_versioned("Order", "1.0.0", saying("third"))
    };
    assert_eq!(said_by(&twice().build(), "Order").await, "first");
    let duplicate = "duplicate orchestration registration: Order@1.0.0";
    assert_eq!(twice().build_result().err(), Some(format!("{duplicate}; {duplicate}")));

    let activities = || {
        ActivityRegistry::builder()
            .register("Echo", |_, input| async move { Ok(input) })
            .register_typed("Echo", |_, _: String| async move { Ok("second") })
    };
    assert_eq!(done(&activities().build(), "Echo", "first").await.unwrap(), "first");
    assert_eq!(
        activities().build_result().err().as_deref(),
        Some("duplicate activity registration: Echo@1.0.0")
    );
}

#[tokio::test]
async fn r7_102_typed_orchestrations_are_no_exception() {
    let builder = || {
        OrchestrationRegistry::builder()
            .register("Order", saying("first"))
            .register_typed("Order", |_, _: String| async move { Ok("second".to_owned()) })
            .register_typed("Order", |_, _: String| async move { Ok("third".to_owned()) })
    };
    let duplicate = "duplicate orchestration registration: Order@1.0.0";
    assert_eq!(builder().build_result().err(), Some(format!("{duplicate}; {duplicate}")));
    assert_eq!(said_by(&builder().build(), "Order").await, "first");
}

#[test]
fn r7_112_mistakes_are_not_lost_on_the_way_to_a_runtime() {
    let mistaken = || {
        ActivityRegistry::builder()
            .register("Echo", |_, input| async { Ok(input) })
            .register("Echo", |_, input| async { Ok(input) })
            .build()
    };
    let duplicate = "duplicate activity registration: Echo@1.0.0";
    let copied = ActivityRegistry::builder_from(&mistaken());
    assert_eq!(copied.build_result().err().as_deref(), Some(duplicate));
    let merged = ActivityRegistry::builder().merge(mistaken().clone());
    assert_eq!(merged.build_result().err().as_deref(), Some(duplicate));
    assert!(panic_of(move || mistaken().check()).ends_with(duplicate));
    ActivityRegistry::builder().register("Echo", |_, input| async { Ok(input) }).build().check();
}

#[test]
fn r7_103_lower_and_unparsable_versions_panic() {
    let register = |version: &'static str| {
        panic_of(move || drop(three_versions().register_versioned("Order", version, saying("x"))))
    };
    assert!(register("1.5.0").starts_with("non-monotonic orchestration version for Order"));
    assert!(register("one").contains("Order: one"));
    let typed = panic_of(|| {
        drop(
            three_versions()
                .register_versioned_typed("Order", "0.1.0", |_, _: String| async { Ok(()) }),
        );
    });
    assert!(typed.starts_with("non-monotonic orchestration version for Order"));
}

#[test]
fn r7_103_an_exact_duplicate_is_an_error_instead() {
    for known in ["1.0.0", "1.1.0", "2.0.0"] {
        let builder = three_versions().register_versioned("Order", known, saying("x"));
        assert_eq!(
            builder.build_result().err(),
            Some(format!("duplicate orchestration registration: Order@{known}"))
        );
    }
}

#[test]
fn r7_104_reserved_activity_names_are_skipped() {
    let builder = || {
        ActivityRegistry::builder()
            .register("__duroxide_syscall:new_guid", |_, _| async { Ok(String::new()) })
            .register_typed("__duroxide_syscall:x", |_, (): ()| async { Ok(()) })
    };
    assert_eq!(builder().build().count(), 0);
    assert_eq!(
        builder().build_result().err().unwrap(),
        "activity name '__duroxide_syscall:new_guid' uses reserved prefix '__duroxide_syscall:'; \
         activity name '__duroxide_syscall:x' uses reserved prefix '__duroxide_syscall:'"
    );
}

#[tokio::test]
async fn r7_106_merge_keeps_what_is_there_and_takes_no_policies() {
    let other = three_versions()
        .set_policy("Order", VersionPolicy::Exact(version("1.1.0")))
        .register("Ship", saying("ship"))
        .build();
    let builder =
        || OrchestrationRegistry::builder().register("Order", saying("mine")).merge(other.clone());
    assert_eq!(
        builder().build_result().err().as_deref(),
        Some("duplicate orchestration in merge: Order@1.0.0")
    );
    let merged = builder().build();
    assert_eq!(merged.list_versions("Order"), other.list_versions("Order"));
    assert_eq!(said_by(&merged, "Order").await, "two");
    assert_eq!(said_by(&merged, "Ship").await, "ship");
    let first = merged.resolve_handler_exact("Order", &version("1.0.0")).unwrap();
    assert_eq!(said(first, "").await.unwrap(), "mine");

    let echo = || ActivityRegistry::builder().register("Echo", |_, input| async { Ok(input) });
    assert_eq!(
        echo().merge(echo().build()).build_result().err().as_deref(),
        Some("duplicate activity in merge: Echo@1.0.0")
    );
}

#[tokio::test]
async fn r7_107_builder_from_copies_handlers_and_policies() {
    let original = three_versions().build();
    original.set_version_policy("Order", VersionPolicy::Exact(version("1.1.0")));
    let copy = OrchestrationRegistry::builder_from(&original)
        .register_all(vec![("A", saying("ab")), ("B", saying("ab"))])
        .build_result()
        .unwrap();
    assert_eq!(said_by(&copy, "Order").await, "one-one");
    assert_eq!((copy.count(), original.count()), (3, 1));
    // A copy, not a share.
    original.set_version_policy("Order", VersionPolicy::Latest);
    assert_eq!(copy.resolve_version("Order"), Some(version("1.1.0")));

    let echo = |_, input| async { Ok(input) };
    let activities = ActivityRegistry::builder().register_all(vec![("A", echo), ("B", echo)]);
    let more = ActivityRegistryBuilder::from_registry(&activities.build())
        .register("C", |_, input| async { Ok(input) });
    assert_eq!(more.build_result().unwrap().count(), 3);
}

#[test]
fn r7_108_policies_are_shared_by_clones() {
    let registry = three_versions().set_policy("Order", VersionPolicy::Exact(version("1.0.0")));
    let registry = registry.build();
    let clone = registry.clone();
    assert_eq!(clone.resolve_version("Order"), Some(version("1.0.0")));
    registry.set_version_policy("Order", VersionPolicy::Latest);
    assert_eq!(clone.resolve_version("Order"), Some(version("2.0.0")));
    registry.set_version_policy("Order", VersionPolicy::Exact(version("9.9.9")));
    assert_eq!(clone.resolve_version("Order"), None);
}

#[tokio::test]
async fn r7_109_lookup() {
    let registry = three_versions().register("Ship", saying("ship")).build();
    let (latest, handler) = registry.resolve_handler("Order").unwrap();
    assert_eq!((latest, said(handler, "").await.unwrap()), (version("2.0.0"), "two".to_owned()));
    assert_eq!(registry.list_versions("Order"), ["1.0.0", "1.1.0", "2.0.0"].map(version));
    let mut names = registry.list_names();
    names.sort();
    assert_eq!(names, ["Order", "Ship"]);
    assert!(registry.has("Order") && registry.count() == 2);

    assert!(!registry.has("Odrer") && registry.list_versions("Odrer").is_empty());
    assert!(registry.resolve_handler("Odrer").is_none());
    assert!(registry.resolve_version("Odrer").is_none());
    assert_eq!(OrchestrationRegistry::default().count(), 0);
}

#[tokio::test]
async fn r7_110_exact_lookup_ignores_policy_and_newer_versions() {
    let registry = three_versions().build();
    registry.set_version_policy("Order", VersionPolicy::Exact(version("2.0.0")));
    let old = registry.resolve_handler_exact("Order", &version("1.0.0")).unwrap();
    assert_eq!(said(old, "").await.unwrap(), "one");
    assert!(registry.resolve_handler_exact("Order", &version("1.0.1")).is_none());
}

#[test]
fn r9_57_misses_are_logged_for_those_who_ask() {
    let registry = three_versions().build();
    let lines = crate::runtime::observability::written_as_json("debug", || {
        assert!(registry.resolve_handler("Odrer").is_none());
        assert!(registry.resolve_handler_exact("Order", &version("3.0.0")).is_none());
        assert!(registry.resolve_handler("Order").is_some());
    });
    let misses: Vec<_> =
        lines.iter().filter(|line| line["target"] == "duroxide::runtime::registry").collect();
    assert_eq!(misses.len(), 2);
    assert_eq!(misses[0]["fields"]["name"], "Odrer");
    assert_eq!(misses[1]["fields"]["version"], "3.0.0");
}

/// More uncontended locks than tokio lets a task take in one go.
async fn locks_often(_: OrchestrationContext, _: String) -> Result<String, String> {
    let mutex = tokio::sync::Mutex::new(0);
    for _ in 0..1_000 {
        *mutex.lock().await += 1;
    }
    Ok(mutex.into_inner().to_string())
}

#[tokio::test]
async fn r3_7_the_budget_of_the_task_around_a_turn_does_not_reach_its_code() {
    let registry = OrchestrationRegistry::builder()
        .register("Plain", locks_often)
        .register_versioned("Plain", "2.0.0", locks_often)
        .register_typed("Typed", locks_often)
        .register_versioned_typed("Typed", "2.0.0", locks_often)
        .build();
    for name in registry.list_names() {
        for version in registry.list_versions(&name) {
            let handler = registry.resolve_handler_exact(&name, &version).unwrap();
            let mut code = std::pin::pin!(said(handler, "\"\""));
            let once = std::future::poll_fn(|cx| std::task::Poll::Ready(code.as_mut().poll(cx)));
            let polled = once.await;
            assert!(polled.is_ready(), "{name} {version} was interrupted");
        }
    }
}
