//! Reads: on connections of their own, on the snapshot of the log, never behind the writer.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::connection::open_reader;
use crate::database::Db;
use crate::error::{Failure, OpError, SqliteError};
use crate::faults;
use crate::ops::{Lasts, Op};
use crate::store_files::StoreFiles;
use crate::tx::Tx;
use crate::writer::WriterHandle;

/// Threads that read: as many as can be busy at once on a small machine without hurting the writer.
const THREADS: usize = 2;

/// Something to read, on a connection with a transaction of its own.
type Task = Box<dyn FnOnce(&mut Reader) + Send>;

/// Where reads are done.
pub(crate) enum Readers {
    /// By threads of their own.
    Threads(Pool),
    /// By the writer: a store in memory has one connection only.
    Writer(WriterHandle),
}

impl Readers {
    /// Threads that read a file.
    pub(crate) fn of_file(files: &Arc<StoreFiles>, faults: &faults::Plan) -> std::io::Result<Self> {
        Pool::new(files, faults).map(Self::Threads)
    }

    /// Ends the threads, after which nothing can be read.
    pub(crate) fn close(&mut self) {
        if let Self::Threads(pool) = self {
            pool.close();
        }
    }

    /// Reads something consistent: all its statements see the same state.
    // `Send` is promised here, where it can be checked, not inferred by every caller.
    #[expect(clippy::manual_async_fn, reason = "an async fn cannot promise `Send`")]
    pub(crate) fn read<T, F>(&self, query: F) -> impl Future<Output = Result<T, Failure>> + Send
    where
        T: Send + 'static,
        F: Fn(Db<'_>) -> Result<T, OpError> + Send + 'static,
    {
        async move {
            match self {
                Self::Threads(pool) => pool.read(query).await,
                Self::Writer(writer) => writer.run(Read(query)).await,
            }
        }
    }
}

/// A read as an operation of the writer.
struct Read<F>(F);

impl<T, F> Op for Read<F>
where
    T: Send + 'static,
    F: Fn(Db<'_>) -> Result<T, OpError> + Send + 'static,
{
    type Output = T;

    fn apply(&self, tx: &mut Tx<'_>) -> Result<T, OpError> {
        (self.0)(tx.connection)
    }

    fn lasts(&self) -> Lasts {
        Lasts::No
    }
}

/// Threads that wait for something to read. They end when the pool is dropped.
pub(crate) struct Pool {
    tasks: Option<Sender<Task>>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    fn new(files: &Arc<StoreFiles>, faults: &faults::Plan) -> std::io::Result<Self> {
        let (sender, tasks) = channel::<Task>();
        let tasks = Arc::new(Mutex::new(tasks));
        let mut threads = Vec::with_capacity(THREADS);
        for _ in 0..THREADS {
            let (reader, tasks) = (Reader::new(Arc::clone(files)), Arc::clone(&tasks));
            let faults = faults.clone();
            let builder = std::thread::Builder::new().name("duroxide-sqlite-read".to_owned());
            threads.push(builder.spawn(move || {
                faults::enter(&faults);
                work_off(reader, &tasks);
            })?);
        }
        Ok(Self { tasks: Some(sender), threads })
    }

    fn close(&mut self) {
        self.tasks = None;
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!(target: "duroxide::providers", "a reading thread panicked");
            }
        }
    }

    async fn read<T, F>(&self, query: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: Fn(Db<'_>) -> Result<T, OpError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let task: Task = Box::new(move |reader| {
            if !reply.is_closed() {
                // A caller that is gone needs no answer.
                drop(reply.send(reader.read(&query)));
            }
        });
        let closed = || Failure::Storage(SqliteError::Closed);
        let tasks = self.tasks.as_ref().ok_or_else(closed)?;
        tasks.send(task).map_err(|_| closed())?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.close();
    }
}

fn work_off(mut reader: Reader, tasks: &Mutex<Receiver<Task>>) {
    loop {
        // One thread waits for a task, the other for the lock.
        let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match task {
            Ok(task) => {
                let files = Arc::clone(&reader.files);
                let _inside = files.gate.enter();
                task(&mut reader);
            }
            Err(_) => return,
        }
    }
}

/// One reading thread's connection, opened when first needed.
struct Reader {
    files: Arc<StoreFiles>,
    connection: Option<Connection>,
}

impl Reader {
    fn new(files: Arc<StoreFiles>) -> Self {
        Self { files, connection: None }
    }

    fn read<T>(
        &mut self,
        query: &(impl Fn(Db<'_>) -> Result<T, OpError> + ?Sized),
    ) -> Result<T, Failure> {
        // Files without a name can still be read, but no other process writes them any more.
        if let Err(lost) = self.files.check() {
            self.connection = None;
            return Err(Failure::Storage(lost));
        }
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => open_reader(self.files.path()).map_err(Failure::Storage)?,
        };
        let result = in_snapshot(&mut connection, query);
        if let Err(OpError::Storage(error)) = &result {
            // The next read begins with a fresh connection: this one may be why.
            tracing::debug!(target: "duroxide::providers", %error, "read failed");
        } else {
            self.connection = Some(connection);
        }
        result.map_err(|error| match error {
            OpError::Refused(refusal) => Failure::Refused(refusal),
            OpError::Storage(error) => {
                Failure::Storage(SqliteError::sort(self.files.path(), &error))
            }
        })
    }
}

fn in_snapshot<T>(
    connection: &mut Connection,
    query: &(impl Fn(Db<'_>) -> Result<T, OpError> + ?Sized),
) -> Result<T, OpError> {
    let snapshot = connection.transaction()?;
    let result = query(Db::of(&snapshot))?;
    snapshot.finish()?;
    faults::read_ended();
    Ok(result)
}
