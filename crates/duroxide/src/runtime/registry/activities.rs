//! Registering activities: one version of each name.

use std::any::type_name;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::builder::Mistake;
use super::{ActivityRegistry, DEFAULT_VERSION, RegistryBuilder};
use crate::runtime::handlers::WithOptions;
use crate::runtime::{ActivityContext, ActivityHandler, ActivityOptions, FnActivity};
use duroxide_core::model::{SYSCALL_PREFIX, decode, encode};

impl RegistryBuilder<dyn ActivityHandler> {
    /// A builder that already has the activities of `reg`.
    pub fn from_registry(reg: &ActivityRegistry) -> Self {
        ActivityRegistry::builder_from(reg)
    }

    /// Registers an activity.
    pub fn register<F, Fut>(self, name: impl Into<String>, f: F) -> Self
    where
        F: Fn(ActivityContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.add_activity(name.into(), Arc::new(FnActivity(f)))
    }

    /// Registers an activity with typed input and output.
    pub fn register_typed<In, Out, F, Fut>(self, name: impl Into<String>, f: F) -> Self
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send + 'static,
        F: Fn(ActivityContext, In) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, String>> + Send + 'static,
    {
        self.add_activity(name.into(), Arc::new(typed(f)))
    }

    /// Registers an activity that workers run with these options.
    pub fn register_with_options<F, Fut>(
        self,
        name: impl Into<String>,
        options: ActivityOptions,
        f: F,
    ) -> Self
    where
        F: Fn(ActivityContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        let handler = WithOptions { handler: FnActivity(f), options };
        self.add_activity(name.into(), Arc::new(handler))
    }

    /// Registers an activity with typed input and output that workers run with these options.
    pub fn register_typed_with_options<In, Out, F, Fut>(
        self,
        name: impl Into<String>,
        options: ActivityOptions,
        f: F,
    ) -> Self
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send + 'static,
        F: Fn(ActivityContext, In) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, String>> + Send + 'static,
    {
        let handler = WithOptions { handler: typed(f), options };
        self.add_activity(name.into(), Arc::new(handler))
    }

    /// Adds all activities of `other`.
    pub fn merge(self, other: ActivityRegistry) -> Self {
        self.merge_registry(other, "duplicate activity in merge")
    }

    /// Registers several activities.
    pub fn register_all<F, Fut>(self, items: Vec<(&str, F)>) -> Self
    where
        F: Fn(ActivityContext, String) -> Fut + Send + Sync + 'static + Clone,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.register_all_handlers(items, |builder, name, f| builder.register(name, f))
    }

    fn add_activity(mut self, name: String, handler: Arc<dyn ActivityHandler>) -> Self {
        if name.starts_with(SYSCALL_PREFIX) {
            let text = format!("activity name '{name}' uses reserved prefix '{SYSCALL_PREFIX}'");
            self.errors.push(Mistake::Skipped(text));
        } else {
            let complaint = "duplicate activity registration";
            self.add_or_complain(complaint, &name, DEFAULT_VERSION, handler);
        }
        self
    }
}

/// An activity that decodes its input and encodes its result.
fn typed<In, Out, F, Fut>(f: F) -> impl ActivityHandler + 'static
where
    In: DeserializeOwned + Send + 'static,
    Out: Serialize + Send + 'static,
    F: Fn(ActivityContext, In) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Out, String>> + Send + 'static,
{
    FnActivity(move |ctx, input: String| {
        let call = decode::<In>(&input).map_err(|error| undecoded::<In>(&ctx, &error));
        let call = call.map(|input| f(ctx, input));
        async move { encode(&call?.await?) }
    })
}

/// What is said of an input that is not of the registered type.
fn undecoded<In>(ctx: &ActivityContext, error: &str) -> String {
    let (name, instance, expected) = (ctx.activity_name(), ctx.instance_id(), type_name::<In>());
    format!(
        "input of activity '{name}' of instance '{instance}' cannot be decoded as {expected}: {error}"
    )
}
