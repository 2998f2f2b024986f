//! The stress harness as users import it; see
//! [`provider_stress_test`](crate::provider_stress_test) for how to run it.

pub use crate::provider_stress_test::core::{
    StressTestConfig, StressTestResult, create_default_activities, create_default_orchestrations,
    print_comparison_table, run_stress_test,
};

/// Many orchestrations at a time.
pub mod parallel_orchestrations {
    pub use crate::provider_stress_test::parallel_orchestrations::{
        ProviderStressFactory, run_parallel_orchestrations_test,
        run_parallel_orchestrations_test_with_config,
    };
}

/// Large inputs and results.
pub mod large_payload {
    pub use crate::provider_stress_test::large_payload::{
        LargePayloadConfig, run_large_payload_test, run_large_payload_test_with_config,
    };
}
