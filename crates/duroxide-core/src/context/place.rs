//! Where code has got to: its last scheduling call, to be read from another thread.

use std::cell::RefCell;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

thread_local! {
    static WATCHED: RefCell<Option<Arc<Place>>> = const { RefCell::new(None) };
}

/// The last scheduling call of code that runs under [`watched`].
#[derive(Debug, Default)]
pub struct Place(Mutex<Option<&'static Location<'static>>>);

impl Place {
    /// File and line of the call; `None` if there was none yet.
    pub fn last(&self) -> Option<&'static Location<'static>> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs code on this thread and keeps a place up to date meanwhile, which is none at first.
pub fn watched<T>(place: Arc<Place>, code: impl FnOnce() -> T) -> T {
    *place.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    let _before = Before(WATCHED.replace(Some(place)));
    code()
}

/// Notes a scheduling call.
pub(super) fn note(location: &'static Location<'static>) {
    WATCHED.with_borrow(|watched| {
        if let Some(place) = watched {
            *place.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(location);
        }
    });
}

/// What was watched before; it is again when this is dropped.
struct Before(Option<Arc<Place>>);

impl Drop for Before {
    fn drop(&mut self) {
        WATCHED.set(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_call_of_the_innermost_code_counts() {
        let (outer, inner) = (Arc::new(Place::default()), Arc::new(Place::default()));
        watched(Arc::clone(&outer), || {
            let here = Location::caller();
            note(here);
            let panicked = std::panic::catch_unwind(|| {
                watched(Arc::clone(&inner), || assert!(inner.last().is_some(), "none yet"));
            });
            assert!(panicked.is_err());
            assert_eq!((outer.last(), inner.last()), (Some(here), None));
            watched(Arc::clone(&inner), || note(Location::caller()));
        });
        let last = inner.last();
        note(Location::caller());
        assert!(last.is_some() && inner.last() == last);
    }
}
