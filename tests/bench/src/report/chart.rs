//! The chart: CPU per request, a panel for each case, a bar for each contestant.
//!
//! It has its own light background, so that it is readable on light and dark pages.

use std::fmt::Write;

use super::{Results, table::three_digits};
use crate::{case::Case, contestant::Contestant};

const WIDTH: usize = 860;
const MARGIN: usize = 20;
const HEADER: usize = 64;
const COLUMNS: usize = 2;
const GAP: usize = 24;
const PANEL: usize = (WIDTH - 2 * MARGIN - GAP) / COLUMNS;
const PANEL_TITLE: usize = 28;
const ROW: usize = 20;
const BAR: usize = 13;
/// Width of the names, left of the bars.
const NAMES: usize = 160;
/// Width of the figures, right of the bars.
const FIGURES: usize = 48;

/// Draws the chart.
pub(super) fn svg(results: &Results) -> String {
    let panels: Vec<_> = results
        .cases()
        .into_iter()
        .map(|case| (case, bars(results, case)))
        .filter(|(_, bars)| !bars.is_empty())
        .collect();
    let mut drawn = String::new();
    let mut top = HEADER;
    for row in panels.chunks(COLUMNS) {
        let max_bars = row.iter().map(|(_, bars)| bars.len()).max().unwrap_or(0);
        for (column, (case, bars)) in row.iter().enumerate() {
            let left = MARGIN + column * (PANEL + GAP);
            drawn += &panel(*case, bars, left, top);
        }
        top += PANEL_TITLE + max_bars * ROW + GAP;
    }
    let height = top;
    let machine = &results.machine;
    let about = format!(
        "One worker thread, medians of {} rounds, {} × {}, {}. * forwards without verifying.",
        results.effort.rounds,
        machine.processors,
        machine.processor,
        machine.date.split(' ').next().unwrap_or_default(),
    );
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
         aria-label=\"CPU per request of Signpost and its peers\" font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#24292f\">\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"#ffffff\" stroke=\"#d0d7de\"/>\n\
         <text x=\"{MARGIN}\" y=\"28\" font-size=\"16\" font-weight=\"600\">CPU microseconds per request (less is better)</text>\n\
         <text x=\"{MARGIN}\" y=\"47\" fill=\"#57606a\">{}</text>\n{drawn}</svg>\n",
        WIDTH - 1,
        height - 1,
        escaped(&about),
    )
}

struct Bar {
    contestant: Contestant,
    figure: f64,
    is_starred: bool,
}

fn bars(results: &Results, case: Case) -> Vec<Bar> {
    let contestants = results
        .contestants()
        .into_iter()
        .filter(|one| one.is_proxy());
    contestants
        .filter_map(|contestant| {
            Some(Bar {
                contestant,
                figure: results.cpu(contestant, case)?,
                is_starred: case.is_signed() && !contestant.verifies(),
            })
        })
        .collect()
}

fn panel(case: Case, bars: &[Bar], left: usize, top: usize) -> String {
    let title = format!("{case}: {}", case.title());
    let mut drawn = format!(
        "<text x=\"{left}\" y=\"{}\" font-weight=\"600\">{}</text>\n",
        top + 16,
        escaped(&title)
    );
    let longest = bars.iter().map(|bar| bar.figure).fold(0.0, f64::max);
    let room = (PANEL - NAMES - FIGURES) as f64;
    for (index, bar) in bars.iter().enumerate() {
        let y = top + PANEL_TITLE + index * ROW;
        let length = bar.figure / longest * room;
        let (bar_left, text_y) = (left + NAMES, y + BAR - 2);
        let weight = if bar.contestant.is_signpost() {
            " font-weight=\"600\""
        } else {
            ""
        };
        let star = if bar.is_starred { " *" } else { "" };
        let _ = writeln!(
            drawn,
            "<text x=\"{}\" y=\"{text_y}\" text-anchor=\"end\"{weight}>{}{star}</text>\
             <rect x=\"{bar_left}\" y=\"{y}\" width=\"{length:.1}\" height=\"{BAR}\" rx=\"2\" fill=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{text_y}\"{weight}>{}</text>",
            bar_left - 8,
            escaped(bar.contestant.title()),
            colour(bar.contestant),
            bar_left as f64 + length + 6.0,
            three_digits(bar.figure),
        );
    }
    drawn
}

const fn colour(contestant: Contestant) -> &'static str {
    match contestant {
        Contestant::Signpost | Contestant::SignpostTraced | Contestant::SignpostBridged => {
            "#1f6feb"
        }
        Contestant::BarePingora => "#9ec5fe",
        Contestant::NginxLua => "#2da44e",
        Contestant::NginxMap => "#aceebb",
        Contestant::HaproxyLua => "#bf8700",
        Contestant::HaproxyMap => "#f2d98b",
        Contestant::Direct => "#d0d7de",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
