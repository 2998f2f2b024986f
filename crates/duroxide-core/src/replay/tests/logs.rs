//! What a turn logs, as text.

use std::cell::RefCell;
use std::fmt::{Debug, Write as _};
use std::sync::Once;

use ::tracing::field::{Field, Visit};
use ::tracing::span::{Attributes, Id, Record};
use ::tracing::{Event, Metadata, Subscriber};

thread_local! {
    /// The records of this thread, while a test captures them.
    static RECORDS: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `f` and returns its log records, one line each: level, target, message, fields.
pub(super) fn captured(f: impl FnOnce()) -> String {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        ::tracing::subscriber::set_global_default(Capture).expect("the only subscriber");
        // A test that logged a moment ago may have found no subscriber, and remembered it.
        ::tracing::callsite::rebuild_interest_cache();
    });
    RECORDS.set(Some(String::new()));
    f();
    RECORDS.take().unwrap_or_default()
}

struct Capture;

impl Subscriber for Capture {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let (level, target) = (event.metadata().level(), event.metadata().target());
        let Fields { message, others } = fields;
        RECORDS.with_borrow_mut(|records| {
            if let Some(records) = records {
                writeln!(records, "{level} {target}: {message}{others}").unwrap();
            }
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Fields {
    message: String,
    others: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => write!(self.others, " {name}={value:?}").unwrap(),
        }
    }
}
