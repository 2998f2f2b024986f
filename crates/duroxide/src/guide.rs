//! The README and the guides, so that their examples are compiled and run as doc tests.

macro_rules! guides {
    ($($name:ident: $path:literal,)*) => {
        $(
            #[doc = include_str!($path)]
            mod $name {}
        )*
    };
}

guides! {
    readme: "../../../README.md",
    orchestrations: "../../../docs/guide/orchestrations.md",
    activities: "../../../docs/guide/activities.md",
    events: "../../../docs/guide/events.md",
    children: "../../../docs/guide/children.md",
    versioning: "../../../docs/guide/versioning.md",
    operations: "../../../docs/guide/operations.md",
}
