//! On the page of versions: which version serves another one's clients, and what differs between a version and its shadow.

use maud::{Markup, html};

use super::{
    failure::Failure,
    page::Reader,
    parts::{state, table_of},
    visitor::Visitor,
};
use crate::{
    administration::printable::printable,
    operations::versions::{self, DiffInput},
    reports::{
        shadows::{Diff, PathDiff, RouteDiff},
        versions::ListedVersion,
    },
};

/// Paths that the page names for each route.
const MAX_SHOWN: usize = 20;

/// What the page says of a version's bridge and shadow.
pub(super) struct Shadows {
    /// Pairs without changes, and those with the present ones; `None` where there is no report.
    diffs: [Option<Diff>; 2],
}

impl Shadows {
    /// Reads the reports of a version.
    pub(super) async fn read(visitor: &Visitor, version: &ListedVersion) -> Result<Self, Failure> {
        let mut diffs = [None, None];
        if version.shadow.is_some() {
            for (diff, changed) in diffs.iter_mut().zip([false, true]) {
                let input = DiffInput {
                    version: version.version.clone(),
                    since: None,
                    changed: Some(changed),
                };
                // Without changes there is no report of them; and a busy API is no reason to show nothing.
                match visitor.run(&versions::DIFF, (), input).await {
                    Ok(mut report) => {
                        report.place = None;
                        *diff = Some(report);
                    }
                    Err(failure) => drop(failure.of_input()?),
                }
            }
        }
        Ok(Self { diffs })
    }

    /// The part of the version's card.
    pub(super) fn show(&self, reader: &Reader, version: &ListedVersion) -> Markup {
        html! {
            @if let Some(bridge) = &version.bridge {
                p { (reader.tell("console_bridge_to", &[("to", bridge)])) }
            }
            @for (diff, text) in self.diffs.iter().zip(["console_shadow_of", "console_shadow_changed"]) {
                @if let Some(diff) = diff { (report(reader, diff, text)) }
            }
        }
    }
}

/// One report: a sentence, and the paths that differ.
fn report(reader: &Reader, diff: &Diff, text: &str) -> Markup {
    let apps = &diff.applications;
    let proof = ["unproven", "proven"][usize::from(diff.is_proof())];
    let args = [
        ("to", &*diff.to),
        ("pairs", &diff.pairs.to_string()),
        ("paths", &diff.differing_paths.to_string()),
        ("applications", &apps.differing.len().to_string()),
        ("all", &apps.users.max(apps.compared as u64).to_string()),
    ];
    html! {
        p { (reader.tell(text, &args)) " " (state(reader, "proof", proof)) }
        @if !diff.unseen.is_empty() {
            p.quiet { (reader.text("console_unseen")) ": " code { (diff.unseen.join(", ")) } }
        }
        @for uncovered in diff.coverage.iter().flat_map(|coverage| &coverage.uncovered).take(MAX_SHOWN) {
            p.quiet { (reader.text("console_uncovered")) ": " code { (uncovered) } }
        }
        @for named in diff.coverage.iter().flat_map(|coverage| &coverage.unproven) {
            p.quiet { (reader.text("console_unproven")) ": " code { (named.request) } " " (printable(&named.reason)) }
        }
        @for route in diff.routes.iter().filter(|route| !route.differences.is_empty()) {
            (route_details(reader, route))
        }
    }
}

fn route_details(reader: &Reader, route: &RouteDiff) -> Markup {
    html! {
        details {
            summary { (printable(&route.route)) }
            @for rename in &route.renames {
                p { code { (printable(&rename.from)) " → " (printable(&rename.to)) } " " (rename.equal) "/" (rename.of) }
            }
            (table_of(reader, &["console_path", "console_here", "console_there", "console_pairs"], &html! {
                @for difference in route.differences.iter().take(MAX_SHOWN) { tr {
                    th scope="row" { code { (printable(&difference.path)) } }
                    @for side in difference.shapes.clone().unwrap_or_default() { td { (side) } }
                    td.number { (pairs(difference)) }
                } }
            }))
        }
    }
}

/// In how many pairs it differs, at most: one pair can do so in several ways.
fn pairs(difference: &PathDiff) -> u64 {
    let PathDiff { missing, extra, .. } = difference;
    (*missing)
        .max(*extra)
        .max(difference.other_type)
        .max(difference.value)
}
