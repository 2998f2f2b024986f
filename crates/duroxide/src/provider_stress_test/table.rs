//! Results side by side.

use super::core::StressTestResult;

const HEADINGS: [&str; 9] =
    ["store", "test", "completed", "failed", "success", "orch/s", "activity/s", "latency", "time"];
/// Columns of words; the others are numbers and stand to the right.
const WORD_COLUMNS: usize = 2;

/// A table with one line a result, and what failed below it.
pub(super) fn table(results: &[(String, String, StressTestResult)]) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(results.iter().map(|(store, test, result)| cells(store, test, result)));
    let widths: [usize; HEADINGS.len()] = std::array::from_fn(|column| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
    });
    let mut lines: Vec<String> = rows.iter().map(|row| line(row, &widths)).collect();
    lines.insert(1, line(&widths.map(|width| "-".repeat(width)), &widths));
    lines.extend(results.iter().filter_map(|(store, test, result)| failures(store, test, result)));
    lines.join("\n")
}

fn cells(store: &str, test: &str, result: &StressTestResult) -> [String; HEADINGS.len()] {
    [
        store.to_owned(),
        test.to_owned(),
        format!("{}/{}", result.completed, result.launched),
        result.failed.to_string(),
        format!("{:.2} %", result.success_rate()),
        format!("{:.1}", result.orch_throughput),
        format!("{:.1}", result.activity_throughput),
        format!("{:.1} ms", result.avg_latency_ms),
        format!("{:.2} s", result.total_time.as_secs_f64()),
    ]
}

fn line(cells: &[String; HEADINGS.len()], widths: &[usize; HEADINGS.len()]) -> String {
    let padded = cells.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
        if column < WORD_COLUMNS { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    });
    padded.collect::<Vec<_>>().join("  ")
}

fn failures(store: &str, test: &str, result: &StressTestResult) -> Option<String> {
    let StressTestResult { failed_infrastructure, failed_configuration, .. } = result;
    let failed_application = result.failed_application;
    (result.failed > 0).then(|| {
        format!(
            "failed in {store}, {test}: {failed_infrastructure} infrastructure, \
             {failed_configuration} configuration, {failed_application} application"
        )
    })
}
