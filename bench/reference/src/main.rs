//! The benchmark, compiled against the reference implementation.

#[path = "../../workloads/mod.rs"]
mod workloads;

mod store;

/// How this side is called in results.
const SIDE: &str = "reference";

fn main() -> std::process::ExitCode {
    workloads::main()
}
