//! Signatures that take no generic argument, written down as function pointers. Nothing here runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::instrumented::InstrumentedProvider;
use duroxide::providers::*;
use duroxide::runtime::observability::*;
use duroxide::runtime::registry::*;
use duroxide::runtime::replay_engine::{ReplayEngine, TurnResult};
use duroxide::runtime::*;
use duroxide::*;
use semver::Version;
use tokio_util::sync::CancellationToken;

/// Asserts the type of a function.
macro_rules! signatures {
    ($($type:ty = $function:expr;)+) => { $(const _: $type = $function;)+ };
}

// Free functions and small values.
signatures! {
    fn(&str, &str) -> String = build_child_instance_id;
    fn(&str) -> bool = is_auto_generated_sub_orch_id;
    fn() -> Version = current_build_version;
    fn(&WorkItem) -> &'static str = kind_of;
    fn(&Either2<u8, ()>) -> bool = Either2::is_first;
    fn(&Either2<u8, ()>) -> bool = Either2::is_second;
    fn(&Either2<u8, ()>) -> usize = Either2::index;
    fn(Either2<u8, u8>) -> (usize, u8) = Either2::into_tuple;
    fn(&Either3<u8, (), u16>) -> usize = Either3::index;
    fn(Either3<u8, u8, u8>) -> (usize, u8) = Either3::into_tuple;
    fn(&ErrorDetails) -> &'static str = ErrorDetails::category;
    fn(&ErrorDetails) -> bool = ErrorDetails::is_retryable;
    fn(&ErrorDetails) -> String = ErrorDetails::display_message;
    fn(&Event) -> u64 = Event::event_id;
    fn(&Event) -> Option<u64> = Event::source_event_id;
    fn(&Event) -> bool = Event::is_terminal;
    fn(&BackoffStrategy, u32) -> Duration = BackoffStrategy::delay_for_attempt;
    fn(u32) -> RetryPolicy = RetryPolicy::new;
    fn(RetryPolicy, Duration) -> RetryPolicy = RetryPolicy::with_timeout;
    fn(RetryPolicy, Duration) -> RetryPolicy = RetryPolicy::with_total_timeout;
    fn(RetryPolicy, BackoffStrategy) -> RetryPolicy = RetryPolicy::with_backoff;
    fn(&RetryPolicy, u32) -> Duration = RetryPolicy::delay_for_attempt;
    fn(&ClientError) -> bool = ClientError::is_retryable;
    fn(&UnregisteredBackoffConfig, u32) -> Duration = UnregisteredBackoffConfig::delay;
}

// Contexts.
signatures! {
    fn(Vec<Event>, u64, String, String, String, Option<String>) -> OrchestrationContext =
        OrchestrationContext::new;
    fn(&OrchestrationContext) -> bool = OrchestrationContext::is_replaying;
    fn(&OrchestrationContext) -> String = OrchestrationContext::instance_id;
    fn(&OrchestrationContext) -> u64 = OrchestrationContext::execution_id;
    fn(&OrchestrationContext) -> String = OrchestrationContext::orchestration_name;
    fn(&OrchestrationContext) -> String = OrchestrationContext::orchestration_version;
    fn(&OrchestrationContext) -> bool = OrchestrationContext::is_logging_enabled;
    fn(&OrchestrationContext) = OrchestrationContext::reset_custom_status;
    fn(&OrchestrationContext) -> Option<String> = OrchestrationContext::get_custom_status;
    fn(&OrchestrationContext, &str) -> Option<String> = OrchestrationContext::get_kv_value;
    fn(&OrchestrationContext, &str) -> Result<Option<u8>, String> =
        OrchestrationContext::get_kv_value_typed::<u8>;
    fn(&OrchestrationContext) -> HashMap<String, String> = OrchestrationContext::get_kv_all_values;
    fn(&OrchestrationContext) -> Vec<String> = OrchestrationContext::get_kv_all_keys;
    fn(&OrchestrationContext) -> usize = OrchestrationContext::get_kv_length;
    fn(&OrchestrationContext) -> Option<SystemStats> = OrchestrationContext::get_system_stats;
    fn(&OrchestrationContext) = OrchestrationContext::clear_all_kv_values;
    fn(&OrchestrationContext, u64) -> usize = OrchestrationContext::prune_kv_values_updated_before;
    fn(&OrchestrationContext, Duration) -> DurableFuture<()> = OrchestrationContext::schedule_timer;
    fn(&ActivityContext) -> &str = ActivityContext::instance_id;
    fn(&ActivityContext) -> u64 = ActivityContext::execution_id;
    fn(&ActivityContext) -> &str = ActivityContext::orchestration_name;
    fn(&ActivityContext) -> &str = ActivityContext::orchestration_version;
    fn(&ActivityContext) -> &str = ActivityContext::activity_name;
    fn(&ActivityContext) -> &str = ActivityContext::worker_id;
    fn(&ActivityContext) -> Option<&str> = ActivityContext::session_id;
    fn(&ActivityContext) -> Option<&str> = ActivityContext::tag;
    fn(&ActivityContext) -> bool = ActivityContext::is_cancelled;
    fn(&ActivityContext) -> CancellationToken = ActivityContext::cancellation_token;
    fn(&ActivityContext) -> Client = ActivityContext::get_client;
}

// R4.100: driving a context by hand.
signatures! {
    fn(&OrchestrationContext, bool) = OrchestrationContext::set_is_replaying;
    fn(&OrchestrationContext, u64, &str) = OrchestrationContext::bind_external_subscription;
    fn(&OrchestrationContext, String, String) = OrchestrationContext::deliver_external_event;
    fn(&OrchestrationContext, u64, &str) = OrchestrationContext::bind_queue_subscription;
    fn(&OrchestrationContext, String, String) = OrchestrationContext::deliver_queue_message;
    fn(&OrchestrationContext) -> Vec<(u64, Action)> = OrchestrationContext::drain_emitted_actions;
    fn(&OrchestrationContext) -> Vec<(u64, Action)> = OrchestrationContext::get_emitted_actions;
    fn(&OrchestrationContext, u64, u64) = OrchestrationContext::bind_token;
    fn(&OrchestrationContext, u64, CompletionResult) = OrchestrationContext::deliver_result;
}

// R12.2, R12.3, R12.10: the engine.
signatures! {
    fn(&[Event]) -> HistoryManager = HistoryManager::from_history;
    fn(&HistoryManager) -> bool = HistoryManager::is_terminal;
    fn(&HistoryManager) -> bool = HistoryManager::is_empty;
    fn(&HistoryManager) -> usize = HistoryManager::original_len;
    fn(&HistoryManager) -> &'static str = HistoryManager::status;
    fn(&HistoryManager) -> u64 = HistoryManager::next_event_id;
    fn(&mut HistoryManager, Event) = HistoryManager::append;
    fn(&mut HistoryManager, &str, u64, ErrorDetails) = HistoryManager::append_failed;
    fn(&mut HistoryManager, Vec<Event>) = HistoryManager::extend;
    fn(&HistoryManager) -> &[Event] = HistoryManager::delta;
    fn(HistoryManager) -> Vec<Event> = HistoryManager::into_delta;
    fn(&HistoryManager) -> usize = HistoryManager::full_history_len;
    fn(&HistoryManager) -> bool = HistoryManager::is_full_history_empty;
    fn(&HistoryManager) -> Vec<Event> = HistoryManager::full_history;
    fn(&HistoryManager) -> Option<String> = HistoryManager::version;
    fn(&HistoryManager) -> Option<&str> = HistoryManager::input;
    fn(&HistoryManager) -> (String, Option<(String, Option<u64>, u64)>) =
        HistoryManager::extract_context;
    fn(&HistoryManager, &str, u64) -> Vec<ScheduledActivityIdentifier> =
        HistoryManager::compute_inflight_activities;
    fn(&[WorkItem], &HistoryManager, &str) -> WorkItemReader = WorkItemReader::from_messages;
    fn(&WorkItemReader) -> bool = WorkItemReader::has_start_item;
    fn(&WorkItemReader) -> bool = WorkItemReader::has_orchestration_name;
    fn(String, u64, Vec<Event>) -> ReplayEngine = ReplayEngine::new;
    fn(ReplayEngine, usize) -> ReplayEngine = ReplayEngine::with_persisted_history_len;
    fn(ReplayEngine, HashMap<String, KvEntry>) -> ReplayEngine = ReplayEngine::with_kv_snapshot;
    fn(&mut ReplayEngine, Vec<WorkItem>) = ReplayEngine::prep_completions;
    fn(&mut ReplayEngine, Arc<dyn OrchestrationHandler>, String, String, String, &str)
        -> TurnResult = ReplayEngine::execute_orchestration;
    fn(&ReplayEngine) -> &[Event] = ReplayEngine::history_delta;
    fn(&ReplayEngine) -> &[Action] = ReplayEngine::pending_actions;
    fn(&ReplayEngine) -> &[u64] = ReplayEngine::cancelled_activity_ids;
    fn(&ReplayEngine) -> &[String] = ReplayEngine::cancelled_sub_orchestration_ids;
    fn(&ReplayEngine) -> bool = ReplayEngine::made_progress;
    fn(&ReplayEngine) -> Vec<Event> = ReplayEngine::final_history;
}

// R7.100, R7.109: registries.
signatures! {
    fn() -> OrchestrationRegistryBuilder = OrchestrationRegistry::builder;
    fn(&OrchestrationRegistry) -> OrchestrationRegistryBuilder = OrchestrationRegistry::builder_from;
    fn(&OrchestrationRegistry, &str) -> Option<(Version, Arc<dyn OrchestrationHandler>)> =
        OrchestrationRegistry::resolve_handler;
    fn(&OrchestrationRegistry, &str) -> Option<Version> = OrchestrationRegistry::resolve_version;
    fn(&OrchestrationRegistry, &str, &Version) -> Option<Arc<dyn OrchestrationHandler>> =
        OrchestrationRegistry::resolve_handler_exact;
    fn(&OrchestrationRegistry, &str, VersionPolicy) = OrchestrationRegistry::set_version_policy;
    fn(&OrchestrationRegistry) -> Vec<String> = OrchestrationRegistry::list_names;
    fn(&OrchestrationRegistry, &str) -> Vec<Version> = OrchestrationRegistry::list_versions;
    fn(&OrchestrationRegistry, &str) -> bool = OrchestrationRegistry::has;
    fn(&OrchestrationRegistry) -> usize = OrchestrationRegistry::count;
    fn(OrchestrationRegistryBuilder) -> OrchestrationRegistry = OrchestrationRegistryBuilder::build;
    fn(OrchestrationRegistryBuilder) -> Result<OrchestrationRegistry, String> =
        OrchestrationRegistryBuilder::build_result;
    fn(OrchestrationRegistryBuilder, OrchestrationRegistry) -> OrchestrationRegistryBuilder =
        OrchestrationRegistryBuilder::merge;
    fn(OrchestrationRegistryBuilder, OrchestrationRegistry, &str) -> OrchestrationRegistryBuilder =
        OrchestrationRegistryBuilder::merge_registry;
    fn() -> ActivityRegistryBuilder = ActivityRegistry::builder;
    fn(&ActivityRegistry) -> ActivityRegistryBuilder = ActivityRegistry::builder_from;
    fn(&ActivityRegistry) -> ActivityRegistryBuilder = ActivityRegistryBuilder::from_registry;
    fn(&ActivityRegistry, &str) -> Option<(Version, Arc<dyn ActivityHandler>)> =
        ActivityRegistry::resolve_handler;
    fn(ActivityRegistryBuilder, ActivityRegistry) -> ActivityRegistryBuilder =
        ActivityRegistryBuilder::merge;
}

// Stores.
signatures! {
    fn() -> TagFilter = TagFilter::default_only;
    fn() -> TagFilter = TagFilter::none;
    fn() -> TagFilter = TagFilter::any;
    fn(&TagFilter, Option<&str>) -> bool = TagFilter::matches;
    fn(Version, Version) -> SemverRange = SemverRange::new;
    fn(&SemverRange, &Version) -> bool = SemverRange::contains;
    fn() -> SemverRange = SemverRange::default_for_current_build;
    fn(&DispatcherCapabilityFilter, &Version) -> bool = DispatcherCapabilityFilter::is_compatible;
    fn() -> DispatcherCapabilityFilter = DispatcherCapabilityFilter::default_for_current_build;
    fn(&ProviderError) -> bool = ProviderError::is_retryable;
    fn(&ProviderError) -> ErrorDetails = ProviderError::to_infrastructure_error;
    fn(&InstanceTree) -> bool = InstanceTree::is_root_only;
    fn(&InstanceTree) -> usize = InstanceTree::size;
    fn(Arc<dyn Provider>, Option<Arc<MetricsProvider>>) -> InstrumentedProvider =
        InstrumentedProvider::new;
    fn(Arc<dyn Provider>) -> Client = Client::new;
    fn(&Client) -> bool = Client::has_management_capability;
}

// Observability.
signatures! {
    fn(&ObservabilityConfig) -> Result<(), String> = init_logging;
    fn(&ObservabilityConfig) -> Result<ObservabilityHandle, String> = ObservabilityHandle::init;
    fn(&ObservabilityHandle) -> &Arc<MetricsProvider> = ObservabilityHandle::metrics_provider;
    fn(&ObservabilityHandle) -> MetricsSnapshot = ObservabilityHandle::metrics_snapshot;
    fn(&Runtime) -> Option<MetricsSnapshot> = Runtime::metrics_snapshot;
    fn(&Runtime) -> Option<&ObservabilityHandle> = Runtime::observability_handle;
    fn(&ObservabilityConfig) -> Result<MetricsProvider, String> = MetricsProvider::new;
    fn(&MetricsProvider, &str, &str, &str) = MetricsProvider::record_orchestration_start;
    fn(&MetricsProvider, &str, &str, &str, f64, u64, u64) =
        MetricsProvider::record_orchestration_completion;
    fn(&MetricsProvider, &str, &str, &str, &str) = MetricsProvider::record_orchestration_failure;
    fn(&MetricsProvider) = MetricsProvider::record_orchestration_application_error;
    fn(&MetricsProvider) = MetricsProvider::record_orchestration_infrastructure_error;
    fn(&MetricsProvider) = MetricsProvider::record_orchestration_configuration_error;
    fn(&MetricsProvider, &str, u64) = MetricsProvider::record_continue_as_new;
    fn(&MetricsProvider, &str, &str, f64, u32, Option<&str>) =
        MetricsProvider::record_activity_execution;
    fn(&MetricsProvider) = MetricsProvider::record_activity_success;
    fn(&MetricsProvider) = MetricsProvider::record_activity_app_error;
    fn(&MetricsProvider) = MetricsProvider::record_activity_infra_error;
    fn(&MetricsProvider) = MetricsProvider::record_activity_config_error;
    fn(&MetricsProvider) = MetricsProvider::record_orchestration_poison;
    fn(&MetricsProvider) = MetricsProvider::record_activity_poison;
    fn(&MetricsProvider, &str, &str, &str) = MetricsProvider::record_suborchestration_call;
    fn(&MetricsProvider, &str, &str, f64, &str) = MetricsProvider::record_suborchestration_duration;
    fn(&MetricsProvider, &str, f64, &str) = MetricsProvider::record_provider_operation;
    fn(&MetricsProvider, &str, &str) = MetricsProvider::record_provider_error;
    fn(&MetricsProvider, u64) = MetricsProvider::record_orch_dispatcher_items_fetched;
    fn(&MetricsProvider, u64) = MetricsProvider::record_orch_dispatcher_processing_duration;
    fn(&MetricsProvider, u64) = MetricsProvider::record_worker_dispatcher_items_fetched;
    fn(&MetricsProvider, u64) = MetricsProvider::record_worker_dispatcher_execution_duration;
    fn(&MetricsProvider, u64, u64) = MetricsProvider::update_queue_depths;
    fn(&MetricsProvider) -> (u64, u64) = MetricsProvider::get_queue_depths;
    fn(&MetricsProvider) = MetricsProvider::increment_active_orchestrations;
    fn(&MetricsProvider) = MetricsProvider::decrement_active_orchestrations;
    fn(&MetricsProvider, i64) = MetricsProvider::set_active_orchestrations;
    fn(&MetricsProvider) -> i64 = MetricsProvider::get_active_orchestrations;
    fn(&MetricsProvider) -> MetricsSnapshot = MetricsProvider::snapshot;
}
