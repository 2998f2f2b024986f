//! The log subscriber a runtime installs for hosts that have none.

use std::io::{self, IsTerminal};

use tracing::Dispatch;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::{MakeWriter, fmt};

use super::{LogFormat, ObservabilityConfig};

/// Installs a global log subscriber; an error if there is one already, or the level is no level.
pub fn init_logging(config: &ObservabilityConfig) -> Result<(), String> {
    let filter = filter(std::env::var(EnvFilter::DEFAULT_ENV).ok().as_deref(), &config.log_level)?;
    let with_colours = io::stdout().is_terminal();
    let subscriber = subscriber(&config.log_format, filter, with_colours, io::stdout);
    tracing::dispatcher::set_global_default(subscriber).map_err(|error| error.to_string())
}

/// What the environment asks for; if that is nothing or nonsense, user code at `level` and the rest
/// at `warn` (R9.3).
fn filter(environment: Option<&str>, level: &str) -> Result<EnvFilter, String> {
    let asked_for = environment.filter(|directives| !directives.trim().is_empty());
    if let Some(Ok(filter)) = asked_for.map(EnvFilter::try_new) {
        return Ok(filter);
    }
    EnvFilter::try_new(format!("warn,duroxide::orchestration={level},duroxide::activity={level}"))
        .map_err(|error| format!("log level {level:?}: {error}"))
}

fn subscriber<W>(format: &LogFormat, filter: EnvFilter, with_colours: bool, writer: W) -> Dispatch
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let mut lines = fmt().with_env_filter(filter).with_writer(writer);
    if !with_colours {
        // Otherwise left alone: the default looks at NO_COLOR.
        lines = lines.with_ansi(false);
    }
    match format {
        LogFormat::Json => Dispatch::new(lines.json().finish()),
        LogFormat::Pretty => Dispatch::new(lines.pretty().finish()),
        LogFormat::Compact => Dispatch::new(lines.compact().finish()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::Value;

    use super::*;

    /// The log records of `action` that `directives` let through.
    pub(crate) fn written_as_json(directives: &str, action: impl FnOnce()) -> Vec<Value> {
        let text = written(&LogFormat::Json, EnvFilter::new(directives), action);
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn written(format: &LogFormat, filter: EnvFilter, action: impl FnOnce()) -> String {
        let lines = Lines::default();
        let copy = lines.clone();
        let subscriber = subscriber(format, filter, false, move || copy.clone());
        tracing::dispatcher::with_default(&subscriber, action);
        let bytes = lines.0.lock().unwrap();
        String::from_utf8(bytes.clone()).unwrap()
    }

    #[test]
    fn r9_3_environment_if_valid_else_user_code_at_its_level() {
        let of = |environment, level| filter(environment, level).map(|filter| filter.to_string());
        assert_eq!(of(Some("sqlx=debug"), "info").unwrap(), "sqlx=debug");
        for environment in [None, Some(""), Some("duroxide=shouting")] {
            let directives = of(environment, "debug").unwrap();
            for part in ["warn", "duroxide::orchestration=debug", "duroxide::activity=debug"] {
                assert!(directives.split(',').any(|directive| directive == part), "{directives}");
            }
        }
        assert!(of(None, "shouting").unwrap_err().contains("shouting"));
    }

    #[test]
    fn r9_1_r9_3_formats_and_levels() {
        for (format, shape) in [
            (LogFormat::Json, "{\"timestamp\""),
            (LogFormat::Pretty, "  at "),
            (LogFormat::Compact, " duroxide::activity: user speaks instance_id=\"i1\"\n"),
        ] {
            let text = written(&format, filter(None, "info").unwrap(), || {
                tracing::info!(target: "duroxide::activity", instance_id = "i1", "user speaks");
                tracing::info!(target: "duroxide::runtime", "machinery whispers");
                tracing::debug!(target: "duroxide::activity", "user whispers");
            });
            assert!(text.contains(shape) && !text.contains("whispers"), "{format:?}: {text}");
        }
    }

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
