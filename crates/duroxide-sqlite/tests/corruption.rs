//! Values that make no sense, in every column of every table: the rest goes on (L19, R10.18).
#![cfg(feature = "test-hooks")] // Once is enough: it takes its time.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duroxide::providers::ProviderAdmin;
use duroxide_sqlite::SqliteProvider;
use support::sampler::{End, columns, finish, make};
use support::workload::PATIENCE;
use support::{Folder, stranger};
use tokio::task::JoinSet;

/// Something of each kind that SQLite can store; the last is the value of another row.
const VALUES: [&str; 8] =
    ["NULL", "''", "'garbage'", "x'ff00fe'", "CAST(x'7bff' AS TEXT)", "-7", "3.5", "(another)"];
/// How many of them each column gets, unless all are asked for.
const VALUES_TRIED: usize = 3;
/// Stores at a time.
const AT_ONCE: usize = 16;
/// Dead letters that the sample has from the beginning.
const LETTERS: usize = 2;

/// What became of a store.
#[derive(Debug)]
enum Outcome {
    /// It was not opened.
    Refused(String),
    Ran {
        ends: Vec<(&'static str, End)>,
        letters: usize,
    },
}

/// Puts a value into one row; whether SQLite let it.
fn damage(path: &Path, table: &str, column: &str, value: &str) -> bool {
    let connection = stranger(path);
    let mut keys: Vec<String> = connection
        .prepare("SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk")
        .and_then(|mut statement| statement.query_map([table], |row| row.get(0))?.collect())
        .unwrap();
    if keys.is_empty() {
        keys.push("rowid".to_owned());
    }
    let keys = keys.join(", ");
    // Of events and executions the last: the first belong to an execution that is over.
    let order = match table {
        "history" | "executions" => keys.replace(',', " DESC,") + " DESC",
        _ => keys.clone(),
    };
    let value = match value {
        "(another)" => format!("(SELECT {column} FROM {table} ORDER BY {order} LIMIT 1 OFFSET 1)"),
        value => value.to_owned(),
    };
    let sql = format!(
        "UPDATE {table} SET {column} = {value}
         WHERE ({keys}) = (SELECT {keys} FROM {table} ORDER BY {order} LIMIT 1)"
    );
    connection.execute(&sql, []) == Ok(1)
}

/// Damages a copy of the sample and runs it to its end; `None` if SQLite does not let it be damaged.
async fn run(sample: Arc<Vec<u8>>, table: &str, column: &str, value: &str) -> Option<Outcome> {
    let folder = Folder::fast();
    let path = folder.file("a.db");
    std::fs::write(&path, sample.as_slice()).unwrap();
    if !damage(&path, table, column, value) {
        return None;
    }
    let store = match SqliteProvider::new(&folder.url("a.db"), None).await {
        Ok(store) => Arc::new(store),
        Err(error) => return Some(Outcome::Refused(error.to_string())),
    };
    // A history that makes no sense is looked at more than once before it is given up.
    let last = if table == "history" { PATIENCE } else { Duration::from_millis(1500) };
    let ends = finish(store.clone(), last).await;
    let letters = store.list_dead_letters().await.unwrap().len();
    Some(Outcome::Ran { ends, letters })
}

/// What is wrong with an outcome, if anything.
fn judge(table: &str, column: &str, value: &str, outcome: &Outcome) -> Option<String> {
    let (ends, letters) = match outcome {
        Outcome::Refused(why) if column == "store" => {
            return (!why.contains("is damaged")).then(|| why.clone());
        }
        Outcome::Refused(why) => return Some(format!("not opened: {why}")),
        Outcome::Ran { ends, letters } => (ends, *letters),
    };
    let harmed: Vec<_> = ends.iter().filter(|(_, end)| *end != End::Right).collect();
    if 1 < harmed.len() {
        return Some(format!("more than one was harmed: {harmed:?}"));
    }
    let (_, end) = harmed.first()?;
    let is_told = match end {
        End::Right => true,
        End::Open(status) => LETTERS < letters || status.contains("makes no sense"),
        End::Wrong(status) => status.contains("Failed"),
    };
    // Values that are as good as the right ones: nothing can tell.
    let is_plausible =
        matches!((table, column, value), ("kv", ..) | ("work", "payload", "(another)"))
            || (table, column) == ("long_texts", "text");
    (!is_told && !is_plausible).then(|| format!("{harmed:?}, and nothing tells"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r10_18_corruption_in_any_column_harms_one_instance_at_most() {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        usual(info);
    }));
    let all = std::env::var_os("DUROXIDE_ALL_VALUES").is_some();
    let sample = Arc::new(make().await);
    let folder = Folder::fast();
    std::fs::write(folder.file("sample.db"), sample.as_slice()).unwrap();
    let mut cases = Vec::new();
    for (n, (table, column)) in columns(&folder.file("sample.db")).into_iter().enumerate() {
        let values = VALUES.iter().cycle().skip(n * VALUES_TRIED);
        let values = values.take(if all { VALUES.len() } else { VALUES_TRIED });
        cases.extend(values.map(|value| (table.clone(), column.clone(), *value)));
    }
    let (mut ran, mut wrong) = (0, Vec::new());
    for some in cases.chunks(AT_ONCE) {
        let mut runs = JoinSet::new();
        for (table, column, value) in some.iter().cloned() {
            let sample = Arc::clone(&sample);
            runs.spawn(async move {
                let outcome = run(sample, &table, &column, value).await?;
                Some((
                    format!("{table}.{column} = {value}"),
                    judge(&table, &column, value, &outcome),
                ))
            });
        }
        for (case, finding) in runs.join_all().await.into_iter().flatten() {
            ran += 1;
            wrong.extend(finding.map(|finding| format!("{case}: {finding}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
    assert!(cases.len() / 2 < ran, "only {ran} of {} cases could be made", cases.len());
}
