//! Nodes that are cut off and come back, and nodes that die: what counts as an attempt.

use std::time::Duration;

use duroxide::{Client, OrchestrationStatus};
use duroxide_fleet::takeover::{LONG, start, time_of, work};
use duroxide_fleet::{HOLD, Line, Process, SOON, Stage, alone};

use crate::network::proxy;
use crate::proxy::{Proxy, Way};
use crate::site::Site;
use crate::store::{URL, config, on_a_thread};
use crate::support::stranger;

/// More often than an attempt may fail.
const ROUNDS: usize = 12;

/// A worker that begins activities and does not end them, with a way to the server of its own.
struct Node {
    process: Process,
    proxy: Proxy,
}

impl Node {
    fn start(stage: &Stage) -> Self {
        let (proxy, url) = proxy();
        Self { process: stage.start_worker(&[(HOLD, "activities"), (URL, &url)]), proxy }
    }

    /// How often it began the activity.
    fn runs(&self, lines: &[Line]) -> usize {
        let is_run =
            |line: &&Line| line.process == self.process.id() && line.says(&["S", "activity"]);
        lines.iter().filter(is_run).count()
    }
}

/// How many nodes there are that others know to live.
fn living(stage: &Stage) -> i64 {
    let count = "SELECT count(*) FROM node n JOIN pg_locks l ON l.locktype = 'advisory'
         AND ((l.classid::bigint << 32) | l.objid::bigint) = node_key(n.id)
         WHERE n.gone_at IS NULL AND l.granted";
    on_a_thread(async {
        stranger(&config(&stage.folder)).await.query_one(count, &[]).await.unwrap().get(0)
    })
}

/// How an instance ended.
fn end_of(stage: &Stage, id: &str) -> OrchestrationStatus {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::new(stage.store().await);
        client.wait_for_orchestration(id, SOON).await.unwrap()
    })
}

// R8.145: others cannot tell a node that is cut off from a dead one, and run what it held. That is no
// attempt once it is back, so that no number of cuts makes anything fail.
#[test]
fn r8_145_cutting_nodes_off_again_and_again_fails_nothing() {
    let _turn = alone();
    let Some(site) = Site::shared() else { return };
    let stage = &site.stage;
    let mut nodes = [Node::start(stage), Node::start(stage)];
    start(stage, &[("activity", "Program", work())]);
    let wait_for_run = |node: &Node, before: usize| {
        stage
            .journal
            .wait_for("the activity", SOON, |lines| (before < node.runs(lines)).then_some(()));
    };
    let first = stage.journal.wait_for("a node that has it", SOON, |lines| {
        nodes.iter().position(|node| 0 < node.runs(lines))
    });
    nodes.rotate_left(first);
    for _ in 0..ROUNDS {
        while living(stage) < 2 {
            std::thread::sleep(Duration::from_millis(10));
        }
        let [holder, other] = &nodes;
        let before = other.runs(&stage.journal.read());
        site.fault("a node cut off");
        holder.proxy.set(Way::Closed);
        wait_for_run(other, before);
        holder.proxy.set(Way::Open);
        nodes.rotate_left(1);
    }
    for node in &nodes {
        duroxide_fleet::let_go(&stage.folder, node.process.id());
    }
    let end = end_of(stage, "activity");
    assert!(matches!(end, OrchestrationStatus::Completed { .. }), "{end:?}");
    nodes.into_iter().for_each(|node| node.process.finish());
    duroxide_fleet::assert_sound(stage, "nodes cut off");
}

// The same with processes that die, which do not come back.
#[test]
fn r8_145_what_kills_its_process_every_time_is_given_up() {
    let _turn = alone();
    let Some(site) = Site::shared() else { return };
    let stage = &site.stage;
    start(stage, &[("activity", "Program", work())]);
    for _ in 0..10 {
        let mut worker = stage.start_worker(&[LONG, (HOLD, "activities")]);
        time_of(stage, worker.id(), &["S", "activity"]);
        worker.kill();
    }
    let last = stage.start_worker(&[LONG]);
    let end = end_of(stage, "activity");
    assert!(format!("{end:?}").contains("Poison"), "{end:?}");
    last.finish();
}
