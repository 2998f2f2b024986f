//! The whole validation suite on the store of `examples/custom_provider`, so that what the guide
//! builds stays correct.
#![cfg(feature = "provider-test")]
#![allow(missing_docs)]

#[path = "../examples/custom_provider/store.rs"]
mod store;
#[path = "../examples/custom_provider/turns.rs"]
mod turns;
#[path = "../examples/custom_provider/commit.rs"]
mod commit;
#[path = "../examples/custom_provider/reads.rs"]
mod reads;
#[path = "../examples/custom_provider/work.rs"]
mod work;
#[path = "../examples/custom_provider/sessions.rs"]
mod sessions;
#[path = "../examples/custom_provider/kv.rs"]
mod kv;
#[path = "../examples/custom_provider/admin.rs"]
mod admin;
#[path = "../examples/custom_provider/delete.rs"]
mod delete;
#[path = "../examples/custom_provider/provider.rs"]
mod provider;
#[path = "../examples/custom_provider/factory.rs"]
mod factory;

mod tables {
    use super::factory::TableFactory;
    duroxide::provider_validation_tests!(TableFactory::default());
}
