//! Stored forms, byte for byte. The files beside this one hold what a store holds, one value per
//! line; a change to one of them is a change of the format (R2.73).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod errors;
mod events;
mod payloads;
mod reading;
mod recorded;
mod work_items;

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Each line of `text` reads as the value at its place in `expected`, and is written as that line.
fn assert_golden<T>(text: &str, expected: &[T])
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    assert_eq!(text.lines().count(), expected.len(), "a line for each value");
    for (line, value) in text.lines().zip(expected) {
        assert_eq!(serde_json::from_str::<T>(line).expect(line), *value);
        assert_eq!(serde_json::to_string(value).unwrap(), line);
    }
}

/// The name of a value's variant, by a match that knows all of them: a new variant does not compile
/// until it is listed, and the test does not pass until there is a golden line for it.
macro_rules! variants {
    ($type:ident: $($(#[$attribute:meta])* $variant:ident),* $(,)?) => {
        const VARIANTS: &[&str] = &[$($(#[$attribute])* stringify!($variant)),*];

        fn variant(value: &$type) -> &'static str {
            match value {
                $($(#[$attribute])* $type::$variant { .. } => stringify!($variant),)*
            }
        }
    };
}
pub(crate) use variants;

/// Every variant is among the values.
fn assert_complete<'a>(variants: &[&'a str], found: impl Iterator<Item = &'a str>) {
    let found: std::collections::BTreeSet<&str> = found.collect();
    let missing: Vec<_> = variants.iter().filter(|variant| !found.contains(*variant)).collect();
    assert!(missing.is_empty(), "no golden line for {missing:?}");
}
