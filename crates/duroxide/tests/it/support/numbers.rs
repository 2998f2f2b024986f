//! What is counted while somebody looks, by a recorder of this thread: for tests on a
//! current-thread runtime, which is tokio's default for tests.

use std::collections::BTreeMap;

use metrics::{LocalRecorderGuard, set_default_local_recorder};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

/// Metrics by name and labels, written as `name{label=value,…}` with the labels in order.
pub type Numbers = BTreeMap<String, Number>;

/// A metric's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Number {
    Counter(u64),
    Gauge(f64),
    Histogram(Vec<f64>),
}

/// Where this thread's metrics go.
#[derive(Default)]
pub struct Board(DebuggingRecorder);

impl Board {
    /// Counts until the guard is dropped.
    pub fn count(&self) -> LocalRecorderGuard<'_> {
        set_default_local_recorder(&self.0)
    }

    /// Everything counted since the last call.
    pub fn take(&self) -> Numbers {
        let all = self.0.snapshotter().snapshot().into_vec().into_iter();
        all.map(|(key, _, _, value)| {
            let key = key.key();
            let mut labels: Vec<String> =
                key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            labels.sort();
            let name = match labels.join(",") {
                none if none.is_empty() => key.name().to_owned(),
                labels => format!("{}{{{labels}}}", key.name()),
            };
            let number = match value {
                DebugValue::Counter(count) => Number::Counter(count),
                DebugValue::Gauge(value) => Number::Gauge(value.into_inner()),
                DebugValue::Histogram(values) => {
                    Number::Histogram(values.into_iter().map(f64::from).collect())
                }
            };
            (name, number)
        })
        .collect()
    }
}

/// The counters whose name begins so, without zeros.
pub fn counters(numbers: &Numbers, prefix: &str) -> Vec<(String, u64)> {
    let named = numbers.iter().filter(|(name, _)| name.starts_with(prefix));
    named
        .filter_map(|(name, number)| match number {
            Number::Counter(count) if *count > 0 => Some((name.clone(), *count)),
            _ => None,
        })
        .collect()
}
