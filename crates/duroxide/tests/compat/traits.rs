//! Derived and automatic traits, as callers' own derives and spawns need them.

use std::any::Any;
use std::error::Error;
use std::fmt::{Debug, Display};
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};

use duroxide::client::{Client, ClientError};
use duroxide::providers::instrumented::InstrumentedProvider;
use duroxide::providers::*;
use duroxide::runtime::observability::*;
use duroxide::runtime::registry::*;
use duroxide::runtime::replay_engine::{ReplayEngine, TurnResult};
use duroxide::runtime::*;
use duroxide::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Fails to compile unless each type has all the traits.
macro_rules! all_are {
    ($bounds:tt: $($type:ty),+ $(,)?) => { $(all_are!(@ $bounds $type);)+ };
    (@ [$($bound:path),+] $type:ty) => {
        const _: fn() = || { $({ fn has<T: ?Sized + $bound>() {} has::<$type>(); })+ };
    };
}

/// Fails to compile if a type has the trait: the name of the method is ambiguous then.
macro_rules! is_not {
    ($type:ty: $bound:path) => {
        const _: fn() = || {
            trait Probe<Which> {
                fn probe() {}
            }
            struct Has;
            impl<T: ?Sized> Probe<()> for T {}
            impl<T: ?Sized + $bound> Probe<Has> for T {}
            let _ = <$type as Probe<_>>::probe;
        };
    };
}

// Data: cloned, compared, printed.
all_are!([Debug, Clone, Send, Sync, Unpin, UnwindSafe, RefUnwindSafe]:
    Action, AppErrorKind, BackoffStrategy, ClientError, CompletionResult, ConfigErrorKind,
    DeleteInstanceResult, DispatcherCapabilityFilter, Either2<u8, u8>, Either3<u8, u8, u8>,
    ErrorDetails, Event, EventKind, ExecutionInfo, ExecutionMetadata, HistoryManager,
    InstanceFilter, InstanceInfo, InstanceTree, KvEntry, LogFormat, LogLevel, MetricsSnapshot,
    ObservabilityConfig, OrchestrationDescriptor, OrchestrationItem, OrchestrationStatus,
    PoisonMessageType, ProviderError, PruneOptions, PruneResult, QueueDepths, RetryPolicy,
    RuntimeOptions, ScheduleKind, ScheduledActivityIdentifier, SemverRange, SessionFetchConfig,
    SystemMetrics, SystemStats, TagFilter, UnregisteredBackoffConfig, VersionPolicy, WorkItem,
);
all_are!([Debug, Send, Sync, Unpin, UnwindSafe, RefUnwindSafe]: TurnResult, WorkItemReader);
all_are!([PartialEq]: SystemStats, KvEntry);
all_are!([PartialEq, Eq]:
    AppErrorKind, ConfigErrorKind, Either2<u8, u8>, Either3<u8, u8, u8>, ErrorDetails, Event,
    EventKind, LogFormat, MetricsSnapshot, OrchestrationDescriptor, OrchestrationStatus,
    PoisonMessageType, ProviderError, ScheduledActivityIdentifier, SemverRange, TagFilter,
    WorkItem,
);
all_are!([Default]:
    BackoffStrategy, DeleteInstanceResult, ExecutionMetadata, InstanceFilter, LogFormat,
    MetricsSnapshot, ObservabilityConfig, PruneOptions, PruneResult, QueueDepths, RetryPolicy,
    RuntimeOptions, SystemMetrics, TagFilter, UnregisteredBackoffConfig, ActivityRegistry,
    OrchestrationRegistry,
);
all_are!([Serialize, DeserializeOwned]:
    AppErrorKind, ConfigErrorKind, ErrorDetails, Event, EventKind, PoisonMessageType, SystemStats,
    WorkItem,
);
all_are!([Error, Display]: ClientError, ProviderError);
all_are!([From<ProviderError>]: ClientError);
all_are!([From<String>, From<&'static str>]: ProviderError);

// Handles: cloned and shared between tasks.
all_are!([Clone, Send, Sync, Unpin]:
    Client, OrchestrationContext, ActivityContext, ActivityRegistry, OrchestrationRegistry,
    ProviderRef, OrchestrationHandlerRef,
);
all_are!([UnwindSafe, RefUnwindSafe]: OrchestrationContext);
all_are!([Debug]: ActivityContext);
all_are!([Send, Sync, Unpin]:
    Runtime, ReplayEngine, InstrumentedProvider, ActivityRegistryBuilder,
    OrchestrationRegistryBuilder,
);
all_are!([Send, Sync, Unpin, UnwindSafe, RefUnwindSafe]: MetricsProvider, ObservabilityHandle);
all_are!([Any, Send, Sync]: dyn Provider, dyn ProviderAdmin);
all_are!([Send, Sync]: dyn ManagementProvider, dyn OrchestrationHandler, dyn ActivityHandler);
all_are!([Provider]: InstrumentedProvider);

// R3.121: a durable future moves between threads with its value, but is not shared.
struct NotSend(#[allow(dead_code)] *const u8);
all_are!([Send, Unpin, Future]: DurableFuture<()>, DurableFuture<Result<String, String>>);
all_are!([Unpin, Future]: DurableFuture<NotSend>, DurableFuture<std::marker::PhantomPinned>);
is_not!(DurableFuture<()>: Sync);
is_not!(DurableFuture<NotSend>: Send);

#[test]
fn stores_can_be_downcast() {
    let store = duroxide::providers::memory::MemoryProvider::new();
    let store: Box<dyn Provider> = Box::new(store);
    let any: &dyn Any = &*store;
    assert!(any.is::<duroxide::providers::memory::MemoryProvider>());
    let any: Box<dyn Any> = store;
    assert!(any.downcast::<duroxide::providers::memory::MemoryProvider>().is_ok());
}
