//! Comparing what is too long to be shown in full.

use std::fmt::Debug;

use super::lab::Lab;

impl Lab {
    /// Two lists must be the same; the first difference is shown.
    #[track_caller]
    pub(crate) fn same_list<T: PartialEq + Debug>(&self, what: &str, got: &[T], expected: &[T]) {
        self.same(&format!("the number of {what}"), got.len(), expected.len());
        let difference = (0..got.len()).find(|at| got[*at] != expected[*at]);
        if let Some(at) = difference {
            self.same(&format!("number {at} of {what}"), &got[at], &expected[at]);
        }
    }

    /// Two texts must be the same; the place of the first difference is shown.
    #[track_caller]
    pub(crate) fn same_text(&self, what: &str, got: &str, expected: &str) {
        if got != expected {
            let bytes = got.bytes().zip(expected.bytes());
            let same = bytes.take_while(|(left, right)| left == right).count();
            let expected = format!("{what} to come back whole, {} bytes", expected.len());
            self.broken(&expected, format!("{} bytes, the first {same} as expected", got.len()));
        }
    }
}
