//! Management calls: forwarded to the store's management side, refused without one.

use std::sync::Mutex;

use async_trait::async_trait;
use duroxide_core::model::Event;
use duroxide_core::provider::{
    DeleteInstanceResult, DeleteRefused, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree,
    ProviderAdmin, ProviderError, PruneOptions, PruneResult, QueueDepths, SystemMetrics,
};

use super::fake::Fake;
use crate::client::{Client, ClientError};

/// A management side that writes down what it is asked.
#[derive(Default)]
pub(super) struct FakeAdmin {
    pub(super) asked: Mutex<Vec<String>>,
    pub(super) refusal: Option<DeleteRefused>,
    pub(super) error: Option<ProviderError>,
}

impl FakeAdmin {
    fn answer<T>(&self, asked: impl Into<String>, answer: T) -> Result<T, ProviderError> {
        self.asked.lock().unwrap().push(asked.into());
        self.error.clone().map_or(Ok(answer), Err)
    }
}

fn managed(admin: FakeAdmin) -> Fake {
    let mut store = Fake::new();
    store.admin = Some(admin);
    store
}

/// Every management call once, by name, with its answer as text.
async fn call_all(client: &Client) -> Vec<(&'static str, Result<String, ClientError>)> {
    fn text<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> Result<String, ClientError> {
        answer.map(|answer| format!("{answer:?}"))
    }
    let filter = InstanceFilter { limit: Some(2), ..InstanceFilter::default() };
    let options = PruneOptions { keep_last: Some(3), ..PruneOptions::default() };
    vec![
        ("list_instances", text(client.list_all_instances().await)),
        ("list_instances_by_status Failed", text(client.list_instances_by_status("Failed").await)),
        ("get_instance_info a", text(client.get_instance_info("a").await)),
        ("get_execution_info a 2", text(client.get_execution_info("a", 2).await)),
        ("list_executions a", text(client.list_executions("a").await)),
        ("read_history a 2", text(client.read_execution_history("a", 2).await)),
        ("get_system_metrics", text(client.get_system_metrics().await)),
        ("get_queue_depths", text(client.get_queue_depths().await)),
        ("get_instance_tree a", text(client.get_instance_tree("a").await)),
        ("try_delete_instance a true", text(client.delete_instance("a", true).await)),
        ("delete_instance_bulk 2", text(client.delete_instance_bulk(filter.clone()).await)),
        ("prune_executions a 3", text(client.prune_executions("a", options.clone()).await)),
        ("prune_executions_bulk 2 3", text(client.prune_executions_bulk(filter, options).await)),
    ]
}

#[tokio::test]
async fn chapter_6_7_without_a_management_side_nothing_can_be_managed() {
    let (_, client) = Fake::new().client();
    assert!(!client.has_management_capability());
    for (call, answer) in call_all(&client).await {
        assert!(matches!(answer, Err(ClientError::ManagementNotAvailable)), "{call}: {answer:?}");
    }
}

#[tokio::test]
async fn chapter_6_7_each_call_asks_the_management_side_once() {
    let (store, client) = managed(FakeAdmin::default()).client();
    assert!(client.has_management_capability());
    let calls = call_all(&client).await;
    let asked = store.admin.as_ref().unwrap().asked.lock().unwrap().clone();
    assert_eq!(asked, calls.iter().map(|(call, _)| *call).collect::<Vec<_>>());
    for (call, answer) in calls {
        assert!(answer.is_ok(), "{call}: {answer:?}");
    }
    assert_eq!(client.list_instances_by_status("x").await.unwrap(), [""; 0]); // R6.50
}

#[tokio::test]
async fn r6_83_store_errors_are_handed_on() {
    let error = ProviderError::permanent("get_instance_info", "Instance a not found");
    let admin = FakeAdmin { error: Some(error.clone()), ..FakeAdmin::default() };
    let (_, client) = managed(admin).client();
    for (call, answer) in call_all(&client).await {
        // Only a typed refusal is more than a provider error (R6.63, L31).
        match answer {
            Err(ClientError::Provider(found)) => assert_eq!(found, error, "{call}"),
            other => panic!("{call}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn r6_61_r6_63_l31_a_refused_deletion_says_why() {
    for (refusal, text) in [
        (DeleteRefused::NotFound, "InstanceNotFound { instance_id: \"still running\", }"),
        (DeleteRefused::StillRunning, "InstanceStillRunning { instance_id: \"still running\", }"),
        (
            DeleteRefused::SubOrchestration,
            "CannotDeleteSubOrchestration { instance_id: \"still running\", }",
        ),
    ] {
        let admin = FakeAdmin { refusal: Some(refusal), ..FakeAdmin::default() };
        let (_, client) = managed(admin).client();
        // An id that would confuse a classification by text.
        let error = client.delete_instance("still running", false).await.unwrap_err();
        let fields = format!("{error:#?}");
        assert_eq!(fields.split_whitespace().collect::<Vec<_>>().join(" "), text);
    }
}

#[async_trait]
impl ProviderAdmin for FakeAdmin {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        self.answer("list_instances", Vec::new())
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        self.answer(format!("list_instances_by_status {status}"), Vec::new())
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        self.answer(format!("list_executions {instance}"), Vec::new())
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.answer(format!("read_history {instance} {execution_id}"), Vec::new())
    }

    async fn read_history(&self, _: &str) -> Result<Vec<Event>, ProviderError> {
        unreachable!("a client never calls this")
    }

    async fn latest_execution_id(&self, _: &str) -> Result<u64, ProviderError> {
        unreachable!("a client never calls this")
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        let info = InstanceInfo {
            instance_id: instance.to_owned(),
            orchestration_name: "Order".to_owned(),
            orchestration_version: "1.0.0".to_owned(),
            current_execution_id: 1,
            status: "Running".to_owned(),
            output: None,
            created_at: 1,
            updated_at: 1,
            parent_instance_id: None,
        };
        self.answer(format!("get_instance_info {instance}"), info)
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        let info = ExecutionInfo {
            execution_id,
            status: "Running".to_owned(),
            output: None,
            started_at: 1,
            completed_at: None,
            event_count: 1,
        };
        self.answer(format!("get_execution_info {instance} {execution_id}"), info)
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        self.answer("get_system_metrics", SystemMetrics::default())
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        self.answer("get_queue_depths", QueueDepths::default())
    }

    async fn list_children(&self, _: &str) -> Result<Vec<String>, ProviderError> {
        unreachable!("a client never calls this")
    }

    async fn get_parent_id(&self, _: &str) -> Result<Option<String>, ProviderError> {
        unreachable!("a client never calls this")
    }

    async fn delete_instances_atomic(
        &self,
        _: &[String],
        _: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        unreachable!("a client never calls this")
    }

    async fn get_instance_tree(&self, instance: &str) -> Result<InstanceTree, ProviderError> {
        let tree = InstanceTree { root_id: instance.to_owned(), all_ids: vec![] };
        self.answer(format!("get_instance_tree {instance}"), tree)
    }

    async fn try_delete_instance(
        &self,
        instance: &str,
        force: bool,
    ) -> Result<Result<DeleteInstanceResult, DeleteRefused>, ProviderError> {
        let answer = self.refusal.map_or(Ok(DeleteInstanceResult::default()), Err);
        self.answer(format!("try_delete_instance {instance} {force}"), answer)
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let limit = filter.limit.unwrap_or_default();
        self.answer(format!("delete_instance_bulk {limit}"), DeleteInstanceResult::default())
    }

    async fn prune_executions(
        &self,
        instance: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let keep = options.keep_last.unwrap_or_default();
        self.answer(format!("prune_executions {instance} {keep}"), PruneResult::default())
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let (limit, keep) =
            (filter.limit.unwrap_or_default(), options.keep_last.unwrap_or_default());
        self.answer(format!("prune_executions_bulk {limit} {keep}"), PruneResult::default())
    }
}
