//! Who takes part: a side and its settings.

use serde_json::{Value, json};

use crate::Failure;

/// A side with settings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Variant {
    /// How it is called in results.
    pub(crate) name: String,
    pub(crate) side: Side,
    pub(crate) settings: Settings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Ours,
    Reference,
}

/// Settings that differ from a side's defaults, by their option names without dashes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Settings(pub(crate) Vec<(String, String)>);

/// Name of the variant that is ours with its defaults.
pub(crate) const OURS: &str = "ours";
/// Name of the variant that is the reference with its defaults.
pub(crate) const REFERENCE: &str = "reference";
/// Name of the variant that is the reference with its best settings.
pub(crate) const TUNED: &str = "reference, tuned";
/// Name of the variant that promises as much as the reference does.
pub(crate) const OURS_WITHOUT_FSYNC: &str = "ours, no fsync";

impl Variant {
    pub(crate) fn ours() -> Self {
        Self { name: OURS.to_owned(), side: Side::Ours, settings: Settings::default() }
    }

    pub(crate) fn ours_without_fsync() -> Self {
        let settings = Settings(vec![("durability".to_owned(), "process".to_owned())]);
        Self { name: OURS_WITHOUT_FSYNC.to_owned(), side: Side::Ours, settings }
    }

    pub(crate) fn reference() -> Self {
        let settings = Settings::default();
        Self { name: REFERENCE.to_owned(), side: Side::Reference, settings }
    }

    pub(crate) fn tuned(settings: Settings) -> Self {
        Self { name: TUNED.to_owned(), side: Side::Reference, settings }
    }

    /// Reads `ours:concurrency=32,poll-ms=1`.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let (side, rest) = text.split_once(':').unwrap_or((text, ""));
        let side = match side {
            "ours" => Side::Ours,
            "reference" => Side::Reference,
            _ => return Err(format!("--variant {text}: which side?").into()),
        };
        Ok(Self { name: text.replacen(':', ", ", 1), side, settings: Settings::parse(rest)? })
    }
}

impl Side {
    /// Name of its program.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Ours => "bench-ours",
            Self::Reference => "bench-reference",
        }
    }
}

impl Settings {
    /// Reads `concurrency=32,poll-ms=1`.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let mut pairs = Vec::new();
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| format!("{pair}: no value"))?;
            pairs.push((name.to_owned(), value.to_owned()));
        }
        Ok(Self(pairs))
    }

    /// The form that `parse` reads.
    pub(crate) fn text(&self) -> String {
        let pairs: Vec<_> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join(",")
    }

    /// The value of a setting.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// As options of a side's program.
    pub(crate) fn options(&self) -> impl Iterator<Item = String> {
        self.0.iter().flat_map(|(name, value)| [format!("--{name}"), value.clone()])
    }

    pub(crate) fn to_json(&self) -> Value {
        json!(self.text())
    }
}
