//! Functions of the PostgreSQL schema look only after they have locked.
//!
//! A statement sees what was committed when it began. One that waits for the lock on a mailbox, or comes
//! before it, sees an instance as it was before whoever had the lock committed. So a function that the
//! program calls, and that changes something, may read what mailboxes protect only in statements after
//! the one that locks. What a function reads through others that it calls counts as its own.

use std::collections::BTreeMap;

use super::Finding;
use crate::files::File;

/// Where the functions are, and who calls them.
const MIGRATIONS: &str = "crates/duroxide-pg/migrations/";
const CALLERS: &str = "crates/duroxide-pg/src/";
/// What the lock on a mailbox protects, the mailbox itself included.
const PROTECTED: &[&str] =
    &["instance", "execution", "history", "kv", "kv_delta", "message", "hidden", "mailbox"];
/// What may be looked at without a lock, and why.
const HARMLESS: &[(&str, &str)] = &[
    ("keys_of", "keys only: a key that is locked afterwards is still that of its id"),
    ("keys_of_work", "keys only: an activity stays with its instance"),
    ("keys_of_node", "keys only: whether they still are its own is looked at under the lock"),
    ("note_ids", "brings ids into being, which have no state"),
    ("tree_of", "ids only: a deletion looks again under the lock"),
    ("mailboxes_of_starts", "keys only: a deletion looks again under the lock"),
    ("next_message_due", "a time to look, and no more"),
    ("first_ended_turn", "a time to look, and no more"),
    ("table_sizes", "sizes of whole tables"),
];
/// The same within a statement: an id's key, times to look, and keys of those to be locked then.
const HARMLESS_TEXTS: &[&str] = &[
    "SELECT i.key FROM duroxide.instance i WHERE i.id =",
    "SELECT visible_at FROM duroxide.hidden WHERE visible_at >= p_due_from ORDER BY visible_at LIMIT 1",
    "SELECT q.instance FROM duroxide.hidden q WHERE q.visible_at >= p_due_from AND q.visible_at <= p_now \
     AND q.instance <> ALL",
];
/// How the names of the schema's things begin.
const SCHEMA: &str = "duroxide.";

struct Function<'a> {
    place: String,
    statements: Vec<Statement<'a>>,
}

struct Statement<'a> {
    /// It waits for, or takes, the lock on mailboxes.
    locks: bool,
    /// It looks at what the lock protects.
    reads: bool,
    writes: bool,
    calls: Vec<&'a str>,
}

/// Checks all migrations together.
pub(super) fn check_all(files: &[File]) -> Vec<Finding> {
    let mut functions = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.starts_with(MIGRATIONS)) {
        functions.extend(functions_of(file));
    }
    let is_caller = |file: &&File| file.path.starts_with(CALLERS) && file.is_rust();
    let is_called = |name: &str| {
        let call = format!("{SCHEMA}{name}(");
        files.iter().filter(is_caller).any(|file| file.text.contains(&call))
    };
    let reads_too_soon = |(name, _): &(&&str, &Function<'_>)| {
        is_called(name) && any(name, &functions, |s| s.writes || s.locks) && {
            first(name, &functions) == Some(First::Read)
        }
    };
    let found = functions.iter().filter(reads_too_soon);
    found.map(|(_, function)| Finding::new(&function.place, MESSAGE)).collect()
}

const MESSAGE: &str = "reads what the lock on a mailbox protects before it has that lock, or in the \
     statement that waits for it: look in a later statement";

/// What a function does first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    Read,
    Lock,
}

/// Whether a function locks before it reads, in the order of its text.
fn first(name: &str, functions: &BTreeMap<&str, Function<'_>>) -> Option<First> {
    functions.get(name)?.statements.iter().find_map(|statement| {
        if statement.reads {
            return Some(First::Read);
        }
        let called = || statement.calls.iter().filter_map(|call| first(call, functions));
        if statement.locks {
            return Some(called().find(|first| *first == First::Read).unwrap_or(First::Lock));
        }
        called().next()
    })
}

/// Whether a statement of a function, or of one that it calls, is like that.
fn any(
    name: &str,
    functions: &BTreeMap<&str, Function<'_>>,
    is_meant: fn(&Statement<'_>) -> bool,
) -> bool {
    functions.get(name).is_some_and(|function| {
        let calls = |s: &Statement<'_>| s.calls.iter().any(|call| any(call, functions, is_meant));
        function.statements.iter().any(|statement| is_meant(statement) || calls(statement))
    })
}

/// The functions of a migration by name.
fn functions_of(file: &File) -> impl Iterator<Item = (&str, Function<'_>)> {
    file.text.split("CREATE FUNCTION duroxide.").skip(1).filter_map(|text| {
        let (name, rest) = text.split_once('(')?;
        let body = rest.split("$body$").nth(1)?;
        let statements = body.split(';').map(|statement| statement_of(name, statement)).collect();
        Some((name, Function { place: format!("{}::{name}", file.path), statements }))
    })
}

fn statement_of<'a>(function: &str, text: &'a str) -> Statement<'a> {
    let is_comment = |line: &&str| !line.trim_start().starts_with("--");
    let code: String = text.lines().filter(is_comment).flat_map(|line| [line, "\n"]).collect();
    let one_line = code.split_whitespace().collect::<Vec<_>>().join(" ");
    let inserts = one_line.replace("INSERT INTO duroxide.", "INSERT INTO ");
    let plain = HARMLESS_TEXTS.iter().fold(inserts, |text, harmless| text.replace(harmless, ""));
    let locks = plain.contains("FOR UPDATE") && mentions(&plain, "mailbox");
    let reads = |table: &&&str| mentions(&plain, table) && !(locks && **table == "mailbox");
    let is_write = |word| one_line.contains(word);
    let calls = text.lines().filter(is_comment).flat_map(|line| line.split(SCHEMA).skip(1));
    let calls = calls.filter_map(|call| call.split_once('(').map(|(name, _)| name));
    let is_looked_at =
        |name: &&str| *name != function && !HARMLESS.iter().any(|(harmless, _)| harmless == name);
    Statement {
        locks,
        reads: PROTECTED.iter().find(reads).is_some(),
        writes: ["INSERT INTO ", "UPDATE duroxide.", "DELETE FROM "].into_iter().any(is_write),
        calls: calls.filter(is_looked_at).collect(),
    }
}

/// Whether a statement names a table. A type has the same name, and stands alone behind a variable.
fn mentions(statement: &str, table: &str) -> bool {
    let is_end = |rest: &str| {
        let next = rest.chars().next();
        next.is_some_and(|next| next != '_' && next != '(' && !next.is_alphanumeric())
    };
    statement
        .match_indices(&format!("{SCHEMA}{table}"))
        .any(|(at, name)| is_end(&statement[at + name.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places found in a schema of these functions, all of which are called.
    fn found(functions: &[(&str, &str)]) -> Vec<String> {
        let (mut sql, mut calls) = (String::new(), String::new());
        for (name, body) in functions {
            sql.push_str(&format!("CREATE FUNCTION duroxide.{name}() AS $body${body}$body$;\n"));
            if !name.starts_with('_') {
                calls.push_str(&format!("SELECT duroxide.{name}()\n"));
            }
        }
        let files = [
            File::new("crates/duroxide-pg/migrations/0001.sql", &sql),
            File::new("crates/duroxide-pg/src/a.rs", &calls),
        ];
        let names = check_all(&files)
            .into_iter()
            .filter_map(|found| found.place.split_once("::").map(|(_, name)| name.to_owned()));
        names.collect()
    }

    const LOCK: &str = "PERFORM FROM duroxide.mailbox m WHERE true FOR UPDATE;";
    const READ: &str = "SELECT i.name INTO v FROM duroxide.instance i;";
    const WRITE: &str = "DELETE FROM duroxide.message q;";

    #[test]
    fn whoever_changes_something_locks_first() {
        assert_eq!(found(&[("f", &format!("{LOCK}{READ}{WRITE}"))]), [""; 0]);
        assert_eq!(found(&[("f", &format!("{READ}{LOCK}{WRITE}"))]), ["f"]);
        assert_eq!(found(&[("f", WRITE)]), ["f"]);
        assert_eq!(found(&[("f", READ)]), [""; 0], "whoever only reads need not");
        assert_eq!(found(&[("_f", &format!("{READ}{LOCK}"))]), [""; 0], "called under a lock");
    }

    #[test]
    fn the_statement_that_waits_for_the_lock_sees_what_was_before() {
        let both = "SELECT i.name FROM duroxide.mailbox m
             JOIN duroxide.instance i ON i.key = m.instance FOR UPDATE OF m;";
        assert_eq!(found(&[("f", both)]), ["f"]);
        let by_id = "SELECT m.state FROM duroxide.mailbox m WHERE m.instance =
             (SELECT i.key FROM duroxide.instance i WHERE i.id = p_id) FOR UPDATE;";
        assert_eq!(found(&[("f", &format!("{by_id}{READ}"))]), [""; 0]);
    }

    #[test]
    fn what_is_called_counts() {
        let (read, lock) = ("PERFORM duroxide._read();", "PERFORM duroxide._lock();");
        let others = [("_read", READ), ("_lock", LOCK)];
        for (body, is_found) in [(format!("{read}{lock}"), true), (format!("{lock}{read}"), false)]
        {
            let all = [others[0], others[1], ("f", &body)];
            assert_eq!(!found(&all).is_empty(), is_found, "{body}");
        }
    }

    #[test]
    fn comments_and_inserts_are_not_read() {
        let body =
            format!("-- duroxide.instance\nINSERT INTO duroxide.message (seq) VALUES (1);{LOCK}");
        assert_eq!(found(&[("f", &body)]), [""; 0]);
    }
}
