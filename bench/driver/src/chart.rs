//! A bar chart: how many times better ours is, workload by workload, on a logarithmic scale.

use std::fmt::Write;

use crate::markdown::number;
use crate::results::Results;
use crate::variant::{OURS, REFERENCE, TUNED};

const LABELS: f64 = 250.0;
const WIDTH: f64 = 900.0;
const TOP: f64 = 70.0;
const ROW: f64 = 40.0;
const BAR: f64 = 14.0;
const COLOURS: [(&str, &str, &str); 2] =
    [(TUNED, "tuned", "#2563eb"), (REFERENCE, "with its defaults", "#93c5fd")];

/// The chart as an SVG file.
pub(crate) fn svg(results: &Results) -> String {
    let rows = rows(results);
    let largest = rows.iter().flat_map(|row| row.times).flatten().fold(10.0, f64::max);
    let decades = largest.log10().ceil().max(1.0);
    let height = TOP + rows.len() as f64 * ROW + 20.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"26\" font-size=\"16\" font-weight=\"bold\">Times the reference, {}</text>\n",
        results.store,
    );
    legend(&mut svg);
    grid(&mut svg, decades, height);
    for (index, row) in rows.iter().enumerate() {
        let y = TOP + index as f64 * ROW;
        draw(&mut svg, row, y, decades);
    }
    svg + "</svg>\n"
}

struct Row {
    title: String,
    /// In the order of `COLOURS`.
    times: [Option<f64>; 2],
}

fn rows(results: &Results) -> Vec<Row> {
    let rows = results.cases.iter().filter_map(|case| {
        let figure = *case.case.figures.first()?;
        let times = COLOURS.map(|(variant, ..)| case.times(figure, OURS, variant));
        times.iter().any(Option::is_some).then(|| Row { title: case.case.title.to_owned(), times })
    });
    rows.collect()
}

fn legend(svg: &mut String) {
    for (index, (_, words, colour)) in COLOURS.iter().enumerate() {
        let x = LABELS + index as f64 * 170.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"36\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"47\">reference {words}</text>",
            x + 18.0,
        );
    }
}

fn grid(svg: &mut String, decades: f64, height: f64) {
    let mut decade = 0.0;
    while decade <= decades {
        let x = place(10_f64.powf(decade), decades);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{:.0}\" x2=\"{x:.1}\" y2=\"{:.0}\" stroke=\"#d4d4d8\"/>\
             <text x=\"{x:.1}\" y=\"{:.0}\" fill=\"#71717a\" text-anchor=\"middle\" \
             font-size=\"11\">{}x</text>",
            TOP - 4.0,
            height - 18.0,
            height - 5.0,
            10_f64.powf(decade),
        );
        decade += 1.0;
    }
}

fn draw(svg: &mut String, row: &Row, y: f64, decades: f64) {
    let title = row.title.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{:.0}\" text-anchor=\"end\">{title}</text>",
        LABELS - 12.0,
        y + BAR + 5.0,
    );
    for (index, (times, (_, _, colour))) in row.times.iter().zip(COLOURS).enumerate() {
        let Some(times) = times else { continue };
        let top = y + index as f64 * (BAR + 1.0);
        // Where ours is slower the bar is a sliver; the number says it.
        let width = (place(*times, decades) - LABELS).max(2.0);
        let _ = writeln!(
            svg,
            "<rect x=\"{LABELS}\" y=\"{top:.0}\" width=\"{width:.1}\" height=\"{BAR}\" \
             fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{:.0}\" font-size=\"11\">{}x</text>",
            LABELS + width + 5.0,
            top + 11.0,
            number(Some(*times)),
        );
    }
}

fn place(times: f64, decades: f64) -> f64 {
    LABELS + times.max(1.0).log10() / decades * (WIDTH - LABELS - 70.0)
}
