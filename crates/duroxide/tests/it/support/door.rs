//! A door in a handler: the test sees it arrive and lets it through.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Doors are the same when cloned.
#[derive(Clone)]
pub struct Door {
    arrivals: Arc<Semaphore>,
    passes: Arc<Semaphore>,
}

impl Default for Door {
    fn default() -> Self {
        let closed = || Arc::new(Semaphore::new(0));
        Self { arrivals: closed(), passes: closed() }
    }
}

impl Door {
    /// The handler's side: knocks, and waits to be let through.
    pub async fn pass(&self) {
        self.arrivals.add_permits(1);
        self.passes.acquire().await.unwrap().forget();
    }

    /// The test's side: waits for somebody to knock.
    pub async fn knock(&self) {
        self.arrivals.acquire().await.unwrap().forget();
    }

    /// Whether somebody knocked who has not been noticed yet.
    pub fn has_knock(&self) -> bool {
        self.arrivals.available_permits() > 0
    }

    /// Lets somebody through, now or when they come.
    pub fn open(&self) {
        self.passes.add_permits(1);
    }
}
