//! Every maximum, with its reason.

/// Queue messages that continue-as-new carried over in the reference crate, which dropped the rest.
/// Nothing is dropped any more, and nothing here uses it: it stays for programs that name it.
pub const MAX_CARRY_FORWARD_EVENTS: usize = 100;
/// Bytes of a custom status: it is rewritten on each update and read by every status call.
pub const MAX_CUSTOM_STATUS_BYTES: usize = 262_144;
/// Tags in one worker filter: providers bind each as a query parameter.
pub const MAX_WORKER_TAGS: usize = 5;
/// Bytes of an activity tag: it is an index key in providers.
pub const MAX_TAG_NAME_BYTES: usize = 256;
/// Keys of one instance: the whole store is loaded with every turn.
pub const MAX_KV_KEYS: usize = 150;
/// Bytes of one value: see [`MAX_KV_KEYS`].
pub const MAX_KV_VALUE_BYTES: usize = 65_536;
/// Rounds of one turn in which the code asks for more without anything having resolved. Only code
/// that schedules on every poll gets there; without a limit such a turn would never end.
pub const MAX_IDLE_ROUNDS: usize = 100;
/// Polls of one turn in which code wakes itself, or one part of it another, without any durable result
/// in between. Nothing but an endless loop gets there.
pub const MAX_IDLE_POLLS: usize = 100_000;
/// System calls resolved inside one turn. Further ones go through the worker queue, so that a loop
/// of them commits now and then.
pub const MAX_SYSTEM_CALLS_PER_TURN: usize = 1_000;
/// Messages a fetched turn holds at most.
pub const MAX_TURN_MESSAGES: usize = 1000;
/// Bytes of messages a fetched turn holds at most, unless its only message is larger.
pub const MAX_TURN_BYTES: usize = 4 << 20;
/// Bytes a fetch of several turns or activities holds at most, beyond its first.
pub const MAX_FETCH_BYTES: usize = 16 << 20;
