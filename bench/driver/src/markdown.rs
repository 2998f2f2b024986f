//! The results as a page of tables.

use std::fmt::Write;

use crate::plan::Figure;
use crate::results::{CaseResults, OTHERS_PERCENT, Results};
use crate::summary::Summary;
use crate::targets;
use crate::variant::{OURS, OURS_WITHOUT_FSYNC, REFERENCE, TUNED};

/// One line per figure of a case, for those who watch.
pub(crate) fn progress(results: &CaseResults) -> String {
    let mut lines = Vec::new();
    for figure in results.case.figures {
        let each = results.variants.iter().map(|(variant, summary)| {
            format!("{} {}", variant.name, number(summary.median(figure.key)))
        });
        let each: Vec<_> = each.collect();
        lines.push(format!("{}: {} [{}]", results.case.title, each.join("; "), figure.unit));
    }
    lines.join("\n")
}

/// The whole page.
pub(crate) fn page(results: &Results) -> String {
    let mut page = String::new();
    let mode = if results.full { "full" } else { "quick" };
    let rounds = results.rounds;
    let machine = &results.machine;
    let _ = writeln!(page, "# Benchmark, {} ({mode}; medians of {rounds})\n", results.store);
    let _ = writeln!(page, "Measured on {machine}. {}\n", raw_line(results));
    page += &figures(results);
    page += &extra_variants(results);
    page += &resources(results);
    page += &server(results);
    page += &verdicts(results);
    page += &notes(results);
    page
}

fn raw_line(results: &Results) -> String {
    let raw = |name| number(results.raw(name));
    if results.raw("commit_p50_ms").is_none() {
        return "The store is in memory: no limit of a disk to compare with.".to_owned();
    }
    if let Some(rate) = results.raw("pgbench_per_second") {
        return format!(
            "A one-row commit with fsync by one client takes {} ms here; pgbench -N with 32 \
             clients makes {} transactions/s.",
            raw("commit_p50_ms"),
            number(Some(rate)),
        );
    }
    format!(
        "A one-row commit with fsync takes {} ms here (without: {} ms); a bare loop writes the \
         rows of {} hello/s, 100 to a commit, with fsync.",
        raw("commit_p50_ms"),
        raw("commit_without_fsync_p50_ms"),
        raw("instances_per_second"),
    )
}

fn figures(results: &Results) -> String {
    let mut rows = vec![row(&[
        "workload",
        "figure",
        "ours",
        "ours, no fsync",
        "reference",
        "reference, tuned",
        "times reference",
        "times tuned",
        "in raw limits",
        "tuned with",
    ])];
    rows.push(row(&["---", "---", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "---"]));
    for case in &results.cases {
        let measured = |figure: &&Figure| {
            case.variants.iter().any(|(_, summary)| summary.median(figure.key).is_some())
        };
        for figure in case.case.figures.iter().filter(measured) {
            let median = |variant| number(case.median(variant, figure.key));
            let times = |other| match case.times(*figure, OURS, other) {
                Some(times) => format!("**{}x**", number(Some(times))),
                None => "-".to_owned(),
            };
            let tuned = case.variants.iter().find(|(variant, _)| variant.name == TUNED);
            let tuned =
                tuned.map_or("-".to_owned(), |(variant, _)| match variant.settings.text() {
                    text if text.is_empty() => "defaults".to_owned(),
                    text => text,
                });
            rows.push(row(&[
                case.case.title,
                figure.unit,
                &median(OURS),
                &median(OURS_WITHOUT_FSYNC),
                &median(REFERENCE),
                &median(TUNED),
                &times(REFERENCE),
                &times(TUNED),
                &in_raw_limits(case, figure.unit, figure.key),
                &tuned,
            ]));
        }
    }
    format!("{}\n", rows.concat())
}

/// Latencies as a number of raw commits, the throughput of hello as a share of the bare loop.
fn in_raw_limits(case: &CaseResults, unit: &str, key: &str) -> String {
    let Some(ours) = case.median(OURS, key) else { return "-".to_owned() };
    if case.case.name == "w1-throughput" {
        if let Some(limit) = case.raw.median("pgbench_per_second") {
            return format!("{} % of pgbench", number(Some(ours / limit * 100.0)));
        }
        let share = case.raw.median("instances_per_second").map(|limit| ours / limit * 100.0);
        return share.map_or("-".to_owned(), |share| format!("{} %", number(Some(share))));
    }
    match case.raw.median("commit_p50_ms") {
        Some(commit) if unit.starts_with("ms") && !unit.contains("late") => {
            format!("{} commits", number(Some(ours / commit)))
        }
        _ => "-".to_owned(),
    }
}

/// Variants asked for on the command line.
fn extra_variants(results: &Results) -> String {
    let known = [OURS, OURS_WITHOUT_FSYNC, REFERENCE, TUNED];
    let mut lines = String::new();
    for case in &results.cases {
        let extra =
            case.variants.iter().filter(|(variant, _)| !known.contains(&variant.name.as_str()));
        for (variant, summary) in extra {
            for figure in case.case.figures {
                let value = number(summary.median(figure.key));
                let title = case.case.title;
                let _ = writeln!(lines, "- {title}, {}: {value} {}", variant.name, figure.unit);
            }
        }
    }
    if lines.is_empty() { lines } else { format!("## Other variants\n\n{lines}\n") }
}

fn resources(results: &Results) -> String {
    let mut table = String::from("## What it costs\n\n");
    table += &row(&[
        "workload",
        "CPU ms per instance, ours",
        "tuned",
        "peak MiB, ours",
        "tuned",
        "bytes stored per instance, ours",
        "tuned",
    ]);
    table += &row(&["---", "--:", "--:", "--:", "--:", "--:", "--:"]);
    for case in &results.cases {
        let ours = case.summary(OURS);
        let reference = case.summary(TUNED).or(case.summary(REFERENCE));
        let cpu = |who: Option<&Summary>| number(who.and_then(Summary::cpu_ms_per_instance));
        let peak = |who: Option<&Summary>| {
            let bytes = who.and_then(|summary| summary.median("peak_rss_bytes"));
            number(bytes.map(|bytes| bytes / 1024.0 / 1024.0))
        };
        let stored = |who: Option<&Summary>| {
            number(who.and_then(|summary| summary.median("bytes_per_instance")))
        };
        table += &row(&[
            case.case.title,
            &cpu(ours),
            &cpu(reference),
            &peak(ours),
            &peak(reference),
            &stored(ours),
            &stored(reference),
        ]);
    }
    table + "\n"
}

/// What the database server did for it, if there is one.
fn server(results: &Results) -> String {
    if results.raw("pgbench_per_second").is_none() {
        return String::new();
    }
    let mut table = String::from("## What it costs the server\n\n");
    table += &row(&[
        "workload",
        "CPU ms per instance, ours",
        "reference",
        "tuned",
        "transactions per instance, ours",
        "reference",
        "tuned",
    ]);
    table += &row(&["---", "--:", "--:", "--:", "--:", "--:", "--:"]);
    for case in &results.cases {
        let each = |of: fn(&Summary) -> Option<f64>| {
            [OURS, REFERENCE, TUNED].map(|name| number(case.summary(name).and_then(of)))
        };
        let cpu = each(Summary::server_cpu_ms_per_instance);
        let transactions = each(Summary::transactions_per_instance);
        let cells = cpu.iter().chain(&transactions).map(String::as_str);
        let cells: Vec<&str> = std::iter::once(case.case.title).chain(cells).collect();
        table += &row(&cells);
    }
    table + "\n"
}

fn verdicts(results: &Results) -> String {
    let verdicts = targets::check(results);
    if verdicts.is_empty() {
        return String::new();
    }
    let mut table = String::from("## Targets\n\n");
    table += &row(&["target", "measured", "met"]);
    table += &row(&["---", "--:", "---"]);
    for verdict in verdicts {
        let met = if verdict.met { "yes" } else { "**no**" };
        let rough = if verdict.rough { " (rough)" } else { "" };
        table += &row(&[&verdict.text, &number(Some(verdict.value)), &format!("{met}{rough}")]);
    }
    table + "\n"
}

/// What a reader has to know about single figures.
fn notes(results: &Results) -> String {
    let mut lines = others(results);
    for (name, words) in [
        ("cut", "Cut off before the end; figures per step are of the steps that were made"),
        ("failed", "Orchestrations that failed"),
        ("unfinished", "Orchestrations that were not finished"),
        ("start_errors", "Starts that the store refused and that were tried again"),
        ("provider_errors", "Storage errors in the runtime"),
    ] {
        let mut places = Vec::new();
        for case in &results.cases {
            for (variant, summary) in &case.variants {
                let count = summary.max(name);
                let times = if name == "cut" { String::new() } else { format!(": {count}") };
                if count > 0.0 {
                    places.push(format!("{}, {}{times}", case.case.title, variant.name));
                }
            }
        }
        if !places.is_empty() {
            let _ = writeln!(lines, "- {words}: {}.", places.join("; "));
        }
    }
    for case in &results.cases {
        for (variant, summary) in &case.variants {
            for failure in summary.failures() {
                let who = format!("{}, {}", case.case.title, variant.name);
                let _ = writeln!(lines, "- {who}: a run failed: {failure}.");
            }
        }
    }
    if lines.is_empty() { lines } else { format!("## Notes\n\n{lines}") }
}

/// Where others were busy, and how busy.
fn others(results: &Results) -> String {
    let busy = results.cases.iter().map(|case| (case.case.title, case.others_percent()));
    let busy = busy.filter(|(_, share)| *share > OTHERS_PERCENT);
    let busy: Vec<_> = busy.map(|(title, share)| format!("{title} ({share:.0} %)")).collect();
    if busy.is_empty() {
        return String::new();
    }
    let busy = busy.join(", ");
    format!("- Other processes used the machine as well, so these are rough figures: {busy}.\n")
}

fn row(cells: &[&str]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// Three digits that count.
pub(crate) fn number(value: Option<f64>) -> String {
    let Some(value) = value else { return "-".to_owned() };
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        size if size >= 0.01 => format!("{value:.3}"),
        _ => format!("{value:.5}"),
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_keep_three_digits() {
        let texts = [12_345.6, 99.95, 9.876, 0.1234, 0.0].map(|value| number(Some(value)));
        assert_eq!(texts, ["12346", "100.0", "9.88", "0.123", "0"]);
        assert_eq!(number(None), "-");
    }
}
