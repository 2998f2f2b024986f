//! What tells one file from another of the same name.

use std::path::Path;

/// Device and number of a file; unknown where there are no such things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity(Option<(u64, u64)>);

impl FileIdentity {
    /// The file that has this name at present.
    #[cfg(unix)]
    pub(crate) fn of(path: &Path) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino())))
    }

    /// The file that has this name at present.
    #[cfg(not(unix))]
    pub(crate) fn of(_path: &Path) -> Self {
        Self(None)
    }
}
