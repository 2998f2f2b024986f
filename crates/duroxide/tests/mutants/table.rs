//! The table of mutants, as it is in the documentation.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use super::list::Listed;
use super::run::{Check, Verdict};

const COMMAND: &str =
    "cargo test -p duroxide --features provider-test --test mutants -- --ignored write_the_table";
/// How many checks a row names.
const NAMED: usize = 5;

/// Where the table is.
pub fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/provider-mutants.md")
}

pub fn read() -> String {
    fs::read_to_string(path()).unwrap_or_default()
}

/// How the row of a mutant begins.
pub fn row_begin(listed: &Listed) -> String {
    let Listed { name, caught_by, .. } = listed;
    format!("| `{name}` | {} | `{caught_by}`", listed.says())
}

/// The whole file.
pub fn render(checks: usize, rows: &[(&Listed, Vec<(Check, Verdict)>)]) -> String {
    let mut text = format!(
        "# Mutants of the memory provider\n\n\
         A suite that cannot fail proves nothing. Each row is the memory provider made wrong in one \
         way,\nand the checks of the validation suite that notice: first one that the test \
         `every_mutant_is_caught`\nholds to it, then others. {} mutants, {checks} checks.\n\n\
         Written by\n\n```sh\n{COMMAND}\n```\n\n\
         | Mutant | What it does wrong | Caught by |\n|---|---|---|\n",
        rows.len(),
    );
    for (listed, noticed) in rows {
        let mut others: Vec<String> = noticed
            .iter()
            .map(|((category, name), verdict)| (format!("{category}::{name}"), verdict))
            .filter(|(check, _)| *check != listed.caught_by)
            .map(|(check, verdict)| match verdict {
                Verdict::Hung => format!("`{check}` (hangs)"),
                _ => format!("`{check}`"),
            })
            .collect();
        let more = others.len().saturating_sub(NAMED - 1);
        others.truncate(NAMED - 1);
        others.extend((0 < more).then(|| format!("{more} more")));
        let others: String = others.iter().map(|other| format!(", {other}")).collect();
        writeln!(text, "{}{others} |", row_begin(listed)).unwrap();
    }
    text
}
