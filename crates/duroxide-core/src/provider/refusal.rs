//! Why a store says no. Every refusal here is final: trying the same again cannot help (R8.6).
//!
//! The words are the same whatever the store; providers of other crates are free to use them.

use super::{DeleteRefused, ProviderError};

/// A refused operation, before it is known by which name it was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// No lock has this token (any more): R8.40, R8.56, R8.57.
    UnknownToken,
    /// The lock ran out: R8.41.
    LockExpired,
    /// An event without an id: R8.61.
    UnassignedEvent,
    /// An event id that is taken: R8.62.
    DuplicateEvent {
        /// Execution it was for.
        execution_id: u64,
        /// The id.
        event_id: u64,
    },
    /// A turn committed with another must belong to the execution after it: R8.140.
    NotASuccessor {
        /// Execution of the first turn.
        execution_id: u64,
        /// Execution of the turn that came with it.
        next: u64,
    },
    /// A store that cannot commit two turns together: R8.140.
    NoSuccessors,
    /// A store that does not commit turns together with outcomes: R8.142.
    NoDirectTurns,
    /// A store that does not commit turns together with timers: R8.150.
    NoTimerTurns,
    /// A timer that is not due, or whose message is not waiting for its time (any more): R8.150.
    NotHeldBack,
    /// Something has happened or may happen to the instance that its turn does not know of: R8.142.
    NotAtRest(String),
    /// Only activities go to the worker queue.
    NotWork(&'static str),
    /// Activities do not go to the orchestrator queue: R8.10.
    NotAMessage(&'static str),
    /// Only an activity's outcome answers an activity: R8.74.
    NotAnOutcome(&'static str),
    /// No such instance: R8.97.
    UnknownInstance(String),
    /// No such execution: R8.97.
    UnknownExecution(String, u64),
    /// The stored history makes no sense: R8.95.
    UnreadableHistory(String),
    /// Deleting is not allowed: R6.61.
    Undeletable(DeleteRefused, String),
    /// An ended instance cannot make room while a descendant of it runs: R6.87.
    DescendantRuns {
        /// The instance that has ended.
        root: String,
        /// The one that runs.
        descendant: String,
    },
    /// A child would lose its parent: R6.64.
    ChildAppeared {
        /// The child.
        child: String,
        /// Its parent, which was to be deleted.
        parent: String,
    },
}

impl Refusal {
    /// The refusal as an error of the method that met it.
    pub fn during(self, operation: &str) -> ProviderError {
        ProviderError::permanent(operation, self.message())
    }

    /// What is wrong, in words.
    pub fn message(self) -> String {
        match self {
            Self::UnknownToken => "Invalid lock token".to_owned(),
            Self::LockExpired => "Invalid lock token: the lock has expired".to_owned(),
            Self::UnassignedEvent => {
                "event id 0 means not assigned and cannot be stored".to_owned()
            }
            Self::DuplicateEvent { execution_id, event_id } => {
                format!("duplicate event id {event_id} in execution {execution_id}")
            }
            Self::NotASuccessor { execution_id, next } => {
                format!("execution {next} does not follow execution {execution_id}")
            }
            Self::NoSuccessors => {
                "this store commits one turn at a time; see Provider::commits_successors".to_owned()
            }
            Self::NoDirectTurns => {
                "this store takes outcomes as messages; see Provider::commits_direct_turns"
                    .to_owned()
            }
            Self::NoTimerTurns => {
                "this store shows timers itself; see Provider::commits_timer_turns".to_owned()
            }
            Self::NotHeldBack => "a timer is not due, or is not held back any more".to_owned(),
            Self::NotAtRest(instance) => {
                format!("instance {instance} is locked, has messages, or has gone on meanwhile")
            }
            Self::NotWork(kind) => format!("{kind} does not belong in the worker queue"),
            Self::NotAMessage(kind) => format!("{kind} does not belong in the orchestrator queue"),
            Self::NotAnOutcome(kind) => format!("{kind} does not complete an activity"),
            Self::UnknownInstance(instance) => format!("Instance {instance} not found"),
            Self::UnknownExecution(instance, execution_id) => {
                format!("Execution {execution_id} of instance {instance} not found")
            }
            Self::UnreadableHistory(why) => format!("history cannot be read: {why}"),
            Self::Undeletable(refused, instance) => refused.into_error(&instance).message,
            Self::DescendantRuns { root, descendant } => format!(
                "Instance {root} has ended, but {descendant}, which it or a child of it started, is \
                 still running: wait until that has ended, or cancel it first."
            ),
            Self::ChildAppeared { child, parent } => {
                format!("instance {child}, a child of {parent}, was created after tree traversal")
            }
        }
    }
}
