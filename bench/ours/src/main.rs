//! The benchmark, compiled against the crate of this repository.

#[path = "../../workloads/mod.rs"]
mod workloads;

#[cfg(feature = "sqlite")]
mod copies;
mod store;
mod growth;

/// How this side is called in results.
const SIDE: &str = "ours";

fn main() -> std::process::ExitCode {
    workloads::main()
}
