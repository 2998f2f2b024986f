//! A test run again in a process of its own: as the user `nobody`, or with a disk of its own.

use std::path::Path;
use std::process::Command;

use super::Folder;

/// Set in the process that runs a test again: the folder it may use.
const INNER: &str = "DUROXIDE_TEST_FOLDER";

/// The folder to use, if this is the process that runs a test again.
pub(crate) fn inner_folder() -> Option<Folder> {
    std::env::var_os(INNER).map(|folder| Folder::inside(Path::new(&folder)))
}

/// Runs one test of this binary as a user whom permissions bind; `false` if that cannot be done.
#[cfg(unix)]
pub(crate) fn as_nobody(test: &str) -> bool {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;

    const NOBODY: u32 = 65534;
    let folder = Folder::new();
    // The binary may be where the user `nobody` may not go.
    let binary = folder.file("test");
    std::fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    std::fs::set_permissions(&binary, PermissionsExt::from_mode(0o755)).unwrap();
    if chown(folder.path(), Some(NOBODY), Some(NOBODY)).is_err() {
        return false;
    }
    let mut command = Command::new(&binary);
    command.args(["--exact", test, "--nocapture"]).env(INNER, folder.path());
    run(command.uid(NOBODY).gid(NOBODY).current_dir(folder.path()), test)
}

/// Runs one test of this binary with its folder on a disk of that size, in bytes; `false` if that
/// cannot be done.
pub(crate) fn on_small_disk(test: &str, bytes: u64) -> bool {
    let folder = Folder::new();
    // Seen by that process only, and gone with it.
    let script = format!("mount -t tmpfs -o size={bytes} tmpfs \"$0\" && exec \"$@\"");
    let on_disk = || {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &script]).arg(folder.path());
        command
    };
    if !on_disk().arg("true").output().is_ok_and(|done| done.status.success()) {
        return false;
    }
    let mut command = on_disk();
    command.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
    run(command.env(INNER, folder.path()), test)
}

fn run(command: &mut Command, test: &str) -> bool {
    let done = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&done.stdout), text(&done.stderr));
    assert!(done.status.success(), "{test}, run again:\n{out}\n{err}");
    assert!(out.contains("1 passed"), "{test} did not run:\n{out}");
    true
}
