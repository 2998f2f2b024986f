//! Sequence numbers by tag, so that work nobody here accepts costs nothing to pass over.

use std::collections::{BTreeSet, HashMap};

use crate::providers::TagFilter;

/// Rows in queue order, findable by tag.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    all: BTreeSet<u64>,
    untagged: BTreeSet<u64>,
    tagged: HashMap<String, BTreeSet<u64>>,
}

impl Shelf {
    /// Adds a row.
    pub(super) fn insert(&mut self, tag: Option<&str>, sequence: u64) {
        self.all.insert(sequence);
        match tag {
            None => self.untagged.insert(sequence),
            Some(tag) => self.tagged.entry(tag.to_owned()).or_default().insert(sequence),
        };
    }

    /// Removes a row.
    pub(super) fn remove(&mut self, tag: Option<&str>, sequence: u64) {
        self.all.remove(&sequence);
        match tag {
            None => {
                self.untagged.remove(&sequence);
            }
            Some(tag) => {
                if let Some(rows) = self.tagged.get_mut(tag) {
                    rows.remove(&sequence);
                    if rows.is_empty() {
                        self.tagged.remove(tag);
                    }
                }
            }
        }
    }

    /// Whether there are no rows.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The oldest row that the filter lets through (R7.65).
    pub(super) fn oldest(&self, filter: &TagFilter) -> Option<u64> {
        match filter {
            TagFilter::Any => self.all.first().copied(),
            TagFilter::None => None,
            TagFilter::DefaultOnly => self.untagged.first().copied(),
            TagFilter::Tags(tags) => self.oldest_tagged(tags),
            TagFilter::DefaultAnd(tags) => {
                let untagged = self.untagged.first().copied();
                untagged.into_iter().chain(self.oldest_tagged(tags)).min()
            }
        }
    }

    /// The oldest row of each tag, and the oldest untagged one.
    pub(super) fn heads(&self) -> impl Iterator<Item = (Option<&str>, u64)> {
        let untagged = self.untagged.first().map(|sequence| (None, *sequence));
        let tagged = self.tagged.iter();
        let tagged =
            tagged.filter_map(|(tag, rows)| rows.first().map(|first| (Some(tag.as_str()), *first)));
        untagged.into_iter().chain(tagged)
    }

    fn oldest_tagged<'a>(&self, tags: impl IntoIterator<Item = &'a String>) -> Option<u64> {
        let rows = tags.into_iter().filter_map(|tag| self.tagged.get(tag));
        rows.filter_map(|rows| rows.first().copied()).min()
    }
}
