//! The benchmark, compiled against the crate of this repository.

#[path = "../../workloads/mod.rs"]
mod workloads;

mod store;

/// How this side is called in results.
const SIDE: &str = "ours";

fn main() -> std::process::ExitCode {
    workloads::main()
}
