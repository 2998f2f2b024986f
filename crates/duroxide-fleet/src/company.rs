//! More than one process on one store, all of them alive: they share the work and see each other's.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use duroxide::runtime::Runtime;
use duroxide::{Client, InstanceFilter, OrchestrationStatus};

use crate::attend::{Attendant, attend_all};
use crate::check;
use crate::client::{AT_ONCE, SEED};
use crate::folder::Folder;
use crate::handlers::{activities, orchestrations};
use crate::journal::{Line, middle_and_max, now_ms};
use crate::process::{Process, SOON};
use crate::programs::{Program, Step};
use crate::roles::{Stage, on_tokio};
use crate::store::Store;
use crate::worker::calm_leases;

/// Does from another process all that a client can.
pub(crate) async fn command(stage: &Stage) {
    let attendant = Attendant::new(stage, HashSet::default()).await;
    let client = &attendant.client;

    let steps = vec![
        Step::Event { value: 7 },
        Step::Queue { messages: 3 },
        Step::ContinueAsNew,
        Step::Put { key: 1, value: 5 },
        Step::Child(vec![Step::Work { value: 3, ms: 1 }]),
    ];
    attendant.attend("long", &Program::new(steps)).await.unwrap();
    attendant.attend("cancelled", &Program::new(vec![Step::Never])).await.unwrap();
    attendant.attend("deleted", &Program::new(vec![])).await.unwrap();

    assert_eq!(client.get_kv_value("long", "1").await.unwrap().as_deref(), Some("5"));
    assert_eq!(client.list_executions("long").await.unwrap(), [1, 2]);
    assert!(!client.read_execution_history("long", 2).await.unwrap().is_empty());
    let failed = client.list_instances_by_status("Failed").await.unwrap();
    assert_eq!(failed, ["cancelled"]);
    assert_eq!(client.get_instance_tree("long").await.unwrap().all_ids.len(), 2);

    client.delete_instance("deleted", false).await.unwrap();
    let status = client.get_orchestration_status("deleted").await.unwrap();
    assert_eq!(status, OrchestrationStatus::NotFound);
    let gone = client.get_instance_info("deleted").await.unwrap_err().to_string();
    assert!(gone.contains("not found"), "{gone}");
    let filter =
        InstanceFilter { instance_ids: Some(vec!["cancelled".into()]), ..Default::default() };
    assert_eq!(client.delete_instance_bulk(filter).await.unwrap().instances_deleted, 1);
    stage.journal.note("COMMANDED");
}

/// Runs so many programs through a client of this process.
fn run_all(stage: &Stage, programs: Vec<Program>) {
    on_tokio(async {
        let attendant = Arc::new(Attendant::new(stage, HashSet::default()).await);
        let named = (0..).map(|number| format!("i{number}")).zip(programs);
        attend_all(&attendant, named.collect()).await;
    });
}

/// How many activities each process began.
fn shares(lines: &[Line]) -> HashMap<u32, usize> {
    let mut shares = HashMap::new();
    for line in lines.iter().filter(|line| line.says(&["S"])) {
        *shares.entry(line.process).or_default() += 1;
    }
    shares
}

/// A client in another process can do everything.
pub fn another_process_starts_signals_cancels_deletes_and_reads(kind: &'static dyn Store) {
    let folder = Folder::new();
    let stage = Stage::new(kind, folder.path());
    on_tokio(async {
        let (store, options) = (stage.store().await, calm_leases());
        let handlers = (activities(&stage), orchestrations(&stage));
        let runtime = Runtime::start_with_options(store, handlers.0, handlers.1, options).await;
        let mut commander = stage.start("commander", &[]);
        let status = commander.wait();
        assert!(status.success(), "{status}: {}", commander.read_log());
        runtime.shutdown(None).await;
    });
    let lines = stage.journal.read();
    assert!(lines.iter().any(|line| line.says(&["COMMANDED"])));
}

/// None does all of it.
pub fn two_runtimes_share_the_work(kind: &'static dyn Store) {
    let folder = Folder::new();
    let stage = Stage::new(kind, folder.path());
    let workers = [stage.start_worker(&[]), stage.start_worker(&[])];
    let steps = vec![Step::Work { value: 1, ms: 20 }, Step::FanOut { value: 2, width: 4 }];
    run_all(&stage, vec![Program::new(steps); 120]);
    let lines = stage.journal.read();
    let shares = shares(&lines);
    println!("600 activities: {:?}", shares.values());
    for worker in &workers {
        assert!(shares.get(&worker.id()).is_some_and(|share| 40 <= *share), "{shares:?}");
    }
    workers.into_iter().for_each(Process::finish);
    check::assert_sound(&stage, "shared work");
}

/// All of them, and none early.
pub fn timers_fire_in_either_process(kind: &'static dyn Store) {
    let folder = Folder::new();
    let stage = Stage::new(kind, folder.path());
    let workers = [stage.start_worker(&[]), stage.start_worker(&[])];
    let program = |ms| Program::new(vec![Step::Timer { ms }, Step::Work { value: 1, ms: 5 }]);
    run_all(&stage, (0..40).map(|n| program(300 + 20 * n)).collect());
    let lines = stage.journal.read();
    let shares = shares(&lines);
    // Each where its instance is kept (R1.67), which may be the same process for all of them.
    assert_eq!(workers.iter().filter_map(|worker| shares.get(&worker.id())).sum::<usize>(), 40);
    workers.into_iter().for_each(Process::finish);
    check::assert_sound(&stage, "timers");
    let late = kind.read(folder.path()).lateness_ms();
    let late: Vec<u64> = late.into_iter().map(|ms| ms as u64).collect();
    let (middle, max) = middle_and_max(&late);
    println!("{} timers: late by {middle} ms in the middle, {max} ms at most", late.len());
    assert_eq!(late.len(), 40, "{late:?}");
}

/// Another fires it.
pub fn a_timer_outlives_the_process_that_set_it(kind: &'static dyn Store) {
    let folder = Folder::new();
    let stage = Stage::new(kind, folder.path());
    let mut setter = stage.start_worker(&[]);
    let steps = vec![Step::Timer { ms: 1_000 }, Step::Work { value: 1, ms: 1 }];
    let input = serde_json::to_string(&Program::new(steps)).unwrap();
    on_tokio(async {
        let client = Client::new(stage.store().await);
        client.start_orchestration("timer", "Program", input).await.unwrap();
        let is_set = || kind.read(folder.path()).of_kind("TimerCreated").next().is_some();
        while !is_set() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        setter.kill();
        let heir = stage.start_worker(&[]);
        client.wait_for_orchestration("timer", SOON).await.unwrap();
        assert_eq!(shares(&stage.journal.read()).get(&heir.id()), Some(&1));
        heir.finish();
    });
}

/// It need not poll for commits of other processes, the store looks out for them (R6.34).
pub fn a_client_in_another_process_is_told_of_the_end_at_once(kind: &'static dyn Store) {
    let folder = Folder::new();
    let stage = Stage::new(kind, folder.path());
    let worker = stage.start_worker(&[]);
    let input = serde_json::to_string(&Program::new(vec![])).unwrap();
    let waits = on_tokio(async {
        let client = Client::new(stage.store().await);
        let mut waits = Vec::new();
        for number in 0..40 {
            let id = format!("i{number}");
            let began = now_ms();
            client.start_orchestration(&id, "Program", &*input).await.unwrap();
            client.wait_for_orchestration(&id, SOON).await.unwrap();
            waits.push(now_ms() - began);
        }
        waits
    });
    let (middle, max) = middle_and_max(&waits);
    println!("start here, turn there, end seen here: middle {middle} ms, longest {max} ms");
    // A client that is not notified looks by itself after a second, and so would most of these.
    assert!(middle < 900, "{waits:?}");
    worker.finish();
}

/// Neither a client nor a runtime is told that the store is busy.
pub fn four_busy_processes_do_not_get_in_each_others_way(kind: &'static dyn Store) {
    let folder = Folder::new();
    let stage = Stage::new(kind, folder.path());
    let workers = [stage.start_worker(&[]), stage.start_worker(&[])];
    let client = |seed| stage.start("client", &[(SEED, seed), (AT_ONCE, "16")]);
    let clients = [client("1"), client("2000")];
    stage.journal.wait_for("200 programs", 2 * SOON, |lines| {
        (200 <= lines.iter().filter(|line| line.says(&["DONE"])).count()).then_some(())
    });
    clients.into_iter().for_each(Process::finish);
    workers.into_iter().for_each(Process::finish);
    check::assert_sound(&stage, "four processes");
}
