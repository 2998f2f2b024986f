//! Where the server is, by its URL and the other settings.

use std::str::FromStr;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::config::{ProviderConfig, TlsMode};
use crate::error::PgError;
use crate::tls;

/// What makes the plans of the schema's functions hold whatever the tables hold when they are made, and
/// the server notice soon that the other side is gone.
pub(crate) const LANE_SETTINGS: &[(&str, &str)] = &[
    ("enable_seqscan", "off"),
    // It reads all there is before the first row, and passes dead entries again and again.
    ("enable_bitmapscan", "off"),
    // With it, reading a table that was empty once seems as good as looking up each row.
    ("enable_material", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    ("tcp_keepalives_idle", "5"),
    ("tcp_keepalives_interval", "2"),
    ("tcp_keepalives_count", "3"),
];

/// How long a transaction that does things for many waits for a row that somebody else has locked.
const LOCK_WAIT_MS: u64 = 100;

/// Settings without which things would mean something else, or never end, whatever the server, the database
/// or the role says.
pub(crate) fn pinned(settings: &ProviderConfig) -> Vec<(&'static str, String)> {
    let millis = settings.statement_timeout.as_millis().clamp(1, i32::MAX as u128).to_string();
    vec![
        ("statement_timeout", millis.clone()),
        ("idle_in_transaction_session_timeout", millis),
        // Nobody's functions stand before the server's own.
        ("search_path", "pg_catalog,\"$user\",public".to_owned()),
        ("standard_conforming_strings", "on".to_owned()),
    ]
}

/// How long to wait for rows: for those who do things for many, and for the others.
pub(crate) fn lock_wait(is_shared: bool) -> (&'static str, String) {
    ("lock_timeout", if is_shared { LOCK_WAIT_MS } else { 0 }.to_string())
}

/// A server, and how to connect to it.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) config: Config,
    /// The same for connections that do things for many.
    pub(crate) lane_config: Config,
    /// The same for the one that listens.
    pub(crate) listener_config: Config,
    pub(crate) tls: Option<MakeRustlsConnect>,
}

impl Target {
    /// Reads the settings.
    pub(crate) fn of(settings: &ProviderConfig) -> Result<Self, PgError> {
        let (url, options) = split(&settings.url);
        let invalid = |reason: String| PgError::InvalidConfig { reason };
        let mut config = Config::from_str(&url).map_err(|error| {
            // The error does not repeat the URL, which may hold a password.
            invalid(format!("the URL cannot be read: {error}"))
        })?;
        if config.get_hosts().is_empty() {
            return Err(invalid("the URL names no host".to_owned()));
        }
        let mode = match settings.tls {
            TlsMode::FromUrl => mode(options.mode.as_deref(), &config)?,
            given => given,
        };
        let tls = tls::connector(mode, &settings.tls_roots, options.root_file.as_deref())?;
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        config.application_name(&settings.application_name);
        config.connect_timeout(settings.connect_timeout);
        let mut lane_config = config.clone();
        let mut listener_config = config.clone();
        if !settings.through_pooler {
            let mut usual = pinned(settings);
            // Row by row, statement by statement: what a function sees depends on it.
            usual.push(("default_transaction_isolation", "read\\ committed".to_owned()));
            let planning = LANE_SETTINGS.iter().map(|(name, value)| (*name, (*value).to_owned()));
            let planning: Vec<_> = planning.collect();
            // Readers, too: a plan made while a table was empty is used for as long as they last.
            config.options(options_of(&[&usual, &[lock_wait(false)], &planning]));
            lane_config.options(options_of(&[&usual, &[lock_wait(true)], &planning]));
            listener_config.options(options_of(&[&usual, &[lock_wait(false)], &planning]));
        }
        Ok(Self { config, lane_config, listener_config, tls })
    }
}

impl Target {
    /// Where it is, and who we are there, for people to read.
    pub(crate) fn place(&self) -> String {
        let name = |host: &Host| match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        };
        let hosts: Vec<String> = self.config.get_hosts().iter().map(name).collect();
        let ports: Vec<String> = self.config.get_ports().iter().map(u16::to_string).collect();
        let ports = if ports.is_empty() { "5432".to_owned() } else { ports.join(", ") };
        let user = self.config.get_user().unwrap_or("not named");
        let database = self.config.get_dbname().unwrap_or(user);
        format!("host {}, port {ports}, database {database}, user {user}", hosts.join(", "))
    }
}

/// Settings as an option of the connection.
fn options_of(groups: &[&[(&str, String)]]) -> String {
    let option = |(name, value): &(&str, String)| format!("-c {name}={value}");
    groups.iter().copied().flatten().map(option).collect::<Vec<_>>().join(" ")
}

/// What the URL says about encryption, in words that the driver does not know.
#[derive(Default)]
struct TlsOptions {
    mode: Option<String>,
    root_file: Option<String>,
}

fn split(url: &str) -> (String, TlsOptions) {
    let mut found = TlsOptions::default();
    let Some((address, query)) = url.split_once('?') else { return (url.to_owned(), found) };
    let mut kept = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", value)) => found.mode = Some(value.to_owned()),
            Some(("sslrootcert", value)) => found.root_file = Some(unescape(value)),
            _ => kept.push(pair),
        }
    }
    if kept.is_empty() {
        return (address.to_owned(), found);
    }
    (format!("{address}?{}", kept.join("&")), found)
}

fn mode(named: Option<&str>, config: &Config) -> Result<TlsMode, PgError> {
    match named {
        Some("disable") => Ok(TlsMode::Disable),
        Some("require") => Ok(TlsMode::Require),
        Some("verify-ca" | "verify-full") => Ok(TlsMode::VerifyFull),
        Some("allow" | "prefer") | None if config.get_hosts().iter().all(is_local) => {
            Ok(TlsMode::Disable)
        }
        Some("allow" | "prefer") | None => Ok(TlsMode::VerifyFull),
        Some(other) => {
            Err(PgError::InvalidConfig { reason: format!("there is no sslmode {other:?}") })
        }
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            let address = name.parse::<std::net::IpAddr>();
            name == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

/// Percent signs in the value of a URL's option.
fn unescape(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = (first == b'%').then(|| tail.get(..2)).flatten();
        let code = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode_of(url: &str) -> Result<TlsMode, PgError> {
        let (url, options) = split(url);
        mode(options.mode.as_deref(), &Config::from_str(&url).unwrap())
    }

    #[test]
    fn servers_elsewhere_have_to_prove_who_they_are() {
        assert_eq!(mode_of("postgres://u@localhost/d"), Ok(TlsMode::Disable));
        assert_eq!(mode_of("postgres://u@127.0.0.1:9/d?sslmode=prefer"), Ok(TlsMode::Disable));
        assert_eq!(mode_of("postgres://u@db.example/d"), Ok(TlsMode::VerifyFull));
        assert_eq!(mode_of("postgres://u@db.example/d?sslmode=prefer"), Ok(TlsMode::VerifyFull));
        assert_eq!(mode_of("postgres://u@db.example/d?sslmode=require"), Ok(TlsMode::Require));
        assert_eq!(mode_of("postgres://u@db.example/d?sslmode=disable"), Ok(TlsMode::Disable));
        assert!(mode_of("postgres://u@db.example/d?sslmode=perhaps").is_err());
    }

    #[test]
    fn a_place_is_named_without_the_password() {
        let settings = ProviderConfig::new("postgres://app:secret@127.0.0.1:5433/orders");
        let place = Target::of(&settings).unwrap().place();
        assert_eq!(place, "host 127.0.0.1, port 5433, database orders, user app");
    }

    #[test]
    fn what_the_driver_does_not_know_is_taken_out_of_the_url() {
        let (url, options) =
            split("postgres://u@h/d?sslrootcert=/a%20b.pem&keepalives=1&sslmode=verify-full");
        assert_eq!(url, "postgres://u@h/d?keepalives=1");
        assert_eq!(options.root_file.as_deref(), Some("/a b.pem"));
        assert_eq!(options.mode.as_deref(), Some("verify-full"));
        assert_eq!(split("postgres://u@h/d?sslmode=require").0, "postgres://u@h/d");
    }
}
