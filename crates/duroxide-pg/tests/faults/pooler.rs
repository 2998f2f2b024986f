//! A pooler between nodes and server that gives connections away after each transaction.

use duroxide_fleet::alone;
use duroxide_pg_testserver::{Pooler, shared};

use crate::site::Site;
use crate::store::{SETTINGS, URL};

// Few connections for many: each transaction may run on another.
#[test]
fn two_nodes_work_through_a_pooler_in_transaction_mode() {
    let _turn = alone();
    let Some(site) = Site::shared() else { return };
    let Some(pooler) = Pooler::start(shared().unwrap().url(), 3).unwrap() else { return };
    let crew = site.start(&[(URL, pooler.url()), (SETTINGS, "pooler=on")]);
    site.progress(32);
    site.finish(crew, "through a pooler");
}
