//! Code that ends its process, beside hundreds of workflows that do no harm.

use std::time::Duration;

use duroxide::runtime::Runtime;
use duroxide::runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationStatus};

use crate::folder::Folder;
use crate::process::SOON;
use crate::roles::{Stage, on_tokio};
use crate::store::Store;
use crate::worker::long_leases;

const INNOCENTS: usize = 300;
/// Processes that may be ended before that is too many: each killer has eleven attempts at most.
const LIVES_MAX: usize = 60;
const KILLERS: [&str; 2] = ["KillByTurn", "KillByWork"];
/// If set, the killers have to end, too.
const AMONG_KILLERS: &str = "FLEET_AMONG_KILLERS";
/// If set, the process ends so many microseconds after its runtime has begun to start.
const END_AFTER_US: &str = "FLEET_END_AFTER_US";

fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Echo", |_: ActivityContext, input: String| async move { Ok(input) })
        .register("Abort", |_: ActivityContext, _: String| async move { std::process::abort() })
        .build()
}

fn orchestrations() -> OrchestrationRegistry {
    let innocent = async |ctx: OrchestrationContext, input: String| -> Result<String, String> {
        ctx.schedule_activity("Echo", input).await
    };
    let kill_by_turn = async |_: OrchestrationContext, _: String| std::process::abort();
    let kill_by_work = async |ctx: OrchestrationContext, input: String| -> Result<String, String> {
        ctx.schedule_activity("Abort", input).await
    };
    OrchestrationRegistry::builder()
        .register("Innocent", innocent)
        .register("KillByTurn", kill_by_turn)
        .register("KillByWork", kill_by_work)
        .build()
}

/// Runs what there is until all of it has ended, or the process has.
pub(crate) async fn live(stage: &Stage) {
    let store = stage.store().await;
    if let Some(us) = stage.setting(END_AFTER_US) {
        let after = Duration::from_micros(us.parse().unwrap());
        std::thread::spawn(move || {
            std::thread::sleep(after);
            std::process::abort();
        });
    }
    let client = Client::new(store.clone());
    let runtime =
        Runtime::start_with_options(store, activities(), orchestrations(), long_leases()).await;
    let killers: &[&str] = if stage.setting(AMONG_KILLERS).is_some() { &KILLERS } else { &[] };
    for (id, _) in instances(killers) {
        client.wait_for_orchestration(&id, 4 * SOON).await.unwrap();
    }
    runtime.shutdown(Some(2_000)).await;
}

/// Ids and names: the killers in the middle of the others.
fn instances(killers: &[&str]) -> Vec<(String, String)> {
    let innocents = |n| (format!("innocent-{n}"), "Innocent".to_owned());
    let mut all: Vec<_> = (0..INNOCENTS).map(innocents).collect();
    for killer in killers {
        all.insert(5, ((*killer).to_owned(), (*killer).to_owned()));
    }
    all
}

fn start(stage: &Stage, all: &[(String, String)]) {
    on_tokio(async {
        let client = Client::new(stage.store().await);
        for (id, name) in all {
            client.start_orchestration(id, name, id).await.unwrap();
        }
    });
}

/// All innocents have done what they should, and the others have failed, after so many attempts.
fn assert_fair(stage: &Stage, killers: &[&str]) {
    on_tokio(async {
        let client = Client::new(stage.store().await);
        let mut harmed = Vec::new();
        for (id, name) in instances(killers) {
            let status = client.wait_for_orchestration(&id, 2 * SOON).await.unwrap();
            let is_right = match &status {
                OrchestrationStatus::Completed { output, .. } => {
                    name == "Innocent" && *output == id
                }
                OrchestrationStatus::Failed { .. } => name != "Innocent",
                _ => false,
            };
            if !is_right {
                harmed.push(format!("{id}: {status:?}"));
            }
        }
        assert!(harmed.is_empty(), "{} of them: {:?}", harmed.len(), harmed.first());
    });
}

/// One turn and one activity end their process whenever they run. They are given up, no other instance is.
pub fn code_that_ends_its_process_harms_no_other_instance(kind: &'static dyn Store) {
    let folder = Folder::new();
    let stage = Stage::new(kind, folder.path());
    start(&stage, &instances(&KILLERS));
    let mut lives = 0;
    while !stage.start("victim", &[(AMONG_KILLERS, "1")]).wait().success() {
        lives += 1;
        assert!(lives < LIVES_MAX, "it never ends");
    }
    println!("{lives} processes were ended");
    assert_fair(&stage, &KILLERS);
}

/// Forty processes end within their first eight milliseconds. Nothing is given up for that.
pub fn processes_that_end_at_once_harm_no_instance(kind: &'static dyn Store) {
    processes_that_end_early_harm_no_instance(kind, Duration::from_millis(8));
}

/// The same for processes that live for so long at most: for a store whose first fetch takes its time.
pub fn processes_that_end_early_harm_no_instance(kind: &'static dyn Store, longest: Duration) {
    let folder = Folder::new();
    let stage = Stage::new(kind, folder.path());
    start(&stage, &instances(&[]));
    for life in 0..40 {
        let after = (longest * life / 40).as_micros().to_string();
        stage.start("victim", &[(END_AFTER_US, &after)]).wait();
    }
    assert!(stage.start("victim", &[]).wait().success());
    assert_fair(&stage, &[]);
}
