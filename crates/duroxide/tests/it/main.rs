//! Behaviour of the whole runtime, by topic, on the memory provider.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(missing_docs, unreachable_pub, dead_code)]

mod support;
mod turn;
mod collisions;
mod children;
mod continue_as_new;
mod cancellation;
mod limits;
mod poison;
mod storage_faults;
mod smoke;

mod activities;
mod activity_cancellation;
mod leases;
mod retries;
mod tags;
mod syscalls;
mod sessions;
mod client_live;
mod metrics;
mod logs;
mod safety_net;
mod worker_crowd;
