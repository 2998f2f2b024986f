//! Panics of user code, caught where they happen.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use duroxide_core::user_code::guarded;

use crate::runtime::observability::targets;

/// Runs a future; its panic text if it panics. What its destructors throw, now or when this is
/// dropped half-way, is logged and goes no further.
pub(crate) async fn catch_panic<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = pin!(Some(future));
    let mut running = Running(future.as_mut());
    poll_fn(|cx| {
        let Some(future) = running.0.as_mut().as_pin_mut() else { return Poll::Pending };
        match guarded(|| future.poll(cx)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(text) => Poll::Ready(Err(text.unwrap_or_else(|| "unknown reason".to_owned()))),
        }
    })
    .await
}

/// A future whose destructors are guarded.
struct Running<'a, F>(Pin<&'a mut Option<F>>);

impl<F> Drop for Running<'_, F> {
    fn drop(&mut self) {
        if let Err(panic) = guarded(|| self.0.set(None)) {
            let panic = panic.as_deref().unwrap_or("unknown reason");
            tracing::error!(target: targets::RUNTIME, %panic, "a destructor panicked; ignored");
        }
    }
}
