//! Names and values of every kind, through every interface, come back as they were (R10.20).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::providers::invariants::check_invariants;
use duroxide::providers::{DeadLetter, Provider, ProviderAdmin, TagFilter, WorkItem};
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, Event, EventKind, OrchestrationContext, OrchestrationRegistry,
    OrchestrationStatus, RuntimeOptions,
};

/// Longest time anything may take here.
const PATIENCE: Duration = Duration::from_secs(60);

/// Names that people use, and names that an attacker would try.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = [
        "plain",
        " leading and trailing ",
        "it's",
        "\"quoted\"",
        "'; DROP TABLE instances; --",
        "' OR '1'='1",
        "?1 :name @name $name",
        "100%_of [all] *GLOB* ?",
        "nul\0inside",
        "\0",
        "line\nbreak\r\ntab\tbell\u{7}",
        "\u{1b}[31mred\u{1b}[0m",
        "naïve Straße ÄÖÜ",
        "日本語の名前",
        "👩‍👩‍👧‍👦 🏳️‍🌈 🇺🇳",
        "עברית ومزيج العربية \u{202e}reversed",
        "e\u{301} is not \u{e9}",
        "\u{feff}bom \u{200b}zero width \u{fffd}",
        "\u{10ffff}\u{fffe}",
        "../../etc/passwd",
        "<script>alert(1)</script>",
        "${env} {{braces}} {0} %s %n",
        "C:\\path\\to\\file",
        "{\"json\":\"\\u0000\"}",
        "null",
        "123",
        "1e5",
        "-0.0",
        "x'00ff'",
        "sqlite_master",
        "$1 $2 $body$ E'\\\\x'",
        "pg_catalog",
    ]
    .map(str::to_owned)
    .to_vec();
    names.push("ẞ𝒳語\u{202e}'\0\n".repeat(10 * 1024 / 16)); // 10 KB
    names
}

/// The beginning of a name: tags have 256 bytes at most.
fn short(name: &str) -> String {
    name.chars()
        .scan(0, |bytes, c| {
            *bytes += c.len_utf8();
            (*bytes <= 256).then_some(c)
        })
        .collect()
}

/// Uses its own name for everything that has a name.
async fn everything(ctx: OrchestrationContext, name: String) -> Result<String, String> {
    assert_eq!(ctx.orchestration_name(), name);
    ctx.set_custom_status(name.clone());
    ctx.set_kv_value(name.clone(), name.clone());
    let tagged = ctx.schedule_activity(&name, name.clone()).with_tag(short(&name));
    let session = ctx.schedule_activity_on_session(&name, name.clone(), name.clone());
    let (tagged, session) = ctx.join2(tagged, session).await;
    assert_eq!((tagged?, session?), (name.clone(), name.clone()));
    let child = format!("child of {name}");
    let child = ctx.schedule_sub_orchestration_with_id("Echo", child, name.clone()).await?;
    assert_eq!(child, name);
    let event = ctx.schedule_wait(&name).await;
    let message = ctx.dequeue_event(&name).await;
    assert_eq!((&event, &message), (&name, &name));
    let key = ctx.get_kv_value(&name);
    assert_eq!(key.as_deref(), Some(name.as_str()));
    Ok(name)
}

async fn runtime(store: Arc<dyn Provider>, names: &[String]) -> Arc<Runtime> {
    let mut activities = ActivityRegistry::builder();
    let mut orchestrations = OrchestrationRegistry::builder()
        .register("Echo", |_ctx: OrchestrationContext, input: String| async move { Ok(input) })
        .register("Wait", |ctx: OrchestrationContext, _input: String| async move {
            Ok(ctx.schedule_wait("never").await)
        });
    for name in names {
        let echo = |_ctx: ActivityContext, input: String| async move { Ok(input) };
        activities = activities.register(name.clone(), echo);
        orchestrations = orchestrations.register(name.clone(), everything);
    }
    let options = RuntimeOptions { worker_tag_filter: TagFilter::Any, ..RuntimeOptions::default() };
    Runtime::start_with_options(store, activities.build(), orchestrations.build(), options).await
}

/// One instance from its start to its end, looked at from everywhere.
async fn live(store: &dyn Provider, client: &Client, name: &str) {
    client.start_orchestration(name, name, name).await.unwrap();
    client.enqueue_event(name, name, name).await.unwrap();
    // An event reaches only a wait that is recorded already.
    let began = Instant::now();
    let listens = |event: &Event| matches!(&event.kind, EventKind::ExternalSubscribed { name: to } if to == name);
    while !store.read(name).await.unwrap().iter().any(listens) {
        assert!(began.elapsed() < PATIENCE, "{name:?} never listens");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    client.raise_event(name, name, name).await.unwrap();
    let status = client.wait_for_orchestration(name, PATIENCE).await.unwrap();
    let OrchestrationStatus::Completed { output, custom_status, .. } = status else {
        panic!("{name:?}: {status:?}")
    };
    assert_eq!((output.as_str(), custom_status.as_deref()), (name, Some(name)));

    assert_eq!(client.get_kv_value(name, name).await.unwrap().as_deref(), Some(name));
    let all = client.get_kv_all_values(name).await.unwrap();
    assert_eq!(all.get(name).map(String::as_str), Some(name));
    let info = client.get_instance_info(name).await.unwrap();
    assert_eq!((info.instance_id.as_str(), info.orchestration_name.as_str()), (name, name));
    assert_eq!(info.output.as_deref(), Some(name));
    assert_eq!(client.get_execution_info(name, 1).await.unwrap().output.as_deref(), Some(name));
    let child = format!("child of {name}");
    let tree = client.get_instance_tree(name).await.unwrap();
    assert_eq!((tree.root_id.as_str(), tree.all_ids), (name, vec![name.to_owned(), child.clone()]));
    assert_eq!(admin(store).list_children(name).await.unwrap(), std::slice::from_ref(&child));
    assert_eq!(admin(store).get_parent_id(&child).await.unwrap().as_deref(), Some(name));
    for event in client.read_execution_history(name, 1).await.unwrap() {
        assert_eq!(event.instance_id, name);
    }
    let stats = client.get_orchestration_stats(name).await.unwrap().expect("stats");
    assert_eq!(stats.kv_user_key_count, 1);
}

/// Cancelled, given up and deleted.
async fn leave(store: &dyn Provider, client: &Client, name: &str) {
    let nobody = format!("nobody {name}");
    client.enqueue_event(&nobody, name, name).await.unwrap();
    let waiting = format!("waiting {name}");
    client.start_orchestration(&waiting, "Wait", name).await.unwrap();
    client.cancel_instance(&waiting, name).await.unwrap();
    let status = client.wait_for_orchestration(&waiting, PATIENCE).await.unwrap();
    let OrchestrationStatus::Failed { details, .. } = status else { panic!("{status:?}") };
    assert!(details.display_message().contains(name), "{details:?}");

    // The fetches since then have found the message for no instance.
    let letters = admin(store).list_dead_letters().await.unwrap();
    let is_it = |letter: &DeadLetter| letter.instance.as_deref() == Some(nobody.as_str());
    assert!(letters.iter().any(is_it), "{letters:?}");

    let deleted = client.delete_instance(name, false).await.unwrap();
    assert_eq!((deleted.instances_deleted, deleted.executions_deleted), (2, 2));
    client.delete_instance(&waiting, false).await.unwrap();
    assert!(store.read(name).await.unwrap().is_empty());
}

fn admin(store: &dyn Provider) -> &dyn ProviderAdmin {
    store.as_management_capability().expect("a store with a management side")
}

/// Every name is used for everything, from start to deletion.
pub async fn live_and_leave(store: Arc<dyn Provider>) {
    let names = names();
    let runtime = runtime(store.clone(), &names).await;
    let client = Client::new(store.clone());
    // All at once: no two of them may be taken for one another.
    let lives = names.iter().map(|name| {
        let (store, client, name) = (store.clone(), client.clone(), name.clone());
        tokio::spawn(async move { live(&*store, &client, &name).await })
    });
    for life in lives.collect::<Vec<_>>() {
        life.await.unwrap();
    }
    let listed: HashSet<String> = client.list_all_instances().await.unwrap().into_iter().collect();
    let children = names.iter().map(|name| format!("child of {name}"));
    assert_eq!(listed, names.iter().cloned().chain(children).collect());
    assert_eq!(client.list_instances_by_status("Completed").await.unwrap().len(), 2 * names.len());
    check_invariants(&*store).await.unwrap();
    for name in &names {
        leave(&*store, &client, name).await;
    }
    assert_eq!(client.list_all_instances().await.unwrap(), [""; 0]);
    runtime.shutdown(Some(1000)).await;
}

/// Tags that look alike are told apart.
pub async fn tell_apart(store: &dyn Provider) {
    let names = names();
    for (id, name) in (1..).zip(&names) {
        let item = WorkItem::ActivityExecute {
            instance: name.clone(),
            execution_id: 1,
            id,
            name: name.clone(),
            input: name.clone(),
            session_id: None,
            tag: Some(name.clone()),
        };
        store.enqueue_for_worker(item).await.unwrap();
    }
    for (id, name) in (1..).zip(&names) {
        let filter = TagFilter::Tags(HashSet::from([name.clone()]));
        let (lock, now) = (Duration::from_secs(30), Duration::ZERO);
        let fetched = store.fetch_work_item(lock, now, None, &filter).await.unwrap();
        let (item, _, _) = fetched.unwrap_or_else(|| panic!("{name:?} not found"));
        let WorkItem::ActivityExecute { id: found, tag, .. } = item else { panic!() };
        assert_eq!((found, tag.as_ref()), (id, Some(name)));
        assert!(store.fetch_work_item(lock, now, None, &filter).await.unwrap().is_none());
    }
}
