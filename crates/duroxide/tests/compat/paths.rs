//! Every listed item at every path it is exported under, and the same item at each of them.
#![allow(unused_imports)]

use std::sync::Arc;

mod root {
    use duroxide::{
        Action, ActivityContext, AppErrorKind, BackoffStrategy, Client, ClientError,
        CompletionResult, ConfigErrorKind, DeleteInstanceResult, DispatcherCapabilityFilter,
        DurableFuture, Either2, Either3, ErrorDetails, Event, EventKind, ExecutionInfo,
        INITIAL_EVENT_ID, INITIAL_EXECUTION_ID, InstanceFilter, InstanceInfo, InstanceTree,
        LogLevel, OrchestrationContext, OrchestrationDescriptor, OrchestrationHandler,
        OrchestrationHandlerRef, OrchestrationRegistry, OrchestrationRegistryBuilder,
        OrchestrationStatus, PoisonMessageType, ProviderAdmin, ProviderRef, PruneOptions,
        PruneResult, QueueDepths, RetryPolicy, RuntimeOptions, SUB_ORCH_AUTO_PREFIX, ScheduleKind,
        ScheduledActivityIdentifier, SemverRange, SessionFetchConfig, SystemMetrics, SystemStats,
        TagFilter, build_child_instance_id, client, current_build_version,
        is_auto_generated_sub_orch_id, providers, runtime,
    };
}

mod client {
    use duroxide::client::{Client, ClientError};
}

mod runtime {
    use duroxide::runtime::{
        ActivityHandler, FnActivity, FnOrchestration, HistoryManager, LogFormat,
        ObservabilityConfig, OrchestrationDescriptor, OrchestrationHandler, OrchestrationRegistry,
        OrchestrationRegistryBuilder, OrchestrationStatus, Runtime, RuntimeOptions,
        UnregisteredBackoffConfig, VersionPolicy, WorkItemReader, execution, kind_of, limits,
        observability, registry, replay_engine,
    };
    mod limits_ {
        use duroxide::runtime::limits::{
            MAX_CARRY_FORWARD_EVENTS, MAX_CUSTOM_STATUS_BYTES, MAX_KV_KEYS, MAX_KV_VALUE_BYTES,
            MAX_TAG_NAME_BYTES, MAX_WORKER_TAGS,
        };
    }
    mod observability_ {
        use duroxide::runtime::observability::{
            LogFormat, MetricsProvider, MetricsSnapshot, ObservabilityConfig, ObservabilityHandle,
            init_logging,
        };
    }
    mod registry_ {
        use duroxide::runtime::registry::{
            ActivityRegistry, ActivityRegistryBuilder, OrchestrationRegistry,
            OrchestrationRegistryBuilder, Registry, RegistryBuilder, VersionPolicy,
        };
    }
    mod replay_engine_ {
        use duroxide::runtime::replay_engine::{ReplayEngine, TurnResult};
    }
    #[cfg(feature = "test-hooks")]
    mod test_hooks_ {
        use duroxide::runtime::test_hooks::{
            clear_orch_processing_delay, get_orch_processing_delay, set_orch_processing_delay,
        };
    }
}

mod providers {
    use duroxide::providers::{
        DeleteInstanceResult, DispatcherCapabilityFilter, ExecutionInfo, ExecutionMetadata,
        InstanceFilter, InstanceInfo, InstanceTree, KvEntry, MAX_WORKER_TAGS, ManagementProvider,
        OrchestrationItem, Provider, ProviderAdmin, ProviderError, PruneOptions, PruneResult,
        QueueDepths, ScheduledActivityIdentifier, SemverRange, SessionFetchConfig, SystemMetrics,
        TagFilter, WorkItem, current_build_version, error, instrumented, management,
    };
    mod error_ {
        use duroxide::providers::error::ProviderError;
    }
    mod instrumented_ {
        use duroxide::providers::instrumented::InstrumentedProvider;
    }
    mod management_ {
        use duroxide::providers::management::{
            DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree,
            ManagementProvider, PruneOptions, PruneResult, QueueDepths, SystemMetrics,
        };
    }
}

/// Fails to compile unless all paths lead to the same type.
macro_rules! same {
    ($first:ty $(, $other:ty)+) => { $(const _: fn($first) -> $other = |it| it;)+ };
}

same!(duroxide::Client, duroxide::client::Client);
same!(duroxide::ClientError, duroxide::client::ClientError);
same!(duroxide::RuntimeOptions, duroxide::runtime::RuntimeOptions);
same!(duroxide::OrchestrationStatus, duroxide::runtime::OrchestrationStatus);
same!(duroxide::OrchestrationDescriptor, duroxide::runtime::OrchestrationDescriptor);
same!(
    duroxide::OrchestrationRegistry,
    duroxide::runtime::OrchestrationRegistry,
    duroxide::runtime::registry::OrchestrationRegistry,
    duroxide::runtime::registry::Registry<dyn duroxide::OrchestrationHandler>
);
same!(
    duroxide::OrchestrationRegistryBuilder,
    duroxide::runtime::OrchestrationRegistryBuilder,
    duroxide::runtime::registry::OrchestrationRegistryBuilder,
    duroxide::runtime::registry::RegistryBuilder<dyn duroxide::runtime::OrchestrationHandler>
);
same!(
    duroxide::runtime::registry::ActivityRegistry,
    duroxide::runtime::registry::Registry<dyn duroxide::runtime::ActivityHandler>
);
same!(
    duroxide::runtime::registry::ActivityRegistryBuilder,
    duroxide::runtime::registry::RegistryBuilder<dyn duroxide::runtime::ActivityHandler>
);
same!(duroxide::runtime::VersionPolicy, duroxide::runtime::registry::VersionPolicy);
same!(duroxide::runtime::LogFormat, duroxide::runtime::observability::LogFormat);
same!(
    duroxide::runtime::ObservabilityConfig,
    duroxide::runtime::observability::ObservabilityConfig
);
same!(duroxide::TagFilter, duroxide::providers::TagFilter);
same!(duroxide::SemverRange, duroxide::providers::SemverRange);
same!(duroxide::SessionFetchConfig, duroxide::providers::SessionFetchConfig);
same!(duroxide::DispatcherCapabilityFilter, duroxide::providers::DispatcherCapabilityFilter);
same!(duroxide::ScheduledActivityIdentifier, duroxide::providers::ScheduledActivityIdentifier);
same!(duroxide::providers::ProviderError, duroxide::providers::error::ProviderError);

/// The types of the management module, which are exported three times.
macro_rules! same_management {
    ($($name:ident),+) => {
        $(same!(
            duroxide::$name,
            duroxide::providers::$name,
            duroxide::providers::management::$name
        );)+
    };
}

same_management!(
    DeleteInstanceResult,
    ExecutionInfo,
    InstanceFilter,
    InstanceInfo,
    InstanceTree,
    PruneOptions,
    PruneResult,
    QueueDepths,
    SystemMetrics
);

same!(duroxide::ProviderRef, Arc<dyn duroxide::providers::Provider>);
same!(duroxide::OrchestrationHandlerRef, Arc<dyn duroxide::OrchestrationHandler>);
same!(
    &'static dyn duroxide::OrchestrationHandler,
    &'static dyn duroxide::runtime::OrchestrationHandler
);
same!(&'static dyn duroxide::ProviderAdmin, &'static dyn duroxide::providers::ProviderAdmin);
same!(
    &'static dyn duroxide::providers::ManagementProvider,
    &'static dyn duroxide::providers::management::ManagementProvider
);

#[test]
fn constants() {
    use duroxide::runtime::limits;
    assert_eq!((duroxide::INITIAL_EXECUTION_ID, duroxide::INITIAL_EVENT_ID), (1_u64, 1_u64));
    assert_eq!(duroxide::SUB_ORCH_AUTO_PREFIX, "sub::");
    assert_eq!(limits::MAX_CARRY_FORWARD_EVENTS, 100_usize);
    assert_eq!(limits::MAX_CUSTOM_STATUS_BYTES, 262_144_usize);
    assert_eq!(limits::MAX_WORKER_TAGS, 5_usize);
    assert_eq!(duroxide::providers::MAX_WORKER_TAGS, limits::MAX_WORKER_TAGS);
    assert_eq!(limits::MAX_TAG_NAME_BYTES, 256_usize);
    assert_eq!(limits::MAX_KV_KEYS, 150_usize);
    assert_eq!(limits::MAX_KV_VALUE_BYTES, 65_536_usize);
}
