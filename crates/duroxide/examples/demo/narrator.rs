//! The story: three workers, two kills, and nobody notices.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::providers::sqlite::SqliteProvider;
use duroxide::{Client, OrchestrationStatus};

use crate::folder::{Folder, journal_path, store_url};
use crate::journal::{self, Line, Mark};
use crate::show::Screen;
use crate::worker::Worker;
use crate::workflow::{ORDERS, WAITS};
use crate::{Failure, check};

/// For one thing to happen.
const PATIENCE: Duration = Duration::from_secs(20);
/// For everything.
const TIME_LIMIT: Duration = Duration::from_secs(50);
/// Between two looks at the journal.
const LOOK: Duration = Duration::from_millis(5);

/// Tells the story in a folder of its own.
#[tokio::main]
pub(crate) async fn tell() -> Result<(), Failure> {
    let folder = Folder::fresh()?;
    let told = tokio::time::timeout(TIME_LIMIT, story(folder.path()))
        .await
        .unwrap_or_else(|_| Err(format!("not over after {TIME_LIMIT:?}").into()));
    let removed = folder.remove();
    told.and(removed)
}

async fn story(folder: &Path) -> Result<(), Failure> {
    let began = Instant::now();
    let store = SqliteProvider::new(&store_url(folder), None).await?;
    let client = Client::new(Arc::new(store));
    let mut stage = Stage { folder, client, screen: Screen::new() };
    stage.screen.title("Two orders, one SQLite file, and a worker process that is killed twice.");

    let mut worker = stage.enter(1)?;
    for order in ORDERS {
        stage.client.start_orchestration(order, "ProcessOrder", order).await?;
    }
    let moment = "book's second charge has begun, and piano is paid and waits";
    stage.until(&mut worker, moment, book_hangs_and_piano_waits).await?;
    stage.kill(worker, "while the bank has not answered about the book")?;

    let mut worker = stage.enter(2)?;
    stage.until(&mut worker, "both orders wait", all_wait).await?;
    stage.kill(worker, "while both orders wait for a timer and for approval")?;

    for order in ORDERS {
        stage.client.raise_event(order, "Approved", "Ada").await?;
    }
    stage.screen.aside("no worker lives; Ada approves both orders, the file keeps it");

    let mut worker = stage.enter(3)?;
    stage.until(&mut worker, "both orders are done", all_done).await?;
    worker.dismiss()?;

    let lines = stage.look()?;
    stage.screen.table(&lines);
    let outputs = stage.outputs().await?;
    stage.screen.outputs(&outputs);
    check::check(&lines, &outputs)?;
    stage.screen.verdict(&lines, began.elapsed());
    Ok(())
}

/// Where the story happens.
struct Stage<'a> {
    folder: &'a Path,
    client: Client,
    screen: Screen,
}

impl Stage<'_> {
    fn enter(&mut self, number: usize) -> Result<Worker, Failure> {
        let worker = Worker::start(number, self.folder)?;
        self.screen.enter(&worker);
        Ok(worker)
    }

    fn kill(&mut self, worker: Worker, moment: &str) -> Result<(), Failure> {
        let number = worker.number;
        worker.kill()?;
        let lines = self.look()?;
        self.screen.kill(&lines, number, moment);
        Ok(())
    }

    /// Reads the journal, and shows what is new.
    fn look(&mut self) -> Result<Vec<Line>, Failure> {
        let lines = journal::read(&journal_path(self.folder))?;
        self.screen.news(&lines);
        Ok(lines)
    }

    /// Looks on until something has happened; not for ever, and not after the worker is gone.
    async fn until(
        &mut self,
        worker: &mut Worker,
        what: &str,
        happened: impl AsyncFn(&Client, &[Line]) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let lines = self.look()?;
            if happened(&self.client, &lines).await? {
                self.look()?;
                return Ok(());
            }
            worker.check_alive()?;
            if Instant::now() > deadline {
                return Err(format!("waited {PATIENCE:?} in vain until {what}").into());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn outputs(&self) -> Result<Vec<(&'static str, String)>, Failure> {
        let mut outputs = Vec::new();
        for order in ORDERS {
            match self.client.get_orchestration_status(order).await? {
                OrchestrationStatus::Completed { output, .. } => outputs.push((order, output)),
                other => return Err(format!("{order} is not completed: {other:?}").into()),
            }
        }
        Ok(outputs)
    }
}

async fn book_hangs_and_piano_waits(client: &Client, lines: &[Line]) -> Result<bool, Failure> {
    let charges = lines.iter().filter(|line| line.is(Mark::Began, "Charge", "book")).count();
    Ok(charges == 2 && waits(client, "piano").await?)
}

async fn all_wait(client: &Client, _: &[Line]) -> Result<bool, Failure> {
    Ok(waits(client, "book").await? && waits(client, "piano").await?)
}

async fn all_done(client: &Client, _: &[Line]) -> Result<bool, Failure> {
    for order in ORDERS {
        if let OrchestrationStatus::Running { .. } = client.get_orchestration_status(order).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the store says so. Not the journal: what counts is what was committed.
async fn waits(client: &Client, order: &str) -> Result<bool, Failure> {
    match client.get_orchestration_status(order).await? {
        OrchestrationStatus::Running { custom_status, .. } => {
            Ok(custom_status.as_deref() == Some(WAITS))
        }
        OrchestrationStatus::NotFound => Ok(false),
        over => Err(format!("{order} is over too early: {over:?}").into()),
    }
}
