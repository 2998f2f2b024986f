//! The text files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold nothing written by us.
const SKIPPED: &[&str] = &["target", ".git", "Cargo.lock"];

/// One text file.
pub(crate) struct File {
    /// Path from the repository's root, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    #[cfg(test)]
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }
}

/// Root of the repository: the folder above this crate.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Reads a file by its path from the root.
pub(crate) fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))
}

/// All text files, in order of their paths. What is not UTF-8 is not text.
pub(crate) fn all() -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    collect(&root(), "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<File>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        let path = format!("{prefix}{name}");
        if entry.file_type().map_err(failed)?.is_dir() {
            collect(&entry.path(), &format!("{path}/"), files)?;
        } else if let Ok(text) = String::from_utf8(fs::read(entry.path()).map_err(failed)?) {
            files.push(File { path, text });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_found_without_its_build() {
        let files = all().unwrap();
        assert!(files.iter().any(|file| file.path == "xtask/src/files.rs" && file.is_rust()));
        assert!(files.iter().all(|file| !file.path.starts_with("target/")));
    }
}
