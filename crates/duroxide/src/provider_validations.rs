//! The validation suite as users import it: the checks every store needs in one flat list, the rest
//! by topic. See [`provider_validation`](crate::provider_validation) for how to run them all.

pub use crate::provider_validation::atomicity::*;
pub use crate::provider_validation::instance_creation::*;
pub use crate::provider_validation::{ProviderFactory, race_replay};
