//! Other orchestrations: children, whose results are awaited, and detached ones, which are not.

use std::panic::Location;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::schedule::{encoded, text_result};
use super::typed::CHILD_RESULT;
use super::{DurableFuture, Operation, OrchestrationContext, ScheduleKind};
use crate::model::{self, Action, SUB_ORCH_AUTO_PREFIX};

impl OrchestrationContext {
    /// Runs a child orchestration under an id of its own making.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn order(ctx: OrchestrationContext, item: String) -> Result<String, String> {
    ///     match ctx.schedule_sub_orchestration("Ship", item.as_str()).await {
    ///         Ok(parcel) => Ok(parcel),
    ///         Err(_) => ctx.schedule_activity("Refund", item).await,
    ///     }
    /// }
    /// ```
    #[track_caller]
    pub fn schedule_sub_orchestration(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.child(Child::new(name, input.into()), Location::caller())
    }

    /// Runs a child orchestration under a chosen id, used as it is.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn order(ctx: OrchestrationContext, item: String) -> Result<String, String> {
    ///     let id = format!("shipment-{}", ctx.instance_id()); // For others to find it by.
    ///     ctx.schedule_sub_orchestration_with_id("Ship", id, item).await
    /// }
    /// ```
    #[track_caller]
    pub fn schedule_sub_orchestration_with_id(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.child(Child::new(name, input.into()).with_id(instance), Location::caller())
    }

    /// Runs a given version of a child orchestration; `None` leaves it to the registry.
    #[track_caller]
    pub fn schedule_sub_orchestration_versioned(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        let child = Child { version, ..Child::new(name, input.into()) };
        self.child(child, Location::caller())
    }

    /// Runs a given version of a child orchestration under a chosen id.
    #[track_caller]
    pub fn schedule_sub_orchestration_versioned_with_id(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        let child = Child { version, ..Child::new(name, input.into()) };
        self.child(child.with_id(instance), Location::caller())
    }

    /// [`schedule_sub_orchestration`](Self::schedule_sub_orchestration), typed.
    #[track_caller]
    pub fn schedule_sub_orchestration_typed<
        In: Serialize,
        Out: DeserializeOwned + Send + 'static,
    >(
        &self,
        name: impl Into<String>,
        input: &In,
    ) -> DurableFuture<Result<Out, String>> {
        let name = name.into();
        self.child(Child::new(name.clone(), encoded(input)), Location::caller())
            .typed(CHILD_RESULT, name)
    }

    /// [`schedule_sub_orchestration_with_id`](Self::schedule_sub_orchestration_with_id), typed.
    #[track_caller]
    pub fn schedule_sub_orchestration_with_id_typed<
        In: Serialize,
        Out: DeserializeOwned + Send + 'static,
    >(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: &In,
    ) -> DurableFuture<Result<Out, String>> {
        let name = name.into();
        let child = Child::new(name.clone(), encoded(input)).with_id(instance);
        self.child(child, Location::caller()).typed(CHILD_RESULT, name)
    }

    /// Starts a root orchestration and forgets it.
    ///
    /// # Panics
    /// If `instance` uses the marker reserved for children.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn order(ctx: OrchestrationContext, item: String) -> Result<String, String> {
    ///     let receipt = ctx.schedule_activity("Charge", item).await?;
    ///     ctx.schedule_orchestration("Survey", format!("survey-{}", ctx.instance_id()), "");
    ///     Ok(receipt)
    /// }
    /// ```
    #[track_caller]
    pub fn schedule_orchestration(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) {
        self.detached(Child::new(name, input.into()), instance.into(), Location::caller());
    }

    /// [`schedule_orchestration`](Self::schedule_orchestration), typed.
    ///
    /// # Panics
    /// If `instance` uses the marker reserved for children.
    #[track_caller]
    pub fn schedule_orchestration_typed<In: Serialize>(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: &In,
    ) {
        self.detached(Child::new(name, encoded(input)), instance.into(), Location::caller());
    }

    /// [`schedule_orchestration`](Self::schedule_orchestration) of a given version.
    ///
    /// # Panics
    /// If `instance` uses the marker reserved for children.
    #[track_caller]
    pub fn schedule_orchestration_versioned(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) {
        let child = Child { version, ..Child::new(name, input.into()) };
        self.detached(child, instance.into(), Location::caller());
    }

    /// [`schedule_orchestration_versioned`](Self::schedule_orchestration_versioned), typed.
    ///
    /// # Panics
    /// If `instance` uses the marker reserved for children.
    #[track_caller]
    pub fn schedule_orchestration_versioned_typed<In: Serialize>(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        instance: impl Into<String>,
        input: &In,
    ) {
        let child = Child { version, ..Child::new(name, encoded(input)) };
        self.detached(child, instance.into(), Location::caller());
    }

    fn child(
        &self,
        child: Child,
        location: &'static Location<'static>,
    ) -> DurableFuture<Result<String, String>> {
        let Child { name, version, input, chosen_id } = child;
        let mut state = self.state();
        let token = state.tokens.upcoming();
        let instance = match chosen_id {
            Some(id) if model::is_auto_generated_sub_orch_id(&id) => {
                state.tokens.issue(Operation::Note); // R4.53: a token, but no action.
                return DurableFuture::ready(Err(format!(
                    "sub-orchestration instance id '{id}' uses the reserved marker '{SUB_ORCH_AUTO_PREFIX}'"
                )));
            }
            Some(id) => id,
            None => model::pending_child_suffix(token),
        };
        let action = Action::StartSubOrchestration {
            scheduling_event_id: 0,
            name,
            version,
            instance,
            input,
        };
        state.emit(Operation::Child, action, location);
        drop(state);
        DurableFuture::waiting(self, token, ScheduleKind::SubOrchestration { token }, text_result)
    }

    fn detached(&self, child: Child, instance: String, location: &'static Location<'static>) {
        assert!(
            !model::is_reserved_root_id(&instance),
            "instance id '{instance}' uses the reserved sub-orchestration marker '{SUB_ORCH_AUTO_PREFIX}'"
        );
        let Child { name, version, input, .. } = child;
        let action = Action::StartOrchestrationDetached {
            scheduling_event_id: 0,
            name,
            version,
            instance,
            input,
        };
        self.emit(Operation::Note, action, location);
    }
}

/// An orchestration to start.
struct Child {
    name: String,
    version: Option<String>,
    input: String,
    chosen_id: Option<String>,
}

impl Child {
    fn new(name: impl Into<String>, input: String) -> Self {
        Self { name: name.into(), version: None, input, chosen_id: None }
    }

    fn with_id(self, instance: impl Into<String>) -> Self {
        Self { chosen_id: Some(instance.into()), ..self }
    }
}
