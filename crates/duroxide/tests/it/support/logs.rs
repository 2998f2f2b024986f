//! What is logged while somebody listens. The listener hears its own thread only, so it is for
//! tests on a current-thread runtime, which is tokio's default for tests.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// One log record; field values in display form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub level: Level,
    pub target: String,
    pub message: String,
    pub fields: BTreeMap<String, String>,
}

impl Record {
    /// A field that must be there.
    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).unwrap_or_else(|| panic!("no field {name} in {self:?}"))
    }

    /// The names of all fields.
    pub fn field_names(&self) -> Vec<&str> {
        self.fields.keys().map(String::as_str).collect()
    }
}

/// Hears everything this thread logs, from debug up, until dropped.
pub struct Listener {
    records: Arc<Mutex<Vec<Record>>>,
    _guard: DefaultGuard,
}

/// Begins to listen.
pub fn listen() -> Listener {
    let records = Arc::<Mutex<Vec<Record>>>::default();
    let layer = Recorder(Arc::clone(&records));
    let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    Listener { records, _guard: guard }
}

impl Listener {
    /// All records so far.
    pub fn records(&self) -> Vec<Record> {
        self.records.lock().unwrap().clone()
    }

    /// The records whose message contains a text.
    pub fn saying(&self, text: &str) -> Vec<Record> {
        self.records().into_iter().filter(|record| record.message.contains(text)).collect()
    }

    /// Asks from elsewhere whether a message containing a text has been logged.
    pub fn ear(&self) -> impl Fn(&str) -> bool + Clone + Send + Sync + 'static {
        let records = Arc::clone(&self.records);
        move |text| records.lock().unwrap().iter().any(|record| record.message.contains(text))
    }

    /// The one record whose message contains a text.
    pub fn one(&self, text: &str) -> Record {
        let mut found = self.saying(text);
        assert_eq!(found.len(), 1, "{text}: {found:#?}");
        found.remove(0)
    }
}

struct Recorder(Arc<Mutex<Vec<Record>>>);

impl<S: Subscriber> Layer<S> for Recorder {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let message = fields.0.remove("message").unwrap_or_default();
        self.0.lock().unwrap().push(Record {
            level: *event.metadata().level(),
            target: event.metadata().target().to_owned(),
            message,
            fields: fields.0,
        });
    }
}

#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}
