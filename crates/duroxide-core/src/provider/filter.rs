//! What a node accepts: tags, sessions, library versions.

use std::collections::HashSet;
use std::time::Duration;

use semver::Version;

use crate::model::limits::MAX_WORKER_TAGS;
use crate::model::version::current_build_version;

/// Which activities a worker takes (R7.65).
///
/// ```
/// # use duroxide_core::provider::TagFilter;
/// let gpu_node = TagFilter::default_and(["gpu"]);
/// assert!(gpu_node.matches(Some("gpu")) && gpu_node.matches(None));
/// assert!(!gpu_node.matches(Some("eu-only")));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TagFilter {
    /// Untagged ones.
    #[default]
    DefaultOnly,
    /// Those with one of these tags.
    Tags(HashSet<String>),
    /// Untagged ones and those with one of these tags.
    DefaultAnd(HashSet<String>),
    /// All.
    Any,
    /// None.
    None,
}

impl TagFilter {
    /// Activities with one of these tags.
    ///
    /// # Panics
    /// Without a tag, or with more than [`MAX_WORKER_TAGS`] distinct ones.
    pub fn tags<I, S>(tags: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        Self::Tags(checked("TagFilter::tags", tags))
    }

    /// Untagged activities and those with one of these tags.
    ///
    /// # Panics
    /// Without a tag, or with more than [`MAX_WORKER_TAGS`] distinct ones.
    pub fn default_and<I, S>(tags: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        Self::DefaultAnd(checked("TagFilter::default_and", tags))
    }

    /// Untagged activities.
    pub fn default_only() -> Self {
        Self::DefaultOnly
    }

    /// No activities.
    pub fn none() -> Self {
        Self::None
    }

    /// All activities.
    pub fn any() -> Self {
        Self::Any
    }

    /// Whether an activity with this tag is taken.
    pub fn matches(&self, tag: Option<&str>) -> bool {
        match (self, tag) {
            (Self::Any, _) | (Self::DefaultOnly | Self::DefaultAnd(_), None) => true,
            (Self::Tags(tags) | Self::DefaultAnd(tags), Some(tag)) => tags.contains(tag),
            (Self::None, _) | (Self::DefaultOnly, Some(_)) | (Self::Tags(_), None) => false,
        }
    }
}

fn checked<I, S>(constructor: &str, tags: I) -> HashSet<String>
where
    I: IntoIterator<Item = S>,
    S: Into<String>,
{
    let tags: HashSet<String> = tags.into_iter().map(Into::into).collect();
    assert!(!tags.is_empty(), "{constructor} requires at least one tag");
    assert!(tags.len() <= MAX_WORKER_TAGS, "{constructor} takes at most {MAX_WORKER_TAGS} tags");
    tags
}

/// Which worker fetches session work, and for how long a session is then its own.
#[derive(Debug, Clone)]
pub struct SessionFetchConfig {
    /// Owner of the sessions.
    pub owner_id: String,
    /// Length of the lease.
    pub lock_timeout: Duration,
}

/// A range of library versions, inclusive at both ends.
///
/// ```
/// # use duroxide_core::provider::SemverRange;
/// use semver::Version;
///
/// let range = SemverRange::new(Version::new(0, 1, 0), Version::new(0, 2, 0));
/// assert!(range.contains(&Version::new(0, 2, 0)));
/// assert!(!range.contains(&Version::new(0, 2, 1)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SemverRange {
    /// Lowest version.
    pub min: Version,
    /// Highest version.
    pub max: Version,
}

impl SemverRange {
    /// From `min` to `max`, both included.
    pub fn new(min: Version, max: Version) -> Self {
        Self { min, max }
    }

    /// Whether `version` lies in the range. Build metadata plays no part, as semver has it.
    pub fn contains(&self, version: &Version) -> bool {
        self.min.cmp_precedence(version).is_le() && version.cmp_precedence(&self.max).is_le()
    }

    /// Everything up to this build.
    pub fn default_for_current_build() -> Self {
        Self::new(Version::new(0, 0, 0), current_build_version())
    }
}

/// Which executions a node can replay, by the version they are pinned to.
#[derive(Debug, Clone)]
pub struct DispatcherCapabilityFilter {
    /// Ranges; providers honour the first only (R8.90).
    pub supported_duroxide_versions: Vec<SemverRange>,
}

impl DispatcherCapabilityFilter {
    /// Whether any range contains `version`.
    pub fn is_compatible(&self, version: &Version) -> bool {
        self.supported_duroxide_versions.iter().any(|range| range.contains(version))
    }

    /// Everything up to this build.
    pub fn default_for_current_build() -> Self {
        Self { supported_duroxide_versions: vec![SemverRange::default_for_current_build()] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r7_65_each_filter_kind() {
        let cases = [
            (TagFilter::default(), [true, false, false]),
            (TagFilter::default_only(), [true, false, false]),
            (TagFilter::tags(["gpu"]), [false, true, false]),
            (TagFilter::default_and(["gpu"]), [true, true, false]),
            (TagFilter::any(), [true, true, true]),
            (TagFilter::none(), [false, false, false]),
        ];
        for (filter, expected) in cases {
            let got = [None, Some("gpu"), Some("cpu")].map(|tag| filter.matches(tag));
            assert_eq!(got, expected, "{filter:?}");
        }
    }

    #[test]
    #[should_panic(expected = "requires at least one tag")]
    fn r7_65_no_tags() {
        TagFilter::tags(Vec::<String>::new());
    }

    #[test]
    #[should_panic(expected = "at most 5 tags")]
    fn r7_65_too_many_tags() {
        TagFilter::default_and(["a", "b", "c", "d", "e", "f"]);
    }

    #[test]
    fn r7_82_ranges_include_both_ends() {
        let range = SemverRange::new(Version::new(0, 1, 0), Version::new(0, 2, 0));
        assert!(range.contains(&Version::new(0, 1, 0)) && range.contains(&Version::new(0, 2, 0)));
        assert!(!range.contains(&Version::new(0, 2, 1)));
        assert!(range.contains(&Version::parse("0.2.0+build").unwrap()));
        assert!(!range.contains(&Version::parse("0.1.0-rc.1").unwrap()));
        assert!(
            DispatcherCapabilityFilter::default_for_current_build()
                .is_compatible(&current_build_version())
        );
    }
}
