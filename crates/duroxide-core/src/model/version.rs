//! Versions: this build's, ranges of them, and the gates of changed replay rules.

use std::sync::LazyLock;

use semver::Version;

/// Version stamped on every event this library makes (R2.5).
pub const BUILD_VERSION: &str = env!("CARGO_PKG_VERSION");

static BUILD: LazyLock<Version> =
    LazyLock::new(|| Version::parse(BUILD_VERSION).unwrap_or(Version::new(0, 0, 0)));

/// This library's version.
pub fn current_build_version() -> Version {
    BUILD.clone()
}

/// From here on a dropped wait stops counting at the drop itself (R3.90).
const RACE_POLICY_NEW_SINCE: Version = Version::new(0, 1, 31);
/// From here on mailboxes are exact and early returns are found (R3.94).
const STRICT_SINCE: Version = Version::new(0, 2, 0);

/// The replay rules an execution is pinned to by the version stamp of its first event. Changing
/// rules under a running execution would make its own history nondeterministic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayRules {
    /// Dropped waits and dequeues stop counting at once, and only read messages count as consumed.
    /// Otherwise (OLD) they stop counting when their breadcrumb is replayed.
    pub drops_count_at_once: bool,
    /// Mailboxes hand each message out once whatever is cancelled; code that returns early or names
    /// another child instance is nondeterministic.
    pub strict: bool,
}

impl ReplayRules {
    /// The rules of executions older than every gate, and of contexts no engine drives (R3.93).
    pub const OLD: Self = Self { drops_count_at_once: false, strict: false };

    /// The rules for a version stamp; `Err` if it is not semver, which means the oldest (R3.90).
    pub fn for_stamp(stamp: &str) -> Result<Self, semver::Error> {
        let version = Version::parse(stamp)?;
        // Precedence ignores build metadata: `0.1.31+build` is not older than 0.1.31.
        let since = |gate: &Version| version.cmp_precedence(gate).is_ge();
        Ok(Self {
            drops_count_at_once: since(&RACE_POLICY_NEW_SINCE),
            strict: since(&STRICT_SINCE),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r0_6_build_is_new_enough_for_every_gate() {
        let rules = ReplayRules::for_stamp(BUILD_VERSION).unwrap();
        assert_eq!(rules, ReplayRules { drops_count_at_once: true, strict: true });
        assert_eq!(current_build_version().to_string(), BUILD_VERSION);
    }

    #[test]
    fn r3_90_policy_by_semver_order() {
        for (stamp, new) in [
            ("0.1.30", false),
            ("0.1.31-rc.1", false),
            ("0.1.31", true),
            ("0.1.31+build", true),
            ("0.1.32", true),
            ("1.0.0", true),
        ] {
            assert_eq!(ReplayRules::for_stamp(stamp).unwrap().drops_count_at_once, new, "{stamp}");
        }
        assert!(ReplayRules::for_stamp("").is_err() && ReplayRules::for_stamp("abc").is_err());
        assert!(!ReplayRules::for_stamp("0.1.32").unwrap().strict);
    }
}
