# Short names for the commands in CONTRIBUTING.md.

# Everything that must hold before a change goes in; writes nothing.
verify:
    ./test

# Repairs what tools can repair.
fix:
    cargo clippy --fix --allow-dirty --allow-staged --workspace --all-targets --all-features
    cargo fmt --all

# Tests only, e.g. `just test client`.
test *args:
    cargo test --workspace --all-features {{args}}

# Benchmarks, e.g. `just bench turns`.
bench *args:
    cargo bench --package duroxide --all-features {{args}}
