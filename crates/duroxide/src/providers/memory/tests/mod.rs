//! Tests of the memory store, rule by rule. Each says its story in the words of `lab.rs`.

mod lab;
mod messages;
mod fetch;
mod unknown_instances;
mod commit;
mod locks;
mod attempts;
mod executions;
mod capability;
mod work;
mod tags;
mod sessions;
mod session_leases;
mod kv;
mod custom_status;
mod reads;
mod management;
mod delete;
mod bulk_delete;
mod prune;
mod damage;
mod additive;
mod long_poll;
mod hammer;
mod model_turns;
mod model_work;
