//! The two lists: what the reference API has, and what of it we do not have yet.

/// One line of the list.
#[derive(Debug, PartialEq)]
pub(super) struct Item {
    pub(super) kind: String,
    pub(super) path: String,
}

const KINDS: &[&str] =
    &["mod", "struct", "enum", "trait", "type", "const", "fn", "variant", "field", "method"];

/// Reads lines `kind path`.
pub(super) fn parse(text: &str) -> Result<Vec<Item>, String> {
    lines(text)
        .map(|line| match line.split_once(' ') {
            Some((kind, path)) if KINDS.contains(&kind) && !path.contains(' ') => {
                Ok(Item { kind: kind.to_owned(), path: path.to_owned() })
            }
            _ => Err(format!("not `kind path`: {line}")),
        })
        .collect()
}

/// Paths that may be missing: exact ones, and beginnings marked by a final `*`.
pub(super) struct Expected(Vec<(String, bool)>);

impl Expected {
    pub(super) fn parse(text: &str) -> Self {
        Self(lines(text).map(|line| (line.to_owned(), false)).collect())
    }

    pub(super) fn contains(&mut self, path: &str) -> bool {
        let mut found = false;
        for (pattern, used) in &mut self.0 {
            let matches = match pattern.strip_suffix('*') {
                Some(beginning) => path.starts_with(beginning),
                None => path == pattern,
            };
            *used |= matches;
            found |= matches;
        }
        found
    }

    /// Lines that were not needed.
    pub(super) fn unused(&self) -> Vec<&str> {
        self.0.iter().filter(|(_, used)| !used).map(|(pattern, _)| pattern.as_str()).collect()
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_kind_and_path() {
        let items = parse("# note\n\nstruct a::B\nmethod a::B::c\n").unwrap();
        assert_eq!(items.len(), 2);
        assert_eq!((items[1].kind.as_str(), items[1].path.as_str()), ("method", "a::B::c"));
        for wrong in ["a::B", "thing a::B", "struct a::B extra"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn expected_items_are_exact_or_beginnings() {
        let mut expected = Expected::parse("# later\na::b\na::c*\na::d\n");
        assert!(expected.contains("a::b"));
        assert!(!expected.contains("a::b::x"));
        assert!(expected.contains("a::c"));
        assert!(expected.contains("a::c::x"));
        assert_eq!(expected.unused(), ["a::d"]);
    }
}
