//! Identifiers: first numbers, reserved names, and how a child's id is built (R2.100 – R2.106).

/// Number of an instance's first execution.
pub const INITIAL_EXECUTION_ID: u64 = 1;
/// Number of an execution's first event.
pub const INITIAL_EVENT_ID: u64 = 1;
/// Prefix of child ids that the engine makes up; users may not start an id with it.
pub const SUB_ORCH_AUTO_PREFIX: &str = "sub::";
/// Prefix of the built-in activities; users may not register a name with it.
pub const SYSCALL_PREFIX: &str = "__duroxide_syscall:";
/// Built-in activity behind `new_guid`.
pub const SYSCALL_NEW_GUID: &str = "__duroxide_syscall:new_guid";
/// Built-in activity behind `utc_now`.
pub const SYSCALL_UTC_NOW_MS: &str = "__duroxide_syscall:utc_now_ms";
/// Built-in activity behind `get_kv_value_from_instance`.
pub const SYSCALL_GET_KV_VALUE: &str = "__duroxide_syscall:get_kv_value";
/// Id of the failure event that ends an instance whose history cannot be read (R2.15): the real
/// next id is unknown then, and this one collides with nothing a sane execution reaches.
pub const UNREADABLE_HISTORY_EVENT_ID: u64 = 99_999;

/// Identity of an activity in the worker queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledActivityIdentifier {
    /// Owner instance.
    pub instance: String,
    /// Owner execution.
    pub execution_id: u64,
    /// Schedule event.
    pub activity_id: u64,
}

/// Whether a child id was made up by the engine rather than chosen by the user.
pub fn is_auto_generated_sub_orch_id(instance: &str) -> bool {
    instance.starts_with(SUB_ORCH_AUTO_PREFIX)
}

/// The full id of a child: made-up suffixes hang below their parent, chosen ids stand alone.
pub fn build_child_instance_id(parent_instance: &str, child_instance: &str) -> String {
    if is_auto_generated_sub_orch_id(child_instance) {
        format!("{parent_instance}::{child_instance}")
    } else {
        child_instance.to_owned()
    }
}

/// Whether a root id (client or detached start) uses the marker reserved for children (R2.104).
pub fn is_reserved_root_id(instance: &str) -> bool {
    instance.starts_with(SUB_ORCH_AUTO_PREFIX) || instance.contains("::sub::")
}

/// The suffix of an automatic child. Later executions name their number, so that a looping parent
/// never reuses the id of a finished child (R2.101).
pub fn child_suffix(execution_id: u64, event_id: u64) -> String {
    if execution_id == INITIAL_EXECUTION_ID {
        format!("{SUB_ORCH_AUTO_PREFIX}{event_id}")
    } else {
        format!("{SUB_ORCH_AUTO_PREFIX}{execution_id}_{event_id}")
    }
}

/// What an automatic child is called before its event id is known (R2.103).
pub fn pending_child_suffix(token: u64) -> String {
    format!("{SUB_ORCH_AUTO_PREFIX}pending_{token}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r2_100_and_r2_101_first_numbers_and_suffixes() {
        assert_eq!((INITIAL_EXECUTION_ID, INITIAL_EVENT_ID), (1, 1));
        assert_eq!(child_suffix(1, 16), "sub::16");
        assert_eq!(child_suffix(2, 4), "sub::2_4");
        assert_eq!(pending_child_suffix(14), "sub::pending_14"); // R2.103
    }

    #[test]
    fn r2_102_only_made_up_suffixes_hang_below_the_parent() {
        assert_eq!(build_child_instance_id("p", "sub::2"), "p::sub::2");
        assert_eq!(build_child_instance_id("p", "order-7"), "order-7");
        assert!(is_auto_generated_sub_orch_id("sub::x") && !is_auto_generated_sub_orch_id("x"));
    }

    #[test]
    fn r2_104_root_ids_may_not_look_like_children() {
        for (id, reserved) in [
            ("sub::1", true),
            ("a::sub::1", true),
            ("a::b", false),
            ("", false),
            ("xsub::1", false),
        ] {
            assert_eq!(is_reserved_root_id(id), reserved, "{id}");
        }
    }
}
