//! How a runtime logs and how often it looks at its gauges.

use std::time::Duration;

/// Shape of log lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// Several lines per record, for people.
    Pretty,
    /// One line per record.
    #[default]
    Compact,
}

/// Settings of logs and metrics.
///
/// ```
/// use duroxide::RuntimeOptions;
/// use duroxide::runtime::{LogFormat, ObservabilityConfig};
///
/// let options = RuntimeOptions {
///     observability: ObservabilityConfig {
///         log_format: LogFormat::Json,
///         log_level: "debug".into(),
///         ..ObservabilityConfig::default()
///     },
///     ..RuntimeOptions::default()
/// };
/// assert_eq!(options.observability.service_name, "duroxide");
/// ```
#[derive(Debug, Clone)]
pub struct ObservabilityConfig {
    /// Shape of log lines.
    pub log_format: LogFormat,
    /// Level of what orchestrations and activities log; `RUST_LOG` overrides it.
    pub log_level: String,
    /// Name of the service, for the host's own use.
    pub service_name: String,
    /// Version of the service, for the host's own use.
    pub service_version: Option<String>,
    /// The longest time between two looks at queue depths and active orchestrations in the store. They
    /// are read every five seconds if that costs next to nothing, more rarely if it takes its time.
    pub gauge_poll_interval: Duration,
}

impl Default for ObservabilityConfig {
    fn default() -> Self {
        Self {
            log_format: LogFormat::Pretty,
            log_level: "info".to_owned(),
            service_name: "duroxide".to_owned(),
            service_version: None,
            gauge_poll_interval: Duration::from_secs(60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r9_1_defaults() {
        let config = ObservabilityConfig::default();
        assert_eq!((config.log_format, config.log_level.as_str()), (LogFormat::Pretty, "info"));
        assert_eq!((config.service_name.as_str(), config.service_version), ("duroxide", None));
        assert_eq!(config.gauge_poll_interval, Duration::from_secs(60));
        assert_eq!(LogFormat::default(), LogFormat::Compact);
    }
}
