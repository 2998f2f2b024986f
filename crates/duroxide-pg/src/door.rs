//! The way to the server: one at a time goes, and nobody runs against a closed door.

use std::future::Future;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::error::PgError;

/// Pauses after failed tries: from the first to the longest, doubling.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The way to the server.
pub(crate) struct Door(Mutex<Option<Closed>>);

/// It could not be opened lately.
struct Closed {
    error: PgError,
    pause: Duration,
    until: Instant,
}

impl Door {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Connects. After a failed try nobody tries for a while: the patient wait, the others hear why.
    pub(crate) async fn enter<T, F>(
        &self,
        is_patient: bool,
        connect: impl FnOnce() -> F,
    ) -> Result<T, PgError>
    where
        F: Future<Output = Result<T, PgError>>,
    {
        let mut closed = self.0.lock().await;
        let mut pause = FIRST_PAUSE;
        if let Some(closed) = &*closed {
            if Instant::now() < closed.until && !is_patient {
                return Err(closed.error.clone());
            }
            tokio::time::sleep_until(closed.until).await;
            pause = (closed.pause * 2).min(LONGEST_PAUSE);
        }
        let result = connect().await;
        *closed = match &result {
            Ok(_) => None,
            Err(error) => {
                if closed.is_none() {
                    tracing::warn!(target: "duroxide::providers::postgres", %error, "no connection");
                }
                Some(Closed { error: error.clone(), pause, until: Instant::now() + pause })
            }
        };
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down() -> PgError {
        PgError::Connection { reason: "down".to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn tries_are_spaced_while_the_server_is_down() {
        let (door, began) = (Door::new(), Instant::now());
        for expected in [0, 100, 300, 700, 1500, 2500, 3500] {
            assert_eq!(door.enter(true, async || Err::<(), _>(down())).await, Err(down()));
            assert_eq!(began.elapsed().as_millis(), expected);
        }
        // Those who cannot wait hear why, without another try.
        let impatient = door.enter(false, async || -> Result<(), _> { unreachable!() }).await;
        assert_eq!(impatient, Err(down()));
        assert_eq!(door.enter(true, async || Ok(())).await, Ok(()));
        assert_eq!(door.enter(false, async || Ok(())).await, Ok(()));
    }
}
