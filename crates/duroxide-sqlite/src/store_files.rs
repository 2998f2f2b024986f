//! The files of an open store: are they still those that SQLite works on?
//!
//! SQLite does not notice that its log has lost its name. It goes on committing, and no process will
//! ever find what it commits; when it copies the log into the database, it overwrites what others have
//! written there since. So this is asked before any caller is answered, and once the answer was no,
//! nothing more is written.
//!
//! The system's locks on the database belong to the whole process, and closing *any* of its descriptors
//! of the file releases all of them. So the database is never opened but by SQLite, which knows of
//! its other connections, and the index of the log, which has locks as well, neither. The log has
//! none.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::error::SqliteError;
use crate::faults;
use crate::file_identity::FileIdentity;
use crate::inspect::sort;
use crate::read_gate::ReadGate;

/// How long names are believed to be what they were; a commit looks that of the log up in any case.
const BELIEVED: Duration = Duration::from_millis(10);

/// The files of an open store.
pub(crate) struct StoreFiles {
    path: PathBuf,
    log_name: PathBuf,
    index_name: PathBuf,
    database: FileIdentity,
    /// `None` while the file is not open.
    log: Mutex<Option<OpenLog>>,
    /// What was found missing first.
    lost: OnceLock<PathBuf>,
    /// Through which all reads of this store go.
    pub(crate) gate: ReadGate,
}

/// The log that SQLite works on.
struct OpenLog {
    /// For syncs; and as long as it is open, no other file has its number.
    file: File,
    identity: FileIdentity,
    /// Its index.
    index: FileIdentity,
    looked_at: Instant,
}

impl StoreFiles {
    /// The files of a store that was just opened, and written to: its log is there.
    pub(crate) fn of(path: &Path) -> Result<Self, SqliteError> {
        let files = Self {
            path: path.to_owned(),
            log_name: beside(path, "-wal"),
            index_name: beside(path, "-shm"),
            database: FileIdentity::of(path),
            log: Mutex::new(None),
            lost: OnceLock::new(),
            gate: ReadGate::default(),
        };
        files.take_up()?;
        Ok(files)
    }

    /// The database.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether SQLite still works on files that others find, by a look that need not be the newest.
    /// Once it fails, it fails for ever.
    pub(crate) fn check(&self) -> Result<(), SqliteError> {
        self.look(|log, age| if age < BELIEVED { None } else { self.missing(log) })
    }

    /// The same, to be asked after a commit, before its caller is answered: is it where others find it?
    pub(crate) fn check_commit(&self) -> Result<(), SqliteError> {
        self.look(|log, age| match age {
            age if age < BELIEVED => self.missing_log(log),
            _ => self.missing(log),
        })
    }

    /// The same, and all names are looked up.
    pub(crate) fn check_names(&self) -> Result<(), SqliteError> {
        self.look(|log, _| self.missing(log))
    }

    /// To be called before the file is closed to be opened again: closing may remove the log.
    pub(crate) fn let_go(&self) {
        *self.log() = None;
    }

    /// To be called when the file was opened, and written to.
    pub(crate) fn take_up(&self) -> Result<(), SqliteError> {
        let log = &self.log_name;
        let file = OpenOptions::new().write(true).open(log).map_err(|error| sort(log, &error))?;
        let (identity, index) = (FileIdentity::of(log), FileIdentity::of(&self.index_name));
        *self.log() = Some(OpenLog { file, identity, index, looked_at: Instant::now() });
        self.check_names()
    }

    /// Waits until all that is in the log is on the disk.
    pub(crate) fn sync(&self) -> std::io::Result<()> {
        faults::sync()?;
        self.log().as_ref().map_or(Ok(()), |log| log.file.sync_data())
    }

    /// How long the log is; 0 if that cannot be told. Its times are not asked for, for the reason given
    /// in `file_identity.rs`.
    pub(crate) fn log_bytes(&self) -> u64 {
        let log = self.log();
        log.as_ref().and_then(|log| (&log.file).seek(SeekFrom::End(0)).ok()).unwrap_or(0)
    }

    /// Looks for what is missing, by the log and the age of the last look at all names.
    fn look(
        &self,
        missing: impl FnOnce(&mut OpenLog, Duration) -> Option<PathBuf>,
    ) -> Result<(), SqliteError> {
        if let Some(lost) = self.lost.get() {
            return Err(SqliteError::Lost { path: lost.clone() });
        }
        let mut log = self.log();
        let missing = match log.as_mut() {
            None => self.database.has_lost(&self.path).then(|| self.path.clone()),
            Some(log) => {
                let age = log.looked_at.elapsed();
                missing(log, age)
            }
        };
        drop(log);
        match missing {
            None => Ok(()),
            Some(missing) => {
                let path = self.lost.get_or_init(|| {
                    let error = SqliteError::Lost { path: missing.clone() };
                    tracing::error!(target: "duroxide::providers", %error, "store lost");
                    missing
                });
                Err(SqliteError::Lost { path: path.clone() })
            }
        }
    }

    /// The first of the names that is not that of the file it was.
    fn missing(&self, log: &mut OpenLog) -> Option<PathBuf> {
        log.looked_at = Instant::now();
        if self.database.has_lost(&self.path) {
            return Some(self.path.clone());
        }
        let index = || log.index.has_lost(&self.index_name).then(|| self.index_name.clone());
        self.missing_log(log).or_else(index)
    }

    fn missing_log(&self, log: &OpenLog) -> Option<PathBuf> {
        log.identity.has_lost(&self.log_name).then(|| self.log_name.clone())
    }

    fn log(&self) -> MutexGuard<'_, Option<OpenLog>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of a file beside a database.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Whether the folder of a database can be opened. If not, what is wrong is not about the database.
pub(crate) fn check_folder(path: &Path) -> std::io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/"))).map(drop)
}

/// The name by which a database is known to all processes that have it open: absolute and without
/// links, as SQLite names the files beside it. A file that is not there yet is named as it will be.
pub(crate) fn real_name(path: &Path) -> PathBuf {
    /// Links that lead to links, at most: as the system has it.
    const LINKS_MAX: usize = 40;
    let mut name = path.to_owned();
    for _ in 0..LINKS_MAX {
        if let Ok(real) = name.canonicalize() {
            return real;
        }
        let folder = match name.parent() {
            Some(folder) if folder != Path::new("") => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        match name.read_link() {
            // A link that leads nowhere yet: the file will be made where it leads.
            Ok(target) => name = folder.join(target),
            Err(_) => {
                let Ok(folder) = folder.canonicalize() else { break };
                return name.file_name().map_or_else(|| path.to_owned(), |file| folder.join(file));
            }
        }
    }
    path.to_owned()
}
