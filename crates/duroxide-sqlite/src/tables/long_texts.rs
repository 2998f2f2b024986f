//! Long texts, once per instance, by their hash.

use rusqlite::types::ValueRef;
use rusqlite::{Row, params};

use super::{Sql, first, id_in, run};
use crate::database::Db;

/// No text has this key.
const NOWHERE: i64 = 0;

/// A row's reference to a text, and the text once it was looked for.
#[derive(Debug, Clone)]
pub(crate) struct TextReference {
    pub(crate) key: i64,
    text: Option<String>,
}

impl TextReference {
    /// A reference.
    pub(crate) fn to(key: i64) -> Self {
        Self { key, text: None }
    }

    /// Bytes of the text, if it was found.
    pub(crate) fn len(&self) -> usize {
        self.text.as_ref().map_or(0, String::len)
    }

    /// The text, or what is wrong.
    pub(crate) fn take_text(&mut self) -> Result<String, String> {
        self.text.take().ok_or_else(|| format!("its long text {} is missing", self.key))
    }
}

/// A row's reference, if it has one. What is no number refers to nothing that could be found.
pub(crate) fn reference(row: &Row<'_>, column: usize) -> Sql<Option<TextReference>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => None,
        ValueRef::Integer(key) => Some(TextReference::to(key)),
        _ => Some(TextReference::to(NOWHERE)),
    })
}

/// Looks for the text that a row refers to, if it refers to one.
pub(crate) fn fetch(
    c: Db<'_>,
    instance: i64,
    text_reference: &mut Option<TextReference>,
) -> Sql<()> {
    if let Some(text_reference) = text_reference {
        let found = first(
            c,
            "SELECT text FROM long_texts WHERE instance = ?1 AND key = ?2",
            [instance, text_reference.key],
            |row| Ok(row.get_ref(0)?.as_str().ok().map(str::to_owned)),
        )?;
        text_reference.text = found.flatten();
    }
    Ok(())
}

/// Stores a text unless the instance has it; its key. Texts with the same hash get numbers in a row.
pub(crate) fn keep(c: Db<'_>, instance: i64, hash: u64, text: &str) -> Sql<i64> {
    let mut key = id_in(hash);
    loop {
        if key == NOWHERE {
            key += 1;
        }
        let is_same = first(
            c,
            "SELECT text FROM long_texts WHERE instance = ?1 AND key = ?2",
            [instance, key],
            |row| Ok(row.get_ref(0)? == ValueRef::Text(text.as_bytes())),
        )?;
        match is_same {
            Some(true) => return Ok(key),
            Some(false) => key = key.wrapping_add(1),
            None => break,
        }
    }
    run(
        c,
        "INSERT INTO long_texts (instance, key, text) VALUES (?1, ?2, ?3)",
        params![instance, key, text],
    )?;
    Ok(key)
}

/// Removes the texts of an instance that no row refers to.
pub(crate) fn sweep(c: Db<'_>, instance: i64) -> Sql<usize> {
    run(
        c,
        "DELETE FROM long_texts WHERE instance = ?1 AND key NOT IN (
         SELECT long_text FROM history WHERE instance = ?1 AND long_text IS NOT NULL
         UNION ALL
         SELECT long_text FROM messages WHERE instance = ?1 AND long_text IS NOT NULL
         UNION ALL
         SELECT long_text FROM hidden WHERE instance = ?1 AND long_text IS NOT NULL
         UNION ALL
         SELECT long_text FROM work WHERE instance = ?1 AND long_text IS NOT NULL
         UNION ALL
         SELECT long_text FROM executions WHERE instance = ?1 AND long_text IS NOT NULL)",
        [instance],
    )
}

pub(crate) fn delete_all(c: Db<'_>, instance: i64) -> Sql<usize> {
    run(c, "DELETE FROM long_texts WHERE instance = ?1", [instance])
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::Connection;

    use super::*;
    use crate::schema;

    #[test]
    fn r10_24_texts_of_the_same_hash_stay_different() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(Path::new(":memory:"), &mut connection).unwrap();
        let c = Db::of(&connection);
        for hash in [7, 0, u64::MAX, i64::MAX as u64] {
            let (instance, texts) = (1, ["one", "two", "", "nul\0a", "nul\0b"]);
            let keys = texts.map(|text| keep(c, instance, hash, text).unwrap());
            for (key, text) in keys.into_iter().zip(texts) {
                assert_ne!(key, NOWHERE);
                assert_eq!(keep(c, instance, hash, text).unwrap(), key, "the same once more");
                let mut text_reference = Some(TextReference::to(key));
                fetch(c, instance, &mut text_reference).unwrap();
                assert_eq!(text_reference.unwrap().take_text().as_deref(), Ok(text));
            }
            assert_eq!(delete_all(c, instance).unwrap(), texts.len());
        }
    }
}
