//! Everything that only reads. A query sees one state of the store, whatever happens meanwhile.

pub(crate) mod history;
pub(crate) mod status;
pub(crate) mod kv;
pub(crate) mod instances;
pub(crate) mod metrics;
pub(crate) mod locks;
pub(crate) mod dump;
