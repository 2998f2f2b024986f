//! A thread of the store's own, on which its connections go on whatever the caller's runtime does.
//!
//! Code that blocks a tokio runtime of one thread keeps everything else on it from going on, connections
//! included; and what was begun on a runtime ends with it. So whatever is not asked for by somebody who
//! waits right here lives on this thread: renewals, what listens, what cleans up, connections that read.
//! What writes does so only where the caller's runtime has one thread, or is gone: elsewhere the way to
//! another thread and back would cost more than it gains.

use std::convert::Infallible;
use std::future::Future;

use tokio::runtime::{Builder, Handle, RuntimeFlavor};
use tokio::sync::mpsc;

use crate::error::PgError;

/// The thread, which ends when this is dropped.
pub(crate) struct Driver {
    handle: Handle,
    /// Nothing is ever sent.
    _alive: mpsc::Sender<Infallible>,
}

impl Driver {
    pub(crate) fn start() -> Result<Self, PgError> {
        let no_thread = |error: std::io::Error| PgError::InvalidConfig {
            reason: format!("no thread for the store's connections: {error}"),
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
        let handle = runtime.handle().clone();
        let (alive, mut ended) = mpsc::channel::<Infallible>(1);
        let log = tracing::dispatcher::get_default(Clone::clone);
        let drive = move || {
            tracing::dispatcher::with_default(&log, || runtime.block_on(ended.recv()));
        };
        let thread = std::thread::Builder::new().name("duroxide-pg".to_owned());
        thread.spawn(drive).map_err(no_thread)?;
        Ok(Self { handle, _alive: alive })
    }

    /// The runtime of the thread.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Where those belong that are to answer soonest: with the caller, if its runtime goes on by itself.
    pub(crate) fn home(&self) -> Handle {
        match Handle::try_current() {
            Ok(current) if current.runtime_flavor() == RuntimeFlavor::MultiThread => current,
            _ => self.handle.clone(),
        }
    }

    /// Does something on the thread, and waits for it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, PgError>> + Send + 'static,
    ) -> Result<T, PgError> {
        let gone = |_| PgError::Connection { reason: "the store is closed".to_owned() };
        self.handle.spawn(work).await.map_err(gone)?
    }
}
