//! What running all checks gives.

use std::fmt;
use std::time::Duration;

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The promise holds.
    Passed,
    /// It does not, for this reason.
    Failed(String),
    /// It does not concern this provider.
    Skipped(&'static str),
}

/// Why a check that needs something a store or its factory may lack did not run; `None` if it did.
pub type Skip = Option<&'static str>;

/// One check.
#[derive(Debug, Clone)]
pub struct ValidationResult {
    /// Its category.
    pub category: &'static str,
    /// Its function.
    pub name: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
}

/// All checks.
#[derive(Debug, Clone, Default)]
pub struct ValidationReport {
    /// In the order of the list.
    pub results: Vec<ValidationResult>,
}

impl ValidationReport {
    /// Checks that passed.
    pub fn passed(&self) -> usize {
        self.results.iter().filter(|result| result.outcome == Outcome::Passed).count()
    }

    /// Checks that failed.
    pub fn failures(&self) -> impl Iterator<Item = &ValidationResult> {
        self.results.iter().filter(|result| matches!(result.outcome, Outcome::Failed(_)))
    }

    /// Whether nothing failed.
    pub fn is_ok(&self) -> bool {
        self.failures().next().is_none()
    }
}

impl fmt::Display for ValidationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ValidationResult { category, name, outcome, .. } in self.failures() {
            if let Outcome::Failed(reason) = outcome {
                writeln!(f, "FAILED {category}::{name}\n{reason}\n")?;
            }
        }
        let failed = self.failures().count();
        let skipped = self.results.len() - self.passed() - failed;
        let took: Duration = self.results.iter().map(|result| result.took).sum();
        write!(f, "{} passed, {failed} failed, {skipped} skipped in {took:.1?}", self.passed())
    }
}
