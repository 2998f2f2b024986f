//! Starting an instance with an answer: whether it began, or its id was taken (R6.86 – R6.89).

use std::fmt;
use std::future::IntoFuture;
use std::pin::Pin;

use duroxide_core::provider::StartOutcome;
use serde::Serialize;

use super::start::root_start;
use super::{Client, ClientError, payload};

/// What to do if the id is that of an instance that has completed or failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum IfEnded {
    /// Leave it; the answer is [`StartOutcome::Ended`].
    #[default]
    Keep,
    /// Leave it; the answer is an error.
    Refuse,
    /// Delete it with its descendants, and start anew.
    Replace,
}

/// A start that has not been sent; await it. Made by [`Client::start`].
#[must_use = "nothing is started before this is awaited"]
pub struct StartRequest {
    client: Client,
    instance: String,
    orchestration: String,
    version: Option<String>,
    input: Result<String, ClientError>,
    if_ended: IfEnded,
}

impl Client {
    /// Starts an instance, and says whether it did: the id may be taken. Of any number of clients that
    /// start one id at once, exactly one is told [`StartOutcome::Started`], on a store that
    /// [decides starts](crate::providers::Provider::decides_starts), as those of memory, SQLite and
    /// PostgreSQL do.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ClientError> {
    /// # let store = Arc::new(MemoryProvider::new());
    /// # let orchestrations = OrchestrationRegistry::builder()
    /// #     .register("Order", |_ctx: OrchestrationContext, item: String| async move { Ok(item) })
    /// #     .build();
    /// # let client = Client::new(store.clone());
    /// let start = |item: &str| client.start("order-7", "Order", item);
    /// assert_eq!(start("book").await?, StartOutcome::Started);
    /// assert_eq!(start("vase").await?, StartOutcome::Running); // Nothing was done.
    /// # let activities = ActivityRegistry::builder().build();
    /// # let runtime = Runtime::start_with_store(store, activities, orchestrations).await;
    /// # client.wait_for_orchestration("order-7", Duration::from_secs(5)).await?;
    ///
    /// // When it has ended, nothing is done either, unless that is asked for:
    /// assert_eq!(start("vase").await?, StartOutcome::Ended);
    /// assert!(start("vase").if_ended(IfEnded::Refuse).await.is_err());
    /// assert_eq!(start("vase").if_ended(IfEnded::Replace).await?, StartOutcome::Started);
    /// # runtime.shutdown(None).await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn start(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: impl Into<String>,
    ) -> StartRequest {
        self.start_request(instance.into(), orchestration.into(), Ok(input.into()))
    }

    /// [`start`](Self::start) with a typed input.
    pub fn start_typed<In: Serialize>(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: In,
    ) -> StartRequest {
        self.start_request(instance.into(), orchestration.into(), payload(&input))
    }

    fn start_request(
        &self,
        instance: String,
        orchestration: String,
        input: Result<String, ClientError>,
    ) -> StartRequest {
        let (client, version, if_ended) = (self.clone(), None, IfEnded::Keep);
        StartRequest { client, instance, orchestration, version, input, if_ended }
    }
}

impl StartRequest {
    /// Exactly this version, instead of the one the registry's policy picks.
    pub fn with_version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// What to do if an instance of this id has ended. [`IfEnded::Keep`] unless said.
    pub fn if_ended(mut self, if_ended: IfEnded) -> Self {
        self.if_ended = if_ended;
        self
    }

    async fn send(self) -> Result<StartOutcome, ClientError> {
        let Self { client, instance, orchestration, version, input, if_ended } = self;
        let start = root_start(instance.clone(), orchestration, version, input?)?;
        let outcome = client.store.start_instance(start, if_ended == IfEnded::Replace).await?;
        if outcome == StartOutcome::Ended && if_ended == IfEnded::Refuse {
            let text = format!("instance '{instance}' has ended already; it was not started again");
            return Err(ClientError::invalid(text));
        }
        Ok(outcome)
    }
}

impl IntoFuture for StartRequest {
    type Output = Result<StartOutcome, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

impl fmt::Debug for StartRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartRequest")
            .field("instance", &self.instance)
            .field("orchestration", &self.orchestration)
            .field("version", &self.version)
            .field("if_ended", &self.if_ended)
            .finish_non_exhaustive()
    }
}
