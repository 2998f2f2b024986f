//! What tells one file from another of the same name.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::Path;

/// Device and number of a file; unknown where there are no such things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity(Option<(u64, u64)>);

impl FileIdentity {
    /// The file that has this name at present.
    pub(crate) fn of(path: &Path) -> Self {
        Self(std::fs::metadata(path).ok().and_then(|file| number(&file)))
    }

    /// Whether the name is known to be nobody's, or another file's, by now. A name that cannot be
    /// looked up at the moment says nothing.
    pub(crate) fn has_lost(&self, path: &Path) -> bool {
        match std::fs::metadata(path) {
            Ok(file) => self.0.is_some() && number(&file) != self.0,
            Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        }
    }
}

/// How many names a file has.
#[cfg(unix)]
pub(crate) fn names_of(file: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(file)
}

/// How many names a file has.
#[cfg(not(unix))]
pub(crate) fn names_of(_file: &Metadata) -> u64 {
    1
}

#[cfg(unix)]
fn number(file: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn number(_file: &Metadata) -> Option<(u64, u64)> {
    None
}
