//! The requests of the last hour: a chart by version, the numbers beside it, and why requests failed.

use maud::{Markup, html};

use super::{links::segment, page::Reader, parts::table_of};
use crate::{
    administration::printable::printable,
    reports::traffic::{Traffic, VersionTraffic},
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
pub(super) fn section(reader: &Reader, traffic: &Traffic) -> Markup {
    let versions = &*traffic.versions;
    html! {
        section id="traffic" aria-labelledby="traffic-title" data-refresh {
            h2 id="traffic-title" { (reader.text("console_traffic")) }
            @if versions.is_empty() {
                p.empty { (reader.text("console_traffic_none")) }
            } @else {
                (chart(reader, versions))
                (numbers(reader, versions))
            }
            @if !traffic.problems.is_empty() {
                h3 { (reader.text("console_causes")) }
                (causes(reader, traffic))
            }
            @if !traffic.rejected_apps.is_empty() {
                h3 { (reader.text("console_rejected_apps")) }
                (table_of(reader, &["console_app", "console_requests"], &html! {
                    @for app in &traffic.rejected_apps { tr {
                        th scope="row" { a href={ "/apps/" (segment(&app.app)) } { code { (printable(&app.app)) } } }
                        td.number { (app.requests) }
                    } }
                }))
            }
        }
    }
}

/// The requests of a version in each minute.
fn minutes(version: &VersionTraffic) -> Vec<u64> {
    let [answered, rejected, failed] = rows(version);
    let minutes = answered.iter().zip(rejected).zip(failed);
    minutes
        .map(|((answered, rejected), failed)| answered + rejected + failed)
        .collect()
}

const fn rows(version: &VersionTraffic) -> [&Vec<u64>; 3] {
    [&version.answered, &version.rejected, &version.failed]
}

fn name(reader: &Reader, version: &VersionTraffic) -> String {
    let name = version.version.as_deref();
    name.map_or_else(|| reader.text("console_no_version"), str::to_owned)
}

/// A bar for each minute, with the versions on top of each other.
fn chart(reader: &Reader, versions: &[VersionTraffic]) -> Markup {
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

/// The bars of a version, stacked on the bars of the versions before it.
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
fn numbers(reader: &Reader, versions: &[VersionTraffic]) -> Markup {
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
                @for row in rows(version) { td.number { (row.iter().sum::<u64>()) } }
            } }
        },
    )
}

fn causes(reader: &Reader, traffic: &Traffic) -> Markup {
    let heads = ["console_problem", "console_requests"];
    table_of(
        reader,
        &heads,
        &html! {
            @for problem in traffic.problems.iter().take(MAX_CAUSES) { tr {
                th scope="row" { (reader.title(&problem.code)) " " code.quiet { (problem.code) } }
                td.number { (problem.requests) }
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
