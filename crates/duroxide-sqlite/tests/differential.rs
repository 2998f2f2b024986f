//! Random operations: this store against the memory provider.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::Path;
use std::sync::{Arc, Mutex};

use duroxide::clock::Clock;
use duroxide::provider_validation::differential::{
    Difference, DifferentialOptions, DifferentialReport, compare_with_memory,
    compare_with_memory_and_reopen,
};
use duroxide::providers::Provider;
use duroxide_sqlite::{Durability, SqliteOptions, SqliteProvider};
use support::Folder;

async fn open(url: &str, clock: Arc<dyn Clock>) -> Arc<dyn Provider> {
    // Power does not fail here, so nothing has to wait for the disk.
    let durability = Durability::Process;
    let options = SqliteOptions { durability, clock: Some(clock), ..SqliteOptions::default() };
    Arc::new(SqliteProvider::new(url, Some(options)).await.unwrap())
}

/// Every look is some hundred questions.
fn options() -> DifferentialOptions {
    DifferentialOptions { dump_every: 40, ..DifferentialOptions::from_env() }
}

fn check(result: Result<DifferentialReport, Box<Difference>>) {
    let report = result.unwrap_or_else(|difference| panic!("{difference}"));
    println!("{report}");
    assert!(report.operations >= 200 * report.sequences, "{report}"); // of usually 60
}

#[tokio::test]
async fn in_memory_it_does_what_the_memory_provider_does() {
    let make = async |clock| open("sqlite::memory:", clock).await;
    check(compare_with_memory(make, options()).await);
}

#[tokio::test]
async fn in_a_file_it_does_what_the_memory_provider_does() {
    let folder = Mutex::new(Folder::new());
    let make = async |clock| {
        *folder.lock().unwrap() = Folder::new();
        let url = folder.lock().unwrap().url("store.db");
        open(&url, clock).await
    };
    check(compare_with_memory(make, options()).await);
}

#[tokio::test]
async fn closed_and_opened_again_it_goes_on_as_if_nothing_had_happened() {
    let folder = Mutex::new(Folder::new());
    let url = || folder.lock().unwrap().url("store.db");
    let make = async |clock| {
        *folder.lock().unwrap() = Folder::new();
        open(&url(), clock).await
    };
    let reopen = async |store: Arc<dyn Provider>, clock| {
        assert_eq!(Arc::strong_count(&store), 1);
        drop(store);
        assert_one_file_is_left(folder.lock().unwrap().path());
        open(&url(), clock).await
    };
    check(compare_with_memory_and_reopen(make, reopen, options()).await);
}

fn assert_one_file_is_left(folder: &Path) {
    let files = std::fs::read_dir(folder).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names, ["store.db"]);
}
