//! Looking over all instances, deleting and pruning them. Needs a store with a management side.

use duroxide_core::model::Event;
use duroxide_core::provider::{
    DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree, ProviderAdmin,
    PruneOptions, PruneResult, QueueDepths, SystemMetrics,
};

use super::{Client, ClientError};

impl Client {
    /// Whether the calls below work with this store.
    pub fn has_management_capability(&self) -> bool {
        self.store.as_management_capability().is_some()
    }

    /// All instances, newest first.
    pub async fn list_all_instances(&self) -> Result<Vec<String>, ClientError> {
        Ok(self.admin()?.list_instances().await?)
    }

    /// Instances whose current execution has this status: `Running`, `Completed`, `Failed` or
    /// `ContinuedAsNew`, exactly as spelled here.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ClientError> {
    /// # let client = Client::new(Arc::new(MemoryProvider::new()));
    /// for instance in client.list_instances_by_status("Failed").await? {
    ///     let info = client.get_instance_info(&instance).await?;
    ///     println!("{instance}: {}", info.output.unwrap_or_default());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ClientError> {
        Ok(self.admin()?.list_instances_by_status(status).await?)
    }

    /// An instance as a whole.
    pub async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ClientError> {
        Ok(self.admin()?.get_instance_info(instance).await?)
    }

    /// One execution of an instance.
    pub async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ClientError> {
        Ok(self.admin()?.get_execution_info(instance, execution_id).await?)
    }

    /// Execution numbers of an instance, ascending.
    pub async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ClientError> {
        Ok(self.admin()?.list_executions(instance).await?)
    }

    /// Events of one execution.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = Arc::new(MemoryProvider::new());
    /// # let orchestrations = OrchestrationRegistry::builder()
    /// #     .register("Hello", |ctx: OrchestrationContext, _input: String| async move {
    /// #         ctx.schedule_timer(Duration::from_millis(1)).await;
    /// #         Ok("hello".to_owned())
    /// #     })
    /// #     .build();
    /// # let activities = ActivityRegistry::builder().build();
    /// # let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    /// # let client = Client::new(store);
    /// client.start_orchestration("hello-1", "Hello", "").await?;
    /// client.wait_for_orchestration("hello-1", Duration::from_secs(5)).await?;
    /// let kinds: Vec<EventKind> =
    ///     client.read_execution_history("hello-1", 1).await?.into_iter().map(|e| e.kind).collect();
    /// assert!(matches!(kinds.as_slice(), [
    ///     EventKind::OrchestrationStarted { .. },
    ///     EventKind::TimerCreated { .. },
    ///     EventKind::TimerFired { .. },
    ///     EventKind::OrchestrationCompleted { .. },
    /// ]));
    /// # runtime.shutdown(None).await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read_execution_history(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ClientError> {
        Ok(self.admin()?.read_history_with_execution_id(instance, execution_id).await?)
    }

    /// Totals over the store.
    pub async fn get_system_metrics(&self) -> Result<SystemMetrics, ClientError> {
        Ok(self.admin()?.get_system_metrics().await?)
    }

    /// How much waits in each queue.
    pub async fn get_queue_depths(&self) -> Result<QueueDepths, ClientError> {
        Ok(self.admin()?.get_queue_depths().await?)
    }

    /// An instance with all its descendants.
    pub async fn get_instance_tree(&self, instance_id: &str) -> Result<InstanceTree, ClientError> {
        Ok(self.admin()?.get_instance_tree(instance_id).await?)
    }

    /// Deletes a root instance with all its descendants; with `force` even while they run.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = Arc::new(MemoryProvider::new());
    /// # let orchestrations = OrchestrationRegistry::builder()
    /// #     .register("Hello", |_ctx, _input: String| async move { Ok("hello".to_owned()) })
    /// #     .build();
    /// # let activities = ActivityRegistry::builder().build();
    /// # let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    /// # let client = Client::new(store);
    /// client.start_orchestration("hello-1", "Hello", "").await?;
    /// client.wait_for_orchestration("hello-1", Duration::from_secs(5)).await?;
    /// assert_eq!(client.delete_instance("hello-1", false).await?.instances_deleted, 1);
    ///
    /// let again = client.delete_instance("hello-1", false).await;
    /// assert!(matches!(again, Err(ClientError::InstanceNotFound { .. })));
    /// # runtime.shutdown(None).await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ClientError> {
        self.admin()?
            .try_delete_instance(instance_id, force)
            .await?
            .map_err(|refusal| ClientError::refused(refusal, instance_id))
    }

    /// Deletes ended roots with their descendants, as many as the filter admits.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ClientError> {
    /// # let client = Client::new(Arc::new(MemoryProvider::new()));
    /// let month_ago_ms = duroxide::clock::wall_clock_ms() - 30 * 24 * 3_600_000;
    /// let filter = InstanceFilter { completed_before: Some(month_ago_ms), ..Default::default() };
    /// println!("{} instances are gone", client.delete_instance_bulk(filter).await?.instances_deleted);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ClientError> {
        Ok(self.admin()?.delete_instance_bulk(filter).await?)
    }

    /// Removes old executions of an instance; never the current one.
    pub async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ClientError> {
        Ok(self.admin()?.prune_executions(instance_id, options).await?)
    }

    /// Removes old executions of all instances the filter admits.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ClientError> {
    /// # let client = Client::new(Arc::new(MemoryProvider::new()));
    /// let keep_ten = PruneOptions { keep_last: Some(10), ..Default::default() };
    /// let pruned = client.prune_executions_bulk(InstanceFilter::default(), keep_ten).await?;
    /// println!("{} executions are gone", pruned.executions_deleted);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ClientError> {
        Ok(self.admin()?.prune_executions_bulk(filter, options).await?)
    }

    fn admin(&self) -> Result<&dyn ProviderAdmin, ClientError> {
        self.store.as_management_capability().ok_or(ClientError::ManagementNotAvailable)
    }
}
