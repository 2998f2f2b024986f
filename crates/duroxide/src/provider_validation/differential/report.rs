//! What a comparison did, and what it found.

use std::collections::BTreeMap;
use std::fmt;

/// What was compared without finding a difference.
#[derive(Debug, Clone, Default)]
pub struct DifferentialReport {
    /// Seed of the first sequence; the others follow by one.
    pub seed: u64,
    /// Sequences run.
    pub sequences: usize,
    /// Operations carried out on both stores.
    pub operations: usize,
    /// How often everything that can be seen was compared.
    pub dumps: usize,
    /// Calls by name, so that a test can ask whether everything was tried.
    pub calls: BTreeMap<&'static str, CallCount>,
}

/// How often something was called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCount {
    /// With an answer that did something: a lock came, something changed, something was there.
    pub answered: usize,
    /// With nothing to fetch.
    pub empty: usize,
    /// With a refusal.
    pub refused: usize,
}

impl fmt::Display for DifferentialReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} operations in {} sequences from seed {}, {} dumps: no difference",
            self.operations, self.sequences, self.seed, self.dumps
        )?;
        for (call, count) in &self.calls {
            let CallCount { answered, empty, refused } = count;
            writeln!(f, "{call:32} {answered:7} answered {empty:7} empty {refused:7} refused")?;
        }
        Ok(())
    }
}

/// A sequence of operations after which a store does not do what the memory provider does.
#[derive(Debug, Clone)]
pub struct Difference {
    /// Seed of the sequence.
    pub seed: u64,
    /// What the store calls itself.
    pub store: String,
    /// The operations, each with the answer of both; as few as were found to be enough.
    pub operations: Vec<String>,
    /// What was asked when the answers differed.
    pub question: String,
    /// What the memory provider answered.
    pub expected: String,
    /// What the store answered.
    pub got: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} differs from the memory provider, seed {}", self.store, self.seed)?;
        for (number, operation) in (1..).zip(&self.operations) {
            writeln!(f, "{number:4}. {operation}")?;
        }
        writeln!(f, "then: {}", self.question)?;
        writeln!(f, "  expected: {}", self.expected)?;
        writeln!(f, "  got:      {}", self.got)?;
        write!(f, "{}", how_to_repeat(self.seed))
    }
}

impl std::error::Error for Difference {}

/// One line for the terminal.
pub(super) fn how_to_repeat(seed: u64) -> String {
    format!("to repeat: set DUROXIDE_SEED={seed} and run this test; its first sequence is this one")
}
