//! What a PostgreSQL store can be told.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use duroxide_core::clock::Clock;

/// Schema of the store if none is named.
pub const DEFAULT_SCHEMA: &str = "duroxide";

/// How a store is reached and used.
///
/// ```
/// use duroxide_pg::{MigrationPolicy, ProviderConfig};
///
/// let mut config = ProviderConfig::new("postgres://app@db.example/app");
/// config.schema = "workflows".to_owned();
/// config.migrations = MigrationPolicy::Verify; // somebody else owns the schema
/// ```
///
/// Behind a pooler that gives connections away after each transaction:
///
/// ```
/// # use std::time::Duration;
/// # use duroxide_pg::ProviderConfig;
/// let mut config = ProviderConfig::new("postgres://app@pgbouncer.example:6432/app");
/// config.through_pooler = true;
/// config.poll_interval = Duration::from_millis(50); // nobody can listen there
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ProviderConfig {
    /// Where the database is: `postgres://user:password@host:port/database`. `sslmode` and
    /// `sslrootcert` in it are understood, see [`tls`](Self::tls).
    pub url: String,
    /// Schema that holds the tables; [`DEFAULT_SCHEMA`].
    pub schema: String,
    /// Most connections open at a time; 8. One listens, [`lanes`](Self::lanes) write, one renews locks,
    /// one sees to what has to wait for rows that somebody else has locked, and what is left, two at
    /// least, read and clean up.
    pub pool_size: usize,
    /// Connections that write; 2. Whatever waits for one leaves together as one transaction, so that
    /// more of them seldom help.
    pub lanes: usize,
    /// Whether a connection listens for what other nodes did (`LISTEN`), and shows by its life that this
    /// node lives; yes. Without it the store is asked every [`poll_interval`](Self::poll_interval), and
    /// work of a node that died waits until its locks run out.
    pub listen: bool,
    /// How often to ask what other nodes did where nobody listens: so often while there is something to
    /// do, ever more seldom otherwise, at least once a second; 100 ms.
    pub poll_interval: Duration,
    /// What to do about a schema that is missing or old.
    pub migrations: MigrationPolicy,
    /// How long the server works on one call before it gives up; 30 s.
    pub statement_timeout: Duration,
    /// How long connecting may take; 10 s.
    pub connect_timeout: Duration,
    /// Whether connections are encrypted.
    pub tls: TlsMode,
    /// Whom to trust.
    pub tls_roots: TlsRoots,
    /// Name that the server shows for the connections; `duroxide`.
    pub application_name: String,
    /// Asked for the password, or a token in its place, for every new connection; the one in the
    /// URL if absent.
    pub password: Option<Arc<dyn PasswordSource>>,
    /// Connections go through a pooler that gives them away after each transaction: isolation, search path
    /// and timeouts are set in each transaction instead of once, and no connection can
    /// [`listen`](Self::listen).
    pub through_pooler: bool,
    /// How long messages for an instance that does not exist wait for it before they become dead
    /// letters (R8.29); one hour.
    pub orphan_retention: Duration,
    /// The time by which messages become visible and locks end; the server's clock if absent. For
    /// tests.
    pub clock: Option<Arc<dyn Clock>>,
    /// How often a node looks for what no notification told it of, and for nodes that died; one second.
    /// Tests make it so long that only notifications are left.
    #[doc(hidden)]
    pub pulse_interval: Duration,
}

impl ProviderConfig {
    /// Everything as usual, for the database at this URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            schema: DEFAULT_SCHEMA.to_owned(),
            pool_size: 8,
            lanes: 2,
            listen: true,
            poll_interval: Duration::from_millis(100),
            migrations: MigrationPolicy::Apply,
            statement_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            tls: TlsMode::FromUrl,
            tls_roots: TlsRoots::System,
            application_name: "duroxide".to_owned(),
            password: None,
            through_pooler: false,
            orphan_retention: Duration::from_secs(3600),
            clock: None,
            pulse_interval: Duration::from_secs(1),
        }
    }
}

impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password.
        f.debug_struct("ProviderConfig")
            .field("schema", &self.schema)
            .field("pool_size", &self.pool_size)
            .field("lanes", &self.lanes)
            .field("listen", &self.listen)
            .field("poll_interval", &self.poll_interval)
            .field("migrations", &self.migrations)
            .field("statement_timeout", &self.statement_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("tls", &self.tls)
            .field("application_name", &self.application_name)
            .field("through_pooler", &self.through_pooler)
            .field("orphan_retention", &self.orphan_retention)
            .finish_non_exhaustive()
    }
}

/// What to do about a schema that is missing or old.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MigrationPolicy {
    /// Make it, or bring it up to date.
    #[default]
    Apply,
    /// Refuse to open the store. For roles that may not create anything.
    Verify,
}

/// Whether connections are encrypted, and how much is checked.
///
/// ```
/// use duroxide_pg::{ProviderConfig, TlsMode, TlsRoots};
///
/// let mut config = ProviderConfig::new("postgres://app@db.example/app");
/// config.tls = TlsMode::VerifyFull;
/// config.tls_roots = TlsRoots::Pem(b"-----BEGIN CERTIFICATE-----\n...".to_vec());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TlsMode {
    /// What `sslmode` in the URL says; without it [`VerifyFull`](Self::VerifyFull), but
    /// [`Disable`](Self::Disable) for servers on this machine.
    #[default]
    FromUrl,
    /// No encryption.
    Disable,
    /// Encrypted, to whoever answers.
    Require,
    /// Encrypted, to a server whose certificate is trusted and carries the name in the URL.
    VerifyFull,
}

/// Whose certificates are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TlsRoots {
    /// Those the system trusts, or those in the file that `sslrootcert` in the URL names.
    #[default]
    System,
    /// These, in PEM form.
    Pem(Vec<u8>),
}

/// Supplies passwords, or tokens that serve as such, for new connections.
///
/// ```
/// use std::sync::Arc;
///
/// use async_trait::async_trait;
/// use duroxide_pg::{PasswordSource, ProviderConfig};
///
/// struct CloudToken;
///
/// #[async_trait]
/// impl PasswordSource for CloudToken {
///     async fn password(&self) -> Result<String, String> {
///         Ok("a token that is valid for some minutes".to_owned()) // ask the cloud's API here
///     }
/// }
///
/// let mut config = ProviderConfig::new("postgres://app@db.example/app");
/// config.password = Some(Arc::new(CloudToken));
/// ```
#[async_trait]
pub trait PasswordSource: Send + Sync {
    /// A password that is valid now; or why there is none.
    async fn password(&self) -> Result<String, String>;
}
