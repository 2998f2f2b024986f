//! A map from event ids. Histories number their events 1..n, so it is an array; ids from a damaged
//! history that would blow the array up go into a table beside it.

use std::collections::HashMap;

#[derive(Debug)]
pub(crate) struct IdMap<T> {
    dense: Vec<Option<T>>,
    sparse: HashMap<u64, T>,
    len: usize,
}

impl<T> Default for IdMap<T> {
    fn default() -> Self {
        Self { dense: Vec::new(), sparse: HashMap::new(), len: 0 }
    }
}

impl<T> IdMap<T> {
    pub(crate) fn insert(&mut self, id: u64, value: T) {
        // Room for a few unmapped ids per mapped one keeps the array proportional to its contents.
        let dense_max = self.len * 8 + 64;
        let index = usize::try_from(id).ok().filter(|index| *index <= dense_max);
        let previous = match index {
            Some(index) => {
                if index >= self.dense.len() {
                    self.dense.resize_with(index + 1, || None);
                }
                let moved = self.sparse.remove(&id);
                self.dense[index].replace(value).or(moved)
            }
            None => self.sparse.insert(id, value),
        };
        self.len += usize::from(previous.is_none());
    }

    pub(crate) fn get(&self, id: u64) -> Option<&T> {
        let dense = usize::try_from(id).ok().and_then(|index| self.dense.get(index)?.as_ref());
        dense.or_else(|| if self.sparse.is_empty() { None } else { self.sparse.get(&id) })
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        let dense = usize::try_from(id).ok().and_then(|index| self.dense.get_mut(index)?.as_mut());
        dense.or_else(|| self.sparse.get_mut(&id))
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<T> {
        let dense = usize::try_from(id).ok().and_then(|index| self.dense.get_mut(index)?.take());
        let removed = dense.or_else(|| self.sparse.remove(&id));
        self.len -= usize::from(removed.is_some());
        removed
    }

    /// All entries, those of sane ids first, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let dense = self.dense.iter().enumerate();
        let dense = dense.filter_map(|(id, value)| Some((id as u64, value.as_ref()?)));
        dense.chain(self.sparse.iter().map(|(id, value)| (*id, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Like a table, whatever the ids; and never larger than a few times its contents.
        #[test]
        fn behaves_like_a_table(
            steps in proptest::collection::vec(
                (prop_oneof![0..40_u64, 90_000..90_100_u64, Just(u64::MAX)], any::<u8>(), any::<bool>()),
                0..200,
            )
        ) {
            let (mut map, mut table) = (IdMap::default(), HashMap::new());
            for (id, value, insert) in steps {
                if insert {
                    map.insert(id, value);
                    table.insert(id, value);
                } else {
                    prop_assert_eq!(map.remove(id), table.remove(&id));
                }
                prop_assert_eq!(map.get(id), table.get(&id));
                prop_assert_eq!(map.get_mut(id), table.get_mut(&id));
                prop_assert_eq!(map.len, table.len());
                prop_assert!(map.dense.len() <= 200 * 8 + 65);
            }
            let mut entries: Vec<(u64, u8)> = map.iter().map(|(id, value)| (id, *value)).collect();
            entries.sort_unstable();
            let mut expected: Vec<(u64, u8)> = table.into_iter().collect();
            expected.sort_unstable();
            prop_assert_eq!(entries, expected);
        }
    }
}
