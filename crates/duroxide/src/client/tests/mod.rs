//! Tests of the client against a scripted store: what it sends, how it reads, how it waits.

mod fake;
mod messages;
mod status;
mod wait;
mod kv;
mod manage;
