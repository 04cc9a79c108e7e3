//! The audit: who changed what.

use axum::{extract::RawQuery, response::Response};
use maud::{Markup, html};
use serde_json::Value;

use super::{
    failure::Failure,
    links::{address, parameter, segment},
    page::{Reader, Section, page},
    parts::{Field, items_of, next_page, table_of, text_of, time},
    visitor::Visitor,
};
use crate::administration::printable::printable;

/// Filters, which are those of the API.
const FILTERS: [&str; 3] = ["since", "actor", "subject"];

/// Lists what was changed, newest first.
pub(super) async fn list(visitor: Visitor, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    let reader = &visitor.reader;
    let given = FILTERS.map(|name| parameter(query.as_deref(), name));
    let filters = [0, 1, 2].map(|number| (FILTERS[number], &*given[number]));
    let after = parameter(query.as_deref(), "after");
    let call = [&filters[..], &[("after", &after), ("limit", "50")]].concat();
    let found = visitor.get(&address("/api/v1/audit", &call)).await;
    let (status, rows) = match found {
        Ok(rows) => (None, rows),
        Err(failure) => (Some(failure.of_input()?), Value::Null),
    };
    let content = html! {
        @if let Some(failure) = &status { (failure.banner()) }
        form.fields.bar action="/audit" {
            @for (name, value) in filters { (Field::line(name, value).show(reader)) }
            button { (reader.text("console_filter")) }
        }
        (table(reader, &rows))
        (next_page(reader, "/audit", &filters, rows["next"].as_str()))
    };
    let page = page(
        reader,
        Some(Section::Audit),
        &reader.text("console_audit"),
        &content,
    );
    Ok(match status {
        Some(failure) => failure.with_page(page),
        None => page,
    })
}

/// A table of its rows.
pub(super) fn table(reader: &Reader, rows: &Value) -> Markup {
    let items = items_of(rows, "items");
    html! {
        @if items.is_empty() { p.empty { (reader.text("console_audit_none")) } } @else {
            (table_of(reader, &[
                "console_when", "console_who", "console_action", "console_subject", "console_changes", "console_reason",
            ], &html! {
                @for row in items { tr {
                    td { (time(&row["at"])) }
                    td { (text_of(row, "actor")) " " span.quiet { (text_of(row, "origin")) } }
                    td { code { (text_of(row, "action")) } }
                    td { (subject(row)) }
                    td { (changes(&row["changes"])) }
                    td { (text_of(row, "reason")) }
                } }
            }))
        }
    }
}

/// What was changed, with a link to its page.
fn subject(row: &Value) -> Markup {
    let (action, subject) = (text_of(row, "action"), text_of(row, "subject"));
    let path = match action.split('.').next() {
        Some("app") if action != "app.delete" => Some(format!("/apps/{}", segment(&subject))),
        Some("token") => Some("/settings/tokens".to_owned()),
        Some("backend") => Some("/versions".to_owned()),
        Some("config") => Some("/settings".to_owned()),
        _ => None,
    };
    html! {
        @if let Some(path) = path { a href=(path) { (subject) } } @else { (subject) }
    }
}

/// Old and new values by name.
fn changes(changes: &Value) -> Markup {
    let shown = |value: &Value| match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => printable(text),
        other => printable(&other.to_string()),
    };
    html! {
        @for (name, change) in changes.as_object().into_iter().flatten() {
            div {
                code { (printable(name)) } " "
                @match change.as_array().map(Vec::as_slice) {
                    Some([from, to]) => { (shown(from)) " → " (shown(to)) }
                    _ => (shown(change)),
                }
            }
        }
    }
}
