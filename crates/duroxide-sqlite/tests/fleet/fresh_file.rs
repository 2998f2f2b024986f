//! Eight processes that open a file that was never opened before, all at once.

use std::sync::Arc;

use duroxide::Client;
use duroxide_fleet::{Process, SOON, Stage, alone, next_line};
use duroxide_sqlite::SqliteProvider;

use crate::store::SQLITE;
use crate::support::{Folder, stranger};

const OPENERS: usize = 8;
const ROUNDS: usize = 20;

/// Opens each store the test names, starts an instance of its own there, and closes it.
pub(crate) async fn open_and_close(stage: &Stage) {
    stage.journal.note("UP");
    while let Some(name) = next_line().await {
        let url = format!("sqlite:{}/{name}?mode=rwc", stage.folder.display());
        let id = format!("of-{}", std::process::id());
        match SqliteProvider::new(&url, None).await {
            Ok(store) => {
                let client = Client::new(Arc::new(store));
                client.start_orchestration(&id, "Nobody", "").await.unwrap();
                client.list_all_instances().await.unwrap();
                drop(client);
                stage.journal.note(format_args!("OPENED {name}"));
            }
            Err(error) => stage.journal.note(format_args!("REFUSED {name} {error}")),
        }
    }
}

// Migrations run once, whichever process comes first.
#[test]
fn eight_processes_open_a_fresh_file_at_once() {
    let _turn = alone();
    let folder = Folder::new();
    let stage = Stage::new(&SQLITE, folder.path());
    let mut openers: Vec<Process> = (0..OPENERS).map(|_| stage.start("opener", &[])).collect();
    let all = |what: &[&str]| {
        stage.journal.wait_for(&what.join(" "), SOON, |lines| {
            let refused = lines.iter().find(|line| line.says(&["REFUSED"]));
            assert!(refused.is_none(), "{refused:?}");
            (lines.iter().filter(|line| line.says(what)).count() == OPENERS).then_some(())
        });
    };
    all(&["UP"]);
    for round in 0..ROUNDS {
        let name = format!("{round}.db");
        openers.iter_mut().for_each(|opener| opener.tell(&name));
        all(&["OPENED", &name]);
        let c = stranger(&folder.file(&name));
        let count = |sql: &str| c.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count("SELECT count(*) FROM messages"), OPENERS as i64, "{name}");
        assert_eq!(count("SELECT count(*) FROM nodes"), 0, "{name}");
        assert_eq!(
            count("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"),
            0
        );
        drop(c);
        let names = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
        let left: Vec<_> =
            names.filter(|file| file.to_string_lossy().starts_with(&format!("{name}-"))).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
    openers.into_iter().for_each(Process::finish);
}

#[tokio::test]
async fn a_store_that_was_closed_is_one_file() {
    let folder = Folder::new();
    for round in 0..50 {
        let store = Arc::new(SqliteProvider::new(&folder.url("store.db"), None).await.unwrap());
        let client = Client::new(store);
        let id = round.to_string();
        client.start_orchestration(&id, "Nobody", "").await.unwrap();
        // Enough at once that all reading threads have something to do.
        let look = || client.list_all_instances();
        let (a, b, c) = tokio::join!(look(), look(), look());
        assert!(a.is_ok() && b.is_ok() && c.is_ok());
        drop(client);
        let files = std::fs::read_dir(folder.path()).unwrap();
        let files: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
        assert_eq!(files, ["store.db"], "round {round}");
    }
}
