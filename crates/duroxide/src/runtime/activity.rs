//! What activity code holds: who asked, whether anybody still waits, and a way to log.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::observability::targets;
use crate::client::Client;
use crate::providers::Provider;

/// Pauses between looks for the key while the store is away.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// An activity's view of its surroundings. Cheap to clone.
///
/// An activity may do anything. It runs at least once: a worker that dies half way is replaced by
/// another, so effects should bear repetition, for which [`idempotency_key`](Self::idempotency_key) is
/// made.
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// # use duroxide::{*, providers::memory::MemoryProvider};
/// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
/// # async fn upload(_file: String, _key: String) {}
/// async fn backup(ctx: ActivityContext, file: String) -> Result<String, String> {
///     ctx.trace_info(format!("backing up {file}"));
///     let key = ctx.idempotency_key().await?;
///     tokio::select! {
///         () = upload(file, key.clone()) => Ok(key),
///         // Nobody wants the result any more: a lost race, a cancelled instance.
///         () = ctx.cancelled() => Err("given up".into()),
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// #     let activities = ActivityRegistry::builder().register("Backup", backup).build();
/// #     let orchestrations = OrchestrationRegistry::builder()
/// #         .register("Nightly", |ctx: OrchestrationContext, file| async move {
/// #             ctx.schedule_activity("Backup", file).await
/// #         })
/// #         .build();
/// #     let store = Arc::new(MemoryProvider::new());
/// #     let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
/// #     let client = Client::new(store);
/// #     client.start_orchestration("night-1", "Nightly", "a.db").await?;
/// #     let key: String =
/// #         client.wait_for_orchestration_typed("night-1", Duration::from_secs(5)).await??;
/// #     assert!(key.starts_with("night-1/1/2/"), "{key}");
/// #     runtime.shutdown(None).await;
/// #     Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ActivityContext {
    call: Arc<ActivityCall>,
    key: Arc<OnceCell<String>>,
}

/// One execution of one activity.
pub(crate) struct ActivityCall {
    /// Owner instance.
    pub(crate) instance_id: String,
    /// Owner execution.
    pub(crate) execution_id: u64,
    /// Orchestration that scheduled it.
    pub(crate) orchestration_name: String,
    /// Version of that orchestration.
    pub(crate) orchestration_version: String,
    /// Registered name.
    pub(crate) activity_name: String,
    /// Schedule event.
    pub(crate) activity_id: u64,
    /// How often it has been handed to a worker, this time included.
    pub(crate) attempt: u32,
    /// Slot that runs it.
    pub(crate) worker_id: String,
    /// Session it belongs to.
    pub(crate) session_id: Option<String>,
    /// Tag it was scheduled with.
    pub(crate) tag: Option<String>,
    /// Store its client talks to.
    pub(crate) store: Arc<dyn Provider>,
    /// Signalled when nobody wants the result any more.
    pub(crate) cancellation: CancellationToken,
}

/// One log record with the fields every activity trace has (R9.41).
macro_rules! record {
    ($level:ident, $call:expr, $message:expr) => {
        tracing::$level!(
            target: targets::ACTIVITY,
            instance_id = %$call.instance_id,
            execution_id = %$call.execution_id,
            orchestration_name = %$call.orchestration_name,
            orchestration_version = %$call.orchestration_version,
            activity_name = %$call.activity_name,
            activity_id = %$call.activity_id,
            worker_id = %$call.worker_id,
            "{}",
            $message.into()
        )
    };
}

impl ActivityContext {
    pub(crate) fn new(call: ActivityCall) -> Self {
        Self { call: Arc::new(call), key: Arc::default() }
    }

    /// Instance that scheduled this activity.
    pub fn instance_id(&self) -> &str {
        &self.call.instance_id
    }

    /// Execution that scheduled this activity.
    pub fn execution_id(&self) -> u64 {
        self.call.execution_id
    }

    /// Name of the orchestration that scheduled this activity; `unknown` if it cannot be read.
    pub fn orchestration_name(&self) -> &str {
        &self.call.orchestration_name
    }

    /// Version of the orchestration that scheduled this activity; `unknown` if it cannot be read.
    pub fn orchestration_version(&self) -> &str {
        &self.call.orchestration_version
    }

    /// Registered name of this activity.
    pub fn activity_name(&self) -> &str {
        &self.call.activity_name
    }

    /// Which attempt to run this scheduled activity this is, from 1. More than 1 means that a worker had
    /// it before and did not come to its end: it died, was shut down, lost the store for longer than its
    /// lock, or had no such activity. It may have done something already. The attempts of a retry policy are another thing: each of them is an
    /// activity of its own, which begins with 1.
    pub fn attempt(&self) -> u32 {
        self.call.attempt
    }

    /// A key for services that do the same thing only once: the same for all attempts of one scheduled
    /// activity, on whatever worker, and of no other. `instance/execution/event/begun`: who asked, in
    /// which execution, the number of the event that scheduled it, and when that execution began, in
    /// milliseconds. The last part tells an instance from an earlier one of the same id that was
    /// deleted, unless both began in the same millisecond.
    ///
    /// It is read from the store when it is asked for. While the store is away this waits; an error means
    /// that nobody wants the result any more, or that the history cannot be read.
    ///
    /// Attempts of a retry policy have different keys, since they are activities of their own. If the
    /// service is to see them as one, make the key in the orchestration (`new_guid`) and pass it in.
    ///
    /// ```
    /// # use duroxide::ActivityContext;
    /// # async fn charge_card(_key: &str, _cents: &str) -> Result<String, String> { Ok(String::new()) }
    /// async fn charge(ctx: ActivityContext, cents: String) -> Result<String, String> {
    ///     let key = ctx.idempotency_key().await?;
    ///     charge_card(&key, &cents).await // However often this runs, the card is charged once.
    /// }
    /// ```
    pub async fn idempotency_key(&self) -> Result<String, String> {
        self.key.get_or_try_init(|| self.make_key()).await.cloned()
    }

    /// Slot that runs this activity.
    pub fn worker_id(&self) -> &str {
        &self.call.worker_id
    }

    /// Session this activity belongs to.
    pub fn session_id(&self) -> Option<&str> {
        self.call.session_id.as_deref()
    }

    /// Tag this activity was scheduled with.
    pub fn tag(&self) -> Option<&str> {
        self.call.tag.as_deref()
    }

    /// Logs at INFO.
    pub fn trace_info(&self, message: impl Into<String>) {
        record!(info, self.call, message);
    }

    /// Logs at WARN.
    pub fn trace_warn(&self, message: impl Into<String>) {
        record!(warn, self.call, message);
    }

    /// Logs at ERROR.
    pub fn trace_error(&self, message: impl Into<String>) {
        record!(error, self.call, message);
    }

    /// Logs at DEBUG.
    pub fn trace_debug(&self, message: impl Into<String>) {
        record!(debug, self.call, message);
    }

    /// Whether nobody wants the result any more.
    pub fn is_cancelled(&self) -> bool {
        self.call.cancellation.is_cancelled()
    }

    /// Waits until nobody wants the result any more.
    ///
    /// ```
    /// # use duroxide::ActivityContext;
    /// # async fn encode(_video: &str) -> Result<String, String> { Ok(String::new()) }
    /// async fn film(ctx: ActivityContext, video: String) -> Result<String, String> {
    ///     tokio::select! {
    ///         encoded = encode(&video) => encoded,
    ///         () = ctx.cancelled() => Err("given up".into()), // After tidying up.
    ///     }
    /// }
    /// ```
    pub async fn cancelled(&self) {
        self.call.cancellation.cancelled().await;
    }

    /// The signal itself, for spawned tasks.
    pub fn cancellation_token(&self) -> CancellationToken {
        self.call.cancellation.clone()
    }

    /// A client on the same store.
    ///
    /// ```
    /// # use duroxide::ActivityContext;
    /// async fn tell(ctx: ActivityContext, to: String) -> Result<String, String> {
    ///     let client = ctx.get_client();
    ///     client.enqueue_event(to, "mail", ctx.instance_id()).await.map_err(|e| e.to_string())?;
    ///     Ok("sent".into())
    /// }
    /// ```
    pub fn get_client(&self) -> Client {
        Client::new(Arc::clone(&self.call.store))
    }
}

impl ActivityContext {
    /// What this process remembers of the execution may be of an earlier life of the instance: a key
    /// must not differ from one attempt to the next, so the store is asked.
    async fn make_key(&self) -> Result<String, String> {
        let call = &self.call;
        let (instance, execution) = (&call.instance_id, call.execution_id);
        let mut pause = FIRST_PAUSE;
        let begun = loop {
            match call.store.read_history_from(instance, execution, 1, Some(1)).await {
                Ok(events) => break events.first().map(|event| event.timestamp_ms),
                Err(error) if error.is_retryable() => {
                    tracing::warn!(target: targets::WORKER, instance_id = %instance,
                        activity_name = %call.activity_name, %error, ?pause,
                        "idempotency key not read, trying again");
                }
                Err(error) => return Err(error.to_string()),
            }
            tokio::select! {
                () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                () = call.cancellation.cancelled() => {
                    return Err("cancelled before the idempotency key was read".to_owned());
                }
            }
        };
        let begun = begun.ok_or_else(|| format!("instance {instance} is gone"))?;
        Ok(format!("{instance}/{execution}/{}/{begun}", call.activity_id))
    }
}

impl fmt::Debug for ActivityContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActivityContext")
            .field("instance_id", &self.call.instance_id)
            .field("execution_id", &self.call.execution_id)
            .field("orchestration_name", &self.call.orchestration_name)
            .field("orchestration_version", &self.call.orchestration_version)
            .field("activity_name", &self.call.activity_name)
            .field("activity_id", &self.call.activity_id)
            .field("attempt", &self.call.attempt)
            .field("worker_id", &self.call.worker_id)
            .field("session_id", &self.call.session_id)
            .field("tag", &self.call.tag)
            .field("is_cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::Value;

    use super::*;
    use crate::providers::scripted::ScriptedProvider;
    use crate::runtime::observability::written_as_json;

    /// The context of some activity.
    pub(crate) fn some_context() -> ActivityContext {
        ActivityContext::new(ActivityCall {
            instance_id: "order-7".to_owned(),
            execution_id: 2,
            orchestration_name: "Order".to_owned(),
            orchestration_version: "1.2.0".to_owned(),
            activity_name: "Charge".to_owned(),
            activity_id: 5,
            attempt: 3,
            worker_id: "work-0-abc".to_owned(),
            session_id: Some("s1".to_owned()),
            tag: None,
            store: Arc::new(ScriptedProvider::default()),
            cancellation: CancellationToken::new(),
        })
    }

    #[test]
    fn r5_1_getters_and_debug() {
        let ctx = some_context();
        assert_eq!((ctx.instance_id(), ctx.execution_id()), ("order-7", 2));
        assert_eq!((ctx.orchestration_name(), ctx.orchestration_version()), ("Order", "1.2.0"));
        assert_eq!((ctx.activity_name(), ctx.worker_id()), ("Charge", "work-0-abc"));
        assert_eq!((ctx.session_id(), ctx.tag(), ctx.attempt()), (Some("s1"), None, 3));
        let debug = format!("{ctx:?}");
        assert!(debug.contains("Charge") && debug.contains("order-7"), "{debug}");
    }

    #[tokio::test]
    async fn r5_1_cancellation_reaches_every_clone() {
        let ctx = some_context();
        let clone = ctx.clone();
        assert!(!clone.is_cancelled());
        ctx.cancellation_token().cancel();
        clone.cancelled().await;
        assert!(clone.is_cancelled() && clone.cancellation_token().is_cancelled());
    }

    #[test]
    fn r9_41_r9_42_traces_carry_their_fields_as_text() {
        let lines = written_as_json("debug", || {
            let ctx = some_context();
            ctx.trace_info("one");
            ctx.trace_warn(String::from("two {braces}"));
            ctx.trace_error("three");
            ctx.trace_debug("four");
        });
        let levels: Vec<&str> = lines.iter().filter_map(|line| line["level"].as_str()).collect();
        assert_eq!(levels, ["INFO", "WARN", "ERROR", "DEBUG"]);
        assert_eq!(lines[1]["fields"]["message"], "two {braces}");
        for line in &lines {
            assert_eq!(line["target"], "duroxide::activity");
            for (field, text) in [
                ("instance_id", "order-7"),
                ("execution_id", "2"),
                ("orchestration_name", "Order"),
                ("orchestration_version", "1.2.0"),
                ("activity_name", "Charge"),
                ("activity_id", "5"),
                ("worker_id", "work-0-abc"),
            ] {
                assert_eq!(line["fields"][field], Value::from(text), "{field}");
            }
        }
    }
}
