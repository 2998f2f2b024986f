//! The list of accepted findings, each with its reason.

use std::collections::BTreeMap;

/// Places that may break a rule, and whether one of them did.
pub(super) struct Exceptions(BTreeMap<String, bool>);

impl Exceptions {
    /// Reads lines `file: reason` or `file::function: reason`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut places = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.split_once(": ") {
                Some((place, reason)) if !reason.trim().is_empty() => {
                    places.insert(place.to_owned(), false);
                }
                _ => return Err(format!("tidy exceptions: no reason given: {line}")),
            }
        }
        Ok(Self(places))
    }

    /// Whether a finding at this place is accepted.
    pub(super) fn excuse(&mut self, place: &str) -> bool {
        self.0.get_mut(place).map(|used| *used = true).is_some()
    }

    /// Places where nothing was found.
    pub(super) fn unused(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, used)| !**used).map(|(place, _)| place.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_need_a_reason_and_a_use() {
        let text = "# comment\n\na.rs: one idea\nb.rs::apply: a table\n";
        let mut exceptions = Exceptions::parse(text).unwrap();
        assert!(exceptions.excuse("b.rs::apply"));
        assert!(!exceptions.excuse("c.rs"));
        assert_eq!(exceptions.unused().collect::<Vec<_>>(), ["a.rs"]);
        assert!(Exceptions::parse("a.rs").is_err());
        assert!(Exceptions::parse("a.rs:  ").is_err());
    }
}
