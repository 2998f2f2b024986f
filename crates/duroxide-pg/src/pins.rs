//! Library versions that executions are pinned to: few, so that each has a number (R8.90).

use duroxide_core::provider::SemverRange;
use semver::Version;

/// The pins as they were at some time.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    /// Versions that make no sense are `None`.
    known: Vec<(i32, Option<Version>)>,
}

impl Pins {
    pub(crate) fn new(stored: impl Iterator<Item = (i32, String)>) -> Self {
        Self { known: stored.map(|(id, text)| (id, Version::parse(&text).ok())).collect() }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> i64 {
        self.known.len() as i64
    }

    /// Whether a range admits all of them.
    pub(crate) fn are_within(&self, range: &SemverRange) -> bool {
        self.admitted(range).len() == self.known.len() + 1
    }

    /// The numbers that a range admits, and 0 for no pin.
    pub(crate) fn admitted(&self, range: &SemverRange) -> Vec<i32> {
        // Who cannot be judged is let through: its history tells.
        let admits = |version: &Option<Version>| version.as_ref().is_none_or(|v| range.contains(v));
        let admitted = self.known.iter().filter(|(_, version)| admits(version));
        std::iter::once(0).chain(admitted.map(|(id, _)| *id)).collect()
    }
}
