//! Behaviour of the whole runtime, by topic, on the memory provider.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(missing_docs, unreachable_pub, dead_code)]

mod support;
mod turn;
mod collisions;
mod messages;
mod children;
mod detached;
mod direct_turns;
mod timer_turns;
mod dropped_timers;
mod continue_as_new;
mod succession;
mod suspects;
mod cancellation;
mod limits;
mod poison;
mod storage_faults;
mod fetching;
mod chaos;
mod versions;
mod registries;
mod shutdown;
mod restart;
mod timers;
mod waits;
mod queues;
mod backlog;
mod kv_status;
mod management;
mod smoke;

mod activities;
mod activity_cancellation;
mod leases;
mod blocked_threads;
mod retries;
mod timeouts;
mod keys;
mod tags;
mod syscalls;
mod sessions;
mod client_live;
mod starts;
mod metrics;
mod logs;
mod operators;
mod safety_net;
mod in_process;
mod worker_crowd;
mod results_in_flight;
mod fetched_ahead;
