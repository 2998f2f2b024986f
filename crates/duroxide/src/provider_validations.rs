//! The validation suite as users import it: the checks every store needs in one flat list, the rest
//! by topic. See [`provider_validation`](crate::provider_validation) for how to run them all.

pub use crate::provider_validation::atomicity::*;
pub use crate::provider_validation::cancellation::*;
pub use crate::provider_validation::error_handling::*;
pub use crate::provider_validation::instance_creation::*;
pub use crate::provider_validation::instance_locking::*;
pub use crate::provider_validation::lock_expiration::*;
pub use crate::provider_validation::management::*;
pub use crate::provider_validation::multi_execution::*;
pub use crate::provider_validation::queue_semantics::*;
pub use crate::provider_validation::{ProviderFactory, race_replay};

/// Fetches that wait, and fetches that do not.
pub mod long_polling {
    pub use crate::provider_validation::long_polling::*;
}

/// Attempt counts.
pub mod poison_message {
    pub use crate::provider_validation::poison_message::*;
}

/// Deleting instances.
pub mod deletion {
    pub use crate::provider_validation::deletion::*;
}

/// Pruning executions.
pub mod prune {
    pub use crate::provider_validation::prune::*;
}

/// Deleting many instances.
pub mod bulk_deletion {
    pub use crate::provider_validation::bulk_deletion::*;
}

/// Versions and who can replay them.
pub mod capability_filtering {
    pub use crate::provider_validation::capability_filtering::*;
}

/// Sessions.
pub mod sessions {
    pub use crate::provider_validation::sessions::*;
}

/// Custom status.
pub mod custom_status {
    pub use crate::provider_validation::custom_status::*;
}

/// Tags.
pub mod tag_filtering {
    pub use crate::provider_validation::tag_filtering::*;
}

/// The key-value store.
pub mod kv_store {
    pub use crate::provider_validation::kv_store::*;
}
