//! Wording: no trailing white space, nothing left to do, no paths of somebody's machine.

use super::Finding;
use crate::files::File;

/// Macros that mark unfinished code. Written apart, so that this file does not contain them.
const UNFINISHED: &[&str] = &[concat!("todo", "!"), concat!("unimplemented", "!")];
/// Beginnings of paths that mean something on one machine only.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wor", "k/"), concat!("/tmp/", "notes"), concat!("/ro", "ot/")];

/// Checks one file.
pub(super) fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let mut found = |message: String| {
            findings.push(Finding::new(format!("{}:{number}", file.path), message));
        };
        if line.ends_with(char::is_whitespace) {
            found("white space at the end of the line".to_owned());
        }
        for word in UNFINISHED.iter().filter(|word| file.is_rust() && line.contains(**word)) {
            found(format!("`{word}` left in the code"));
        }
        for path in MACHINE_PATHS.iter().filter(|path| names(line, path)) {
            found(format!("`{path}` is a path of one machine"));
        }
    }
    findings
}

/// Whether a line contains this absolute path, and not merely a relative one that ends like it.
fn names(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-*/".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(path: &str, text: &str) -> Vec<String> {
        check(&File::new(path, text)).into_iter().map(|found| found.place).collect()
    }

    #[test]
    fn trailing_white_space_is_found_in_any_file() {
        assert_eq!(places("a.md", "a \nb\nc\t\n"), ["a.md:1", "a.md:3"]);
    }

    #[test]
    fn unfinished_code_is_found_in_code() {
        let text = format!("fn f() {{ {}() }}\n", UNFINISHED[0]);
        assert_eq!(places("a.rs", &text), ["a.rs:1"]);
        assert_eq!(places("a.md", &text), [""; 0]);
    }

    #[test]
    fn machine_paths_are_found_and_relative_ones_are_not() {
        for (line, expected) in [
            (format!("see {}main", MACHINE_PATHS[0]), 1),
            (format!("`{}`", MACHINE_PATHS[1]), 1),
            (format!("docs{}x", MACHINE_PATHS[0]), 0),
            (format!("..{}x", MACHINE_PATHS[2]), 0),
        ] {
            assert_eq!(places("a.md", &line).len(), expected, "{line}");
        }
    }
}
