//! Several runs of the same thing, and their medians.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::Failure;

/// What one process measured.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// Figures and facts, by name. A fact that is true counts as 1.
    values: BTreeMap<String, f64>,
}

/// All runs of a variant in a case.
#[derive(Debug, Clone, Default)]
pub(crate) struct Summary {
    runs: Vec<Run>,
    failures: Vec<String>,
}

impl Run {
    pub(crate) fn from_json(line: &Value) -> Result<Self, Failure> {
        let facts = line.as_object().ok_or("a run's line is an object")?;
        let figures = line["figures"].as_object().ok_or("a run has figures")?;
        let number = |value: &Value| value.as_f64().or(value.as_bool().map(f64::from));
        let values = facts.iter().chain(figures);
        let values = values.filter_map(|(name, value)| Some((name.clone(), number(value)?)));
        Ok(Self { values: values.collect() })
    }

    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }
}

impl Summary {
    pub(crate) fn add(&mut self, run: Run) {
        self.runs.push(run);
    }

    pub(crate) fn fail(&mut self, why: String) {
        eprintln!("failed: {why}");
        self.failures.push(why);
    }

    /// The median of a figure or a fact.
    pub(crate) fn median(&self, name: &str) -> Option<f64> {
        let mut values = self.values(name);
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        match values.len() {
            0 => None,
            odd if odd % 2 == 1 => Some(values[middle]),
            _ => Some((values[middle - 1] + values[middle]) / 2.0),
        }
    }

    /// The largest of a fact over all runs; 0 if there is none.
    pub(crate) fn max(&self, name: &str) -> f64 {
        self.values(name).into_iter().fold(0.0, f64::max)
    }

    /// Processor time for one instance, in milliseconds.
    pub(crate) fn cpu_ms_per_instance(&self) -> Option<f64> {
        Some(self.median("cpu_seconds")? * 1e3 / self.median("instances")?.max(1.0))
    }

    /// Processor time of the server for one instance, in milliseconds.
    pub(crate) fn server_cpu_ms_per_instance(&self) -> Option<f64> {
        Some(self.median("server_cpu_seconds")? * 1e3 / self.median("instances")?.max(1.0))
    }

    /// Transactions of the server for one instance.
    pub(crate) fn transactions_per_instance(&self) -> Option<f64> {
        Some(self.median("transactions")? / self.median("instances")?.max(1.0))
    }

    pub(crate) fn failures(&self) -> &[String] {
        &self.failures
    }

    pub(crate) fn to_json(&self) -> Value {
        let names = self.runs.iter().flat_map(|run| run.values.keys());
        let names: std::collections::BTreeSet<_> = names.collect();
        let each = names.into_iter().map(|name| {
            let values = self.values(name);
            (name.clone(), json!({ "median": self.median(name), "runs": values }))
        });
        json!({ "values": Value::Object(each.collect()), "failures": self.failures })
    }

    fn values(&self, name: &str) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.get(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_numbers_of_runs() {
        let mut summary = Summary::default();
        assert_eq!(summary.median("x"), None);
        for x in [3, 1, 2] {
            summary.add(Run::from_json(&json!({ "figures": { "x": x } })).unwrap());
        }
        assert_eq!(summary.median("x"), Some(2.0));
        summary.add(Run::from_json(&json!({ "cut": true, "figures": { "x": 10 } })).unwrap());
        assert_eq!(summary.median("x"), Some(2.5));
        assert_eq!(summary.max("cut"), 1.0);
    }
}
