//! The requests of the last hour: a chart by version, the numbers beside it, and why requests failed.

use maud::{Markup, html};
use serde_json::Value;

use super::{
    page::Reader,
    parts::{items_of, table_of, text_of},
};

/// Size of the chart; it is scaled to the width of the page.
const WIDTH: u64 = 720;
const HEIGHT: u64 = 140;
/// Width of a minute, with the gap to the next one.
const MINUTE: u64 = 12;
const GAP: u64 = 2;
/// Colours of the style sheet; further versions begin again.
const COLOURS: usize = 6;
/// Causes that are shown.
const MAX_CAUSES: usize = 10;

/// The section of the overview.
pub(super) fn section(reader: &Reader, traffic: &Value) -> Markup {
    let versions = items_of(traffic, "versions");
    html! {
        section id="traffic" aria-labelledby="traffic-title" data-refresh {
            h2 id="traffic-title" { (reader.text("console_traffic")) }
            @if versions.is_empty() {
                p.empty { (reader.text("console_traffic_none")) }
            } @else {
                (chart(reader, versions))
                (numbers(reader, versions))
            }
            @if !items_of(traffic, "problems").is_empty() {
                h3 { (reader.text("console_causes")) }
                (causes(reader, traffic))
            }
        }
    }
}

/// The requests of a version in each minute.
fn minutes(version: &Value) -> Vec<u64> {
    let rows = ["answered", "rejected", "failed"].map(|row| items_of(version, row));
    let number = |value: Option<&Value>| value.and_then(Value::as_u64).unwrap_or_default();
    let minutes = 0..rows[0].len();
    minutes
        .map(|minute| rows.iter().map(|row| number(row.get(minute))).sum())
        .collect()
}

fn sum(version: &Value, row: &str) -> u64 {
    items_of(version, row)
        .iter()
        .filter_map(Value::as_u64)
        .sum()
}

fn name(reader: &Reader, version: &Value) -> String {
    match &version["version"] {
        Value::Null => reader.text("console_no_version"),
        _ => text_of(version, "version"),
    }
}

/// A bar for each minute, with the versions on top of each other.
fn chart(reader: &Reader, versions: &[Value]) -> Markup {
    let rows: Vec<Vec<u64>> = versions.iter().map(minutes).collect();
    let length = rows.iter().map(Vec::len).max().unwrap_or_default();
    let in_minute = |minute: usize| rows.iter().filter_map(|row| row.get(minute)).sum::<u64>();
    let most = (0..length).map(in_minute).max().unwrap_or_default().max(1);
    let mut below = vec![0; length];
    let paths: Vec<String> = rows.iter().map(|row| bars(row, &mut below, most)).collect();
    let most = most.to_string();
    let label = reader.tell("console_traffic_most", &[("requests", &most)]);
    html! {
        figure.chart {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(label) preserveAspectRatio="none" {
                @for (index, path) in paths.iter().enumerate() {
                    path class={ "series-" (index % COLOURS) } d=(path) {}
                }
            }
            figcaption { span { (reader.text("console_traffic_begin")) } span { (label) } span { (reader.text("console_traffic_end")) } }
        }
    }
}

/// The bars of a version, on top of those of the versions before it.
fn bars(row: &[u64], below: &mut [u64], most: u64) -> String {
    let mut path = String::new();
    for (minute, (count, below)) in (0_u64..).zip(row.iter().zip(below)) {
        if *count == 0 {
            continue;
        }
        let bottom = HEIGHT - *below * HEIGHT / most;
        *below += count;
        // A request among very many is seen, too.
        let top = (HEIGHT - *below * HEIGHT / most).min(bottom.saturating_sub(1));
        let (x, width, height) = (minute * MINUTE, MINUTE - GAP, bottom - top);
        path += &format!("M{x} {bottom}h{width}v-{height}h-{width}z");
    }
    path
}

/// The numbers of the hour, which are also the chart's legend.
fn numbers(reader: &Reader, versions: &[Value]) -> Markup {
    table_of(
        reader,
        &[
            "console_version",
            "console_answered",
            "console_rejected",
            "console_failed",
        ],
        &html! {
            @for (index, version) in versions.iter().enumerate() { tr {
                th scope="row" { span class={ "swatch series-" (index % COLOURS) } {} " " (name(reader, version)) }
                @for row in ["answered", "rejected", "failed"] { td.number { (sum(version, row)) } }
            } }
        },
    )
}

fn causes(reader: &Reader, traffic: &Value) -> Markup {
    let heads = ["console_problem_code", "console_requests"];
    let problems = items_of(traffic, "problems").iter();
    table_of(
        reader,
        &heads,
        &html! {
            @for problem in problems.take(MAX_CAUSES) { tr {
                th scope="row" { code { (text_of(problem, "code")) } }
                td.number { (text_of(problem, "requests")) }
            } }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_on_those_of_the_versions_before_and_none_is_invisible() {
        let mut below = vec![0; 3];
        let first = bars(&[50, 0, 100], &mut below, 100);
        assert_eq!(first, "M0 140h10v-70h-10zM24 140h10v-140h-10z");
        let second = bars(&[50, 1, 0], &mut below, 100);
        assert_eq!(second, "M0 70h10v-70h-10zM12 140h10v-1h-10z");
        let few = bars(&[1], &mut [0], 1_000_000);
        assert_eq!(few, "M0 140h10v-1h-10z");
    }
}
