//! Running the user's code: whatever panic it raises ends here.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs user code. If it panics, the text of the panic, where it has one.
///
/// The payload of a panic is user code as well: it is dropped in here, and what its destructor throws
/// in turn is not looked at.
pub fn guarded<T>(code: impl FnOnce() -> T) -> Result<T, Option<String>> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| {
        let text = payload
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        if let Err(thrown) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(thrown);
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::panic_any(Bomb);
        }
    }

    #[test]
    fn r3_74_whatever_is_thrown_is_caught() {
        assert_eq!(guarded(|| 7), Ok(7));
        assert_eq!(guarded(|| panic!("out of cheese")), Err::<(), _>(Some("out of cheese".into())));
        assert_eq!(guarded(|| panic!("{}", 7)), Err::<(), _>(Some("7".into())));
        assert_eq!(guarded(|| std::panic::panic_any(7)), Err::<(), _>(None));
        // A payload whose destructor throws another such payload, and so on.
        assert_eq!(guarded(|| std::panic::panic_any(Bomb)), Err::<(), _>(None));
    }
}
