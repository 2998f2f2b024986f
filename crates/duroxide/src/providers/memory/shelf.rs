//! Places in the queue by tag, so that work nobody here accepts costs nothing to pass over.

use std::collections::{BTreeSet, HashMap};

use crate::providers::TagFilter;

/// Position of a row, which changes when it is moved behind others (R8.146), and its number, which
/// does not.
pub(super) type Place = (u64, u64);

/// Rows in queue order, findable by tag.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    all: BTreeSet<Place>,
    untagged: BTreeSet<Place>,
    tagged: HashMap<String, BTreeSet<Place>>,
}

impl Shelf {
    /// Adds a row.
    pub(super) fn insert(&mut self, tag: Option<&str>, place: Place) {
        self.all.insert(place);
        match tag {
            None => self.untagged.insert(place),
            Some(tag) => self.tagged.entry(tag.to_owned()).or_default().insert(place),
        };
    }

    /// Removes a row.
    pub(super) fn remove(&mut self, tag: Option<&str>, place: Place) {
        self.all.remove(&place);
        match tag {
            None => {
                self.untagged.remove(&place);
            }
            Some(tag) => {
                if let Some(rows) = self.tagged.get_mut(tag) {
                    rows.remove(&place);
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
    pub(super) fn oldest(&self, filter: &TagFilter) -> Option<Place> {
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
    pub(super) fn heads(&self) -> impl Iterator<Item = (Option<&str>, Place)> {
        let untagged = self.untagged.first().map(|place| (None, *place));
        let tagged = self.tagged.iter();
        let tagged =
            tagged.filter_map(|(tag, rows)| rows.first().map(|first| (Some(tag.as_str()), *first)));
        untagged.into_iter().chain(tagged)
    }

    fn oldest_tagged<'a>(&self, tags: impl IntoIterator<Item = &'a String>) -> Option<Place> {
        let rows = tags.into_iter().filter_map(|tag| self.tagged.get(tag));
        rows.filter_map(|rows| rows.first().copied()).min()
    }
}
