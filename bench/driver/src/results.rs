//! Everything that was measured, and the files it goes to.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::args::Args;
use crate::plan::{Better, Case, Figure};
use crate::summary::Summary;
use crate::variant::{REFERENCE, TUNED, Variant};
use crate::{Failure, chart, machine, markdown, targets};

/// Where other processes used more of the machine than this, figures are rough.
pub(crate) const OTHERS_PERCENT: f64 = 5.0;

/// A whole run of the benchmark.
pub(crate) struct Results {
    pub(crate) machine: String,
    pub(crate) store: String,
    pub(crate) full: bool,
    pub(crate) rounds: u32,
    pub(crate) cases: Vec<CaseResults>,
}

/// What all variants did in one case.
pub(crate) struct CaseResults {
    pub(crate) case: Case,
    pub(crate) variants: Vec<(Variant, Summary)>,
    /// The machine's limit at the time; empty if the store has no files.
    pub(crate) raw: Summary,
}

impl Results {
    pub(crate) fn new(args: &Args) -> Self {
        Self {
            machine: machine::describe(),
            store: args.store.clone(),
            full: args.full,
            rounds: args.rounds,
            cases: Vec::new(),
        }
    }

    /// Median of a variant's figure in a case.
    pub(crate) fn median(&self, case: &str, variant: &str, figure: &str) -> Option<f64> {
        self.cases.iter().find(|results| results.case.name == case)?.median(variant, figure)
    }

    /// A figure of the raw limit, over the whole time.
    pub(crate) fn raw(&self, figure: &str) -> Option<f64> {
        let mut all: Vec<f64> =
            self.cases.iter().filter_map(|case| case.raw.median(figure)).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    }

    /// Writes the table, the data and the chart.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Failure> {
        fs::create_dir_all(folder)?;
        let file = |ending: &str| folder.join(format!("{}.{ending}", self.store));
        fs::write(file("md"), markdown::page(self))?;
        fs::write(file("json"), format!("{:#}\n", self.to_json()))?;
        fs::write(file("svg"), chart::svg(self))?;
        Ok(())
    }

    fn to_json(&self) -> Value {
        let targets = targets::check(self).into_iter().map(
            |verdict| json!({ "target": verdict.text, "value": verdict.value, "met": verdict.met, "rough": verdict.rough }),
        );
        json!({
            "machine": self.machine,
            "store": self.store,
            "mode": if self.full { "full" } else { "quick" },
            "rounds": self.rounds,
            "cases": self.cases.iter().map(CaseResults::to_json).collect::<Vec<_>>(),
            "targets": targets.collect::<Vec<_>>(),
        })
    }
}

impl CaseResults {
    pub(crate) fn new(case: &Case, variants: &[Variant]) -> Self {
        let variants = variants.iter().map(|variant| (variant.clone(), Summary::default()));
        Self { case: *case, variants: variants.collect(), raw: Summary::default() }
    }

    pub(crate) fn summary(&self, variant: &str) -> Option<&Summary> {
        let found = self.variants.iter().find(|(candidate, _)| candidate.name == variant);
        found.map(|(_, summary)| summary)
    }

    pub(crate) fn median(&self, variant: &str, figure: &str) -> Option<f64> {
        self.summary(variant)?.median(figure)
    }

    /// How many times better one variant is than another.
    pub(crate) fn times(&self, figure: Figure, this: &str, other: &str) -> Option<f64> {
        let (this, other) = (self.median(this, figure.key)?, self.median(other, figure.key)?);
        let (above, below) = match figure.better {
            Better::Higher => (this, other),
            Better::Lower => (other, this),
        };
        (above > 0.0 && below > 0.0).then(|| above / below)
    }

    /// The better of the reference's two variants. Tuning is done on short runs, so its winner can
    /// lose.
    pub(crate) fn best_reference(&self, figure: Figure) -> Option<&'static str> {
        let tuned_is_worse = self.times(figure, TUNED, REFERENCE).is_some_and(|times| times < 1.0);
        let has = |variant| self.median(variant, figure.key).is_some();
        match (has(TUNED), has(REFERENCE)) {
            (true, _) if !tuned_is_worse => Some(TUNED),
            (_, true) => Some(REFERENCE),
            _ => None,
        }
    }

    /// The largest share of the machine that other processes used meanwhile, in percent.
    pub(crate) fn others_percent(&self) -> f64 {
        let each = self.variants.iter().map(|(_, summary)| summary.max("others_percent"));
        each.fold(0.0, f64::max)
    }

    fn to_json(&self) -> Value {
        let variants = self.variants.iter().map(|(variant, summary)| {
            json!({
                "variant": variant.name,
                "settings": variant.settings.to_json(),
                "results": summary.to_json(),
            })
        });
        json!({
            "case": self.case.name,
            "raw": self.raw.to_json(),
            "variants": variants.collect::<Vec<_>>(),
        })
    }
}
