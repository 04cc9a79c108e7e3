//! On the page of versions: which version serves another one's clients, and what differs between a version and its shadow.

use maud::{Markup, html};
use serde_json::Value;

use super::{
    failure::Failure,
    page::Reader,
    parts::{items_of, table_of, text_of},
    visitor::Visitor,
};

/// Paths that the page names for each route.
const MAX_SHOWN: usize = 20;

/// What the page says of a version's bridge and shadow.
pub(super) struct Shadows {
    /// Pairs without changes, and those with the present ones; null where there is no report.
    diffs: [Value; 2],
}

impl Shadows {
    /// Reads the reports of a version as the API lists it.
    pub(super) async fn read(visitor: &Visitor, version: &Value) -> Result<Self, Failure> {
        let mut diffs = [Value::Null, Value::Null];
        if version["shadow"].is_string() {
            let name = text_of(version, "version");
            for (diff, changed) in diffs.iter_mut().zip(["false", "true"]) {
                let call = format!("/api/v1/versions/diff?version={name}&changed={changed}");
                // Without changes there is no report of them; and a busy API is no reason to show nothing.
                match visitor.get(&call).await {
                    Ok(report) => *diff = report,
                    Err(failure) => drop(failure.of_input()?),
                }
            }
        }
        Ok(Self { diffs })
    }

    /// The part of the version's card.
    pub(super) fn show(&self, reader: &Reader, version: &Value) -> Markup {
        html! {
            @if version["bridge"].is_string() {
                p { (reader.tell("console_bridge_to", &[("to", &text_of(version, "bridge"))])) }
            }
            @for (diff, text) in self.diffs.iter().zip(["console_shadow_of", "console_shadow_changed"]) {
                @if diff.is_object() { (report(reader, diff, text)) }
            }
        }
    }
}

/// One report: a sentence, and the paths that differ.
fn report(reader: &Reader, diff: &Value, text: &str) -> Markup {
    let apps = &diff["applications"];
    let differing = items_of(apps, "differing").len().to_string();
    let users = apps["users"].as_u64().max(apps["compared"].as_u64());
    let args = [
        ("to", &*text_of(diff, "to")),
        ("pairs", &text_of(diff, "pairs")),
        ("paths", &text_of(diff, "differing_paths")),
        ("applications", &differing),
        ("all", &users.unwrap_or_default().to_string()),
    ];
    let unseen: Vec<_> = items_of(diff, "unseen")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    html! {
        p { (reader.tell(text, &args)) }
        @if !unseen.is_empty() {
            p.quiet { (reader.text("console_unseen")) ": " code { (unseen.join(", ")) } }
        }
        @for route in items_of(diff, "routes") {
            @let differences = items_of(route, "differences");
            @if !differences.is_empty() {
                details {
                    summary { (text_of(route, "route")) }
                    @for rename in items_of(route, "renames") {
                        p { code { (text_of(rename, "from")) " → " (text_of(rename, "to")) } " " (text_of(rename, "equal")) "/" (text_of(rename, "of")) }
                    }
                    (table_of(reader, &["console_path", "console_here", "console_there", "console_pairs"], &html! {
                        @for difference in differences.iter().take(MAX_SHOWN) { tr {
                            th scope="row" { code { (text_of(difference, "path")) } }
                            td { (shape(difference, 0)) }
                            td { (shape(difference, 1)) }
                            td.number { (pairs(difference)) }
                        } }
                    }))
                }
            }
        }
    }
}

fn shape(difference: &Value, side: usize) -> String {
    difference["shapes"][side]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// In how many pairs it differs, at most: one pair can do so in several ways.
fn pairs(difference: &Value) -> u64 {
    let kinds = ["missing", "extra", "type", "value"];
    let counts = kinds.map(|kind| difference[kind].as_u64().unwrap_or_default());
    counts.into_iter().max().unwrap_or_default()
}
