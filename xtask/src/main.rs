//! Repository checks, run as `cargo xtask <command>`.

fn main() {}
