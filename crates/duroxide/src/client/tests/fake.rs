//! A store that writes down what it is asked and answers from a script.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use duroxide_core::model::{ErrorDetails, Event, OrchestrationStatus, SystemStats, WorkItem};
use duroxide_core::provider::{
    DispatcherCapabilityFilter, ExecutionMetadata, OrchestrationItem, Provider, ProviderAdmin,
    ProviderError, ScheduledActivityIdentifier, SessionFetchConfig, TagFilter,
};
use tokio::sync::watch;
use tokio::time::Instant;

use super::manage::FakeAdmin;
use crate::client::Client;

/// One answer to a look at the store.
pub(super) type Answer<T> = Result<T, ProviderError>;

/// The scripted store. The last answer of a script stays.
pub(super) struct Fake {
    pub(super) sent: Mutex<Vec<(WorkItem, Option<Duration>)>>,
    pub(super) statuses: Mutex<VecDeque<Answer<OrchestrationStatus>>>,
    pub(super) values: Mutex<VecDeque<Answer<Option<String>>>>,
    /// When it was looked at, since its creation.
    pub(super) looks: Mutex<Vec<Duration>>,
    /// Number of commits; absent for a store that cannot tell.
    pub(super) commits: Option<watch::Sender<u64>>,
    /// Commits during each look, after reading: the race of a waiter.
    pub(super) commits_while_looking: bool,
    /// Answers questions for commits at once, with no news.
    pub(super) impatient: bool,
    pub(super) commit_questions: Mutex<usize>,
    pub(super) admin: Option<FakeAdmin>,
    pub(super) broken: Option<ProviderError>,
    began_at: Instant,
}

impl Fake {
    pub(super) fn new() -> Self {
        Self {
            sent: Mutex::default(),
            statuses: Mutex::new(VecDeque::from([Ok(OrchestrationStatus::NotFound)])),
            values: Mutex::new(VecDeque::from([Ok(None)])),
            looks: Mutex::default(),
            commits: None,
            commits_while_looking: false,
            impatient: false,
            commit_questions: Mutex::default(),
            admin: None,
            broken: None,
            began_at: Instant::now(),
        }
    }

    pub(super) fn with_statuses<const N: usize>(
        mut self,
        answers: [Answer<OrchestrationStatus>; N],
    ) -> Self {
        self.statuses = Mutex::new(answers.into());
        self
    }

    pub(super) fn with_values<const N: usize>(
        mut self,
        answers: [Answer<Option<String>>; N],
    ) -> Self {
        self.values = Mutex::new(answers.into());
        self
    }

    /// A store that tells of commits, of which there were already some.
    pub(super) fn telling_commits(mut self) -> Self {
        self.commits = Some(watch::Sender::new(7));
        self
    }

    /// The store and a client of it.
    pub(super) fn client(self) -> (Arc<Self>, Client) {
        let store = Arc::new(self);
        (store.clone(), Client::new(store))
    }

    pub(super) fn looks_ms(&self) -> Vec<u128> {
        self.looks.lock().unwrap().iter().map(Duration::as_millis).collect()
    }

    pub(super) fn commit(&self) {
        self.commits.as_ref().unwrap().send_modify(|commits| *commits += 1);
    }

    fn look<T: Clone>(&self, script: &Mutex<VecDeque<Answer<T>>>) -> Answer<T> {
        self.looks.lock().unwrap().push(self.began_at.elapsed());
        let mut script = script.lock().unwrap();
        let answer = if script.len() > 1 { script.pop_front() } else { script.front().cloned() };
        if self.commits_while_looking {
            self.commit();
        }
        answer.unwrap()
    }

    fn unless_broken<T>(&self, answer: T) -> Answer<T> {
        self.broken.clone().map_or(Ok(answer), Err)
    }
}

pub(super) fn running() -> Answer<OrchestrationStatus> {
    running_at(0)
}

pub(super) fn running_at(custom_status_version: u64) -> Answer<OrchestrationStatus> {
    let custom_status = (custom_status_version > 0).then(|| "busy".to_owned());
    Ok(OrchestrationStatus::Running { custom_status, custom_status_version })
}

pub(super) fn completed(output: &str) -> Answer<OrchestrationStatus> {
    Ok(OrchestrationStatus::Completed {
        output: output.to_owned(),
        custom_status: None,
        custom_status_version: 0,
    })
}

pub(super) fn failed() -> Answer<OrchestrationStatus> {
    Ok(OrchestrationStatus::Failed {
        details: ErrorDetails::cancelled("enough"),
        custom_status: None,
        custom_status_version: 0,
    })
}

pub(super) fn outage() -> ProviderError {
    ProviderError::retryable("read_status", "connection lost")
}

pub(super) fn corrupt() -> ProviderError {
    ProviderError::permanent("read_status", "row unreadable")
}

const NOT_FOR_CLIENTS: &str = "a client never calls this";

#[async_trait]
impl Provider for Fake {
    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.sent.lock().unwrap().push((item, delay));
        self.unless_broken(())
    }

    async fn read_status(&self, _: &str) -> Result<OrchestrationStatus, ProviderError> {
        self.look(&self.statuses)
    }

    async fn wait_for_commit(&self, _: &str, seen: u64, timeout: Duration) -> Option<u64> {
        *self.commit_questions.lock().unwrap() += 1;
        let mut commits = self.commits.as_ref()?.subscribe();
        if !self.impatient {
            let news = commits.wait_for(|commits| *commits != seen);
            let _ = tokio::time::timeout(timeout, news).await; // Time up is an answer too.
        }
        Some(*commits.borrow())
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.admin.as_ref().map(|admin| admin as &dyn ProviderAdmin)
    }

    async fn get_kv_value(&self, _: &str, _: &str) -> Result<Option<String>, ProviderError> {
        self.look(&self.values)
    }

    async fn get_kv_all_values(&self, _: &str) -> Result<HashMap<String, String>, ProviderError> {
        self.unless_broken(HashMap::from([("colour".to_owned(), "red".to_owned())]))
    }

    async fn get_instance_stats(&self, _: &str) -> Result<Option<SystemStats>, ProviderError> {
        self.unless_broken(Some(SystemStats {
            history_event_count: 1,
            history_size_bytes: 2,
            queue_pending_count: 3,
            kv_user_key_count: 4,
            kv_total_value_bytes: 5,
        }))
    }

    async fn get_custom_status(
        &self,
        _: &str,
        _: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        unreachable!("{NOT_FOR_CLIENTS}: read_status has it")
    }

    async fn read(&self, _: &str) -> Result<Vec<Event>, ProviderError> {
        unreachable!("{NOT_FOR_CLIENTS}: no wait reads the history")
    }

    async fn read_with_execution(&self, _: &str, _: u64) -> Result<Vec<Event>, ProviderError> {
        unreachable!("{NOT_FOR_CLIENTS}")
    }

    async fn append_with_execution(
        &self,
        _: &str,
        _: u64,
        _: Vec<Event>,
    ) -> Result<(), ProviderError> {
        unreachable!("{NOT_FOR_CLIENTS}")
    }

    async fn fetch_orchestration_item(
        &self,
        _: Duration,
        _: Duration,
        _: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        unreachable!("{NOT_FOR_CLIENTS}")
    }

    async fn ack_orchestration_item(
        &self,
        _: &str,
        _: u64,
        _: Vec<Event>,
        _: Vec<WorkItem>,
        _: Vec<WorkItem>,
        _: ExecutionMetadata,
        _: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        unreachable!("{NOT_FOR_CLIENTS}")
    }

    async fn abandon_orchestration_item(
        &self,
        _: &str,
        _: Option<Duration>,
        _: bool,
    ) -> Result<(), ProviderError> {
        unreachable!("{NOT_FOR_CLIENTS}")
    }

    async fn renew_orchestration_item_lock(
        &self,
        _: &str,
        _: Duration,
    ) -> Result<(), ProviderError> {
        unreachable!("{NOT_FOR_CLIENTS}")
    }

    async fn enqueue_for_worker(&self, _: WorkItem) -> Result<(), ProviderError> {
        unreachable!("{NOT_FOR_CLIENTS}")
    }

    async fn fetch_work_item(
        &self,
        _: Duration,
        _: Duration,
        _: Option<&SessionFetchConfig>,
        _: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        unreachable!("{NOT_FOR_CLIENTS}")
    }

    async fn ack_work_item(&self, _: &str, _: Option<WorkItem>) -> Result<(), ProviderError> {
        unreachable!("{NOT_FOR_CLIENTS}")
    }

    async fn abandon_work_item(
        &self,
        _: &str,
        _: Option<Duration>,
        _: bool,
    ) -> Result<(), ProviderError> {
        unreachable!("{NOT_FOR_CLIENTS}")
    }

    async fn renew_work_item_lock(&self, _: &str, _: Duration) -> Result<(), ProviderError> {
        unreachable!("{NOT_FOR_CLIENTS}")
    }

    async fn renew_session_lock(
        &self,
        _: &[&str],
        _: Duration,
        _: Duration,
    ) -> Result<usize, ProviderError> {
        unreachable!("{NOT_FOR_CLIENTS}")
    }

    async fn cleanup_orphaned_sessions(&self, _: Duration) -> Result<usize, ProviderError> {
        unreachable!("{NOT_FOR_CLIENTS}")
    }
}
