//! What tells one file from another of the same name.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Device and number of a file; unknown where there are no such things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity(Option<(u64, u64)>);

impl FileIdentity {
    /// The file that has this name at present.
    pub(crate) fn of(path: &Path) -> Self {
        Self(number_of(path).ok().flatten())
    }

    /// Whether the name is known to lead to no file, or to another one, by now. A name that cannot be
    /// looked up at the moment says nothing.
    pub(crate) fn has_lost(&self, path: &Path) -> bool {
        match number_of(path) {
            Ok(number) => self.0.is_some() && number != self.0,
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

/// Device and number of the file that has this name.
///
/// Only these are asked for. Linux notes which files were asked for their times, and gives the next
/// write a time that is exact to the nanosecond: it then has to write the file's inode with each sync
/// of the log, which takes half as long again (`docs/decisions/019-names-without-times.md`).
#[cfg(target_os = "linux")]
fn number_of(path: &Path) -> io::Result<Option<(u64, u64)>> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
    use rustix::io::Errno;
    match statx(CWD, path, AtFlags::empty(), StatxFlags::INO) {
        Ok(file) => Ok(Some((makedev(file.stx_dev_major, file.stx_dev_minor), file.stx_ino))),
        // Old systems, and old sandboxes, which refuse what they do not know.
        Err(Errno::NOSYS | Errno::PERM) => std::fs::metadata(path).map(|file| number(&file)),
        Err(error) => Err(error.into()),
    }
}

/// Device and number of the file that has this name.
#[cfg(not(target_os = "linux"))]
fn number_of(path: &Path) -> io::Result<Option<(u64, u64)>> {
    std::fs::metadata(path).map(|file| number(&file))
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
