//! Where a store is: the URL forms of R10.2 and R10.3.

use std::path::PathBuf;

use crate::error::SqliteError;

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    /// In memory, gone with the provider.
    Memory,
    /// In a file, which may be created if it is not there.
    File {
        /// The database file.
        path: PathBuf,
        /// Whether a missing file is created.
        create: bool,
    },
}

impl Location {
    /// Reads `sqlite:<path>[?mode=rwc]`, `sqlite::memory:` and their variants.
    pub(crate) fn parse(url: &str) -> Result<Self, SqliteError> {
        let wrong = |reason: String| SqliteError::InvalidUrl { url: url.to_owned(), reason };
        let rest = url.strip_prefix("sqlite:").ok_or_else(|| {
            wrong("it has to begin with `sqlite:`, as in `sqlite:app.db?mode=rwc`".to_owned())
        })?;
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mode = mode_of(query).map_err(wrong)?;
        if path == ":memory:" || mode == Some("memory") {
            return Ok(Self::Memory);
        }
        if path.is_empty() {
            return Err(wrong("it names no file".to_owned()));
        }
        let create = match mode {
            None | Some("rw") => false,
            Some("rwc") => true,
            Some("ro") => return Err(wrong("a store cannot work read-only".to_owned())),
            Some(other) => {
                return Err(wrong(format!("mode `{other}` is not one of rw, rwc, memory")));
            }
        };
        Ok(Self::File { path: PathBuf::from(decode(path).map_err(wrong)?), create })
    }
}

/// The `mode` of a query string; other settings of other libraries are refused by name.
fn mode_of(query: &str) -> Result<Option<&str>, String> {
    let mut mode = None;
    for setting in query.split('&').filter(|setting| !setting.is_empty()) {
        match setting.split_once('=') {
            Some(("mode", value)) => mode = Some(value),
            Some(("cache", "shared" | "private")) => {} // Without effect: there is one writer.
            _ => return Err(format!("setting `{setting}` is not known; `mode` is")),
        }
    }
    Ok(mode)
}

/// Undoes percent-encoding.
fn decode(path: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let code = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
            let code = code.and_then(|hex| u8::from_str_radix(hex, 16).ok());
            bytes.push(code.ok_or("`%` has to be followed by two hexadecimal digits")?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).map_err(|_| "the path is not valid UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, create: bool) -> Location {
        Location::File { path: PathBuf::from(path), create }
    }

    #[test]
    fn r10_2_files() {
        let cases = [
            ("sqlite:app.db", file("app.db", false)),
            ("sqlite:app.db?mode=rwc", file("app.db", true)),
            ("sqlite:/var/lib/app.db?mode=rw", file("/var/lib/app.db", false)),
            ("sqlite:///var/lib/app.db?mode=rwc", file("/var/lib/app.db", true)),
            ("sqlite://app.db?mode=rwc&cache=private", file("app.db", true)),
            ("sqlite:my%20app%3F.db", file("my app?.db", false)),
        ];
        for (url, expected) in cases {
            assert_eq!(Location::parse(url), Ok(expected), "{url}");
        }
    }

    #[test]
    fn r10_3_memory() {
        for url in ["sqlite::memory:", "sqlite://:memory:", "sqlite:any?mode=memory&cache=shared"] {
            assert_eq!(Location::parse(url), Ok(Location::Memory), "{url}");
        }
    }

    #[test]
    fn r10_2_wrong_urls_say_what_is_wrong() {
        let cases = [
            ("postgres://x", "begin with `sqlite:`"),
            ("app.db", "begin with `sqlite:`"),
            ("sqlite:", "names no file"),
            ("sqlite:app.db?mode=ro", "read-only"),
            ("sqlite:app.db?mode=x", "mode `x`"),
            ("sqlite:app.db?journal=off", "`journal=off`"),
            ("sqlite:app%2.db", "two hexadecimal digits"),
            ("sqlite:%ff", "UTF-8"),
        ];
        for (url, expected) in cases {
            let error = Location::parse(url).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains(url), "{error}");
        }
    }
}
