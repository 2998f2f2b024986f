//! What a client does for an instance: start it, send what it waits for, see it end.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::{Client, ClientError, OrchestrationStatus};

use crate::client::PATIENT;
use crate::journal::{Journal, Line};
use crate::programs::{Program, Step};
use crate::roles::Stage;

/// Longest time an instance may take, kills included, and servers that take a minute to restart.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often to look where no notification comes.
const LOOK: Duration = Duration::from_millis(500);

/// A client that journals its calls: `TRY` before, `OK` after, `ERR` if it was told an error.
pub struct Attendant {
    /// For other calls.
    pub client: Client,
    journal: Journal,
    /// Calls that were acknowledged to this client or an earlier one.
    done: HashSet<String>,
    /// Whether calls are made again when they may work later.
    is_patient: bool,
}

impl Attendant {
    /// A client of a stage's store; `done` was acknowledged before.
    pub async fn new(stage: &Stage, done: HashSet<String>) -> Self {
        let client = Client::new(stage.store().await);
        let is_patient = stage.setting(PATIENT).is_some();
        Self { client, journal: stage.journal.clone(), done, is_patient }
    }

    /// Sees a program through, from its start or from where an earlier client left it.
    pub async fn attend(&self, id: &str, program: &Program) -> Result<(), ClientError> {
        let input = serde_json::to_string(program).unwrap();
        let start = || self.client.start_orchestration(id, "Program", &*input);
        self.call(format!("start {id}"), &input, start).await?;
        for number in 0..program.messages() {
            let number = number.to_string();
            let send = || self.client.enqueue_event(id, "mail", &*number);
            self.call(format!("send {id} {number}"), "", send).await?;
        }
        if program.is_endless() {
            let cancel = || self.client.cancel_instance(id, "enough");
            self.call(format!("cancel {id}"), "", cancel).await?;
        }
        self.see_through(id, program).await
    }

    /// Deletes an instance that has ended, unless that was acknowledged before.
    pub async fn delete(&self, id: &str) -> Result<(), ClientError> {
        let delete = || async {
            match self.client.delete_instance(id, false).await {
                // An earlier client did, and was killed before it could journal that.
                Err(error) if error.to_string().contains("not found") => Ok(()),
                other => other.map(drop),
            }
        };
        self.call(format!("delete {id}"), "", delete).await
    }

    async fn see_through(&self, id: &str, program: &Program) -> Result<(), ClientError> {
        let mut version = 0;
        loop {
            let news = || self.client.wait_for_status_change(id, version, LOOK, PATIENCE);
            match self.checked(&format!("wait {id}"), news).await? {
                OrchestrationStatus::Running { custom_status, custom_status_version } => {
                    version = custom_status_version;
                    let at = custom_status.and_then(|at| at.parse::<usize>().ok());
                    let step = at.and_then(|at| program.steps.get(at).map(|step| (at, step)));
                    if let Some((at, Step::Event { value })) = step {
                        let value = value.to_string();
                        let event = format!("event-{at}");
                        let raise = || self.client.raise_event(id, &*event, &*value);
                        self.call(format!("raise {id} {at}"), "", raise).await?;
                    }
                }
                OrchestrationStatus::Completed { output, .. } => {
                    self.journal.note(format_args!("DONE {id} {output}"));
                    return Ok(());
                }
                OrchestrationStatus::Failed { details, .. } => {
                    let error = details.display_message().replace([' ', '\n'], "_");
                    self.journal.note(format_args!("DONE {id} {error}"));
                    return Ok(());
                }
                OrchestrationStatus::NotFound => {}
            }
        }
    }

    /// Makes a call unless it was acknowledged before.
    async fn call<F: Future<Output = Result<(), ClientError>>>(
        &self,
        what: String,
        detail: &str,
        call: impl Fn() -> F,
    ) -> Result<(), ClientError> {
        if self.done.contains(&what) {
            return Ok(());
        }
        self.journal.note(format_args!("TRY {what} {detail}"));
        self.checked(&what, call).await?;
        self.journal.note(format_args!("OK {what}"));
        Ok(())
    }

    async fn checked<T, F: Future<Output = Result<T, ClientError>>>(
        &self,
        what: &str,
        call: impl Fn() -> F,
    ) -> Result<T, ClientError> {
        let began = Instant::now();
        loop {
            match call().await {
                Err(error)
                    if self.is_patient && error.is_retryable() && began.elapsed() < PATIENCE =>
                {
                    self.journal.note(format_args!("AGAIN {what} {error}"));
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => {
                    self.journal.note(format_args!("ERR {what} {error}"));
                    return Err(error);
                }
                result => return result,
            }
        }
    }
}

/// Sees the programs through whose client was killed.
pub async fn finish_orphans(stage: &Stage) {
    let (open, done) = unattended(&stage.journal.read());
    let attendant = Arc::new(Attendant::new(stage, done).await);
    attend_all(&attendant, open).await;
}

/// Sees programs through, all at once.
pub async fn attend_all(attendant: &Arc<Attendant>, programs: Vec<(String, Program)>) {
    let attended = programs.into_iter().map(|(id, program)| {
        let attendant = Arc::clone(attendant);
        tokio::spawn(async move { attendant.attend(&id, &program).await })
    });
    for attended in Vec::from_iter(attended) {
        attended.await.unwrap().unwrap();
    }
}

/// All programs that a client tried to start: `(id, program)`.
pub fn tried_starts(lines: &[Line]) -> Vec<(String, Program)> {
    let starts = lines.iter().filter(|line| line.says(&["TRY", "start"]));
    let mut seen = HashSet::new();
    let starts = starts.filter(|line| seen.insert(line.word(2).to_owned()));
    starts
        .map(|line| (line.word(2).to_owned(), serde_json::from_str(line.word(3)).unwrap()))
        .collect()
}

/// Programs whose end no client has seen, and what was acknowledged of them.
pub fn unattended(lines: &[Line]) -> (Vec<(String, Program)>, HashSet<String>) {
    let ended: HashSet<&str> =
        lines.iter().filter(|line| line.says(&["DONE"])).map(|line| line.word(1)).collect();
    let open = tried_starts(lines).into_iter().filter(|(id, _)| !ended.contains(id.as_str()));
    let acknowledged = lines.iter().filter(|line| line.says(&["OK"]));
    (open.collect(), acknowledged.map(|line| line.words[1..].join(" ")).collect())
}
