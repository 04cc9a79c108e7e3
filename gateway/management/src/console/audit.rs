//! The audit: who changed what.

use axum::extract::RawQuery;
use maud::{Markup, html};
use serde_json::Value;

use super::{
    failure::{Failure, Page},
    fields::Fields,
    links::segment,
    page::{Reader, Section, page},
    parts::{field, moment, pages, table_of, time_of},
    visitor::Visitor,
};
use crate::{
    administration::{audit::AuditItem, printable::printable},
    api::ApiError,
    operations::{
        audit::{self, AuditSearch},
        input::{Limit, List},
    },
};

/// Items of a page.
const ITEMS: u16 = 50;

/// Lists what was changed, newest first.
pub(super) async fn list(visitor: Visitor, RawQuery(query): RawQuery) -> Page {
    let reader = &visitor.reader;
    let given = Fields::of_query(query.as_deref());
    let filters = ["since", "actor", "subject"].map(|name| (name, given.get(name)));
    let (failure, rows) = match visitor.submit(&audit::LIST, (), search(&given)).await {
        Ok(rows) => (None, rows),
        Err(failure) => (
            Some(failure.of_input()?),
            List::new((Vec::new(), false), |_| String::new()),
        ),
    };
    let content = html! {
        @if let Some(failure) = &failure { (failure.banner()) }
        form.fields.bar action="/audit" {
            @for (name, value) in filters { (field(reader, name, value)) }
            button { (reader.text("console_filter")) }
        }
        (table(reader, &rows.items))
        (pages(reader, "/audit", &filters, (&given, rows.next.as_deref())))
    };
    let title = reader.text("console_audit");
    let page = page(reader, Some(Section::Audit), &title, &content);
    Ok(match failure {
        Some(failure) => failure.with_page(page),
        None => page,
    })
}

fn search(given: &Fields) -> Result<AuditSearch, ApiError> {
    Ok(AuditSearch {
        since: given.value("since")?,
        actor: given.value("actor")?,
        subject: given.value("subject")?,
        limit: Limit::new(ITEMS),
        after: given.value("after")?,
    })
}

/// The last changes, of a subject or of all.
pub(super) async fn last(
    visitor: &Visitor,
    subject: Option<String>,
    limit: u16,
) -> Result<Vec<AuditItem>, Failure> {
    let search = AuditSearch {
        subject,
        limit: Limit::new(limit),
        ..AuditSearch::default()
    };
    Ok(visitor.run(&audit::LIST, (), search).await?.items)
}

/// A table of its rows.
pub(super) fn table(reader: &Reader, rows: &[AuditItem]) -> Markup {
    html! {
        @if rows.is_empty() { p.empty { (reader.text("console_audit_none")) } } @else {
            (table_of(reader, &[
                "console_when", "console_who", "console_action", "console_subject", "console_changes", "console_reason",
            ], &html! {
                @for row in rows { tr {
                    td { (moment(row.at)) }
                    td { (printable(&row.actor)) " " span.quiet { (printable(&row.origin)) } }
                    td { code { (printable(&row.action)) } }
                    td { (subject(row)) }
                    td { (changes(&row.changes)) }
                    td { (printable(row.reason.as_deref().unwrap_or_default())) }
                } }
            }))
        }
    }
}

/// What was changed, with a link to its page.
fn subject(row: &AuditItem) -> Markup {
    let subject = printable(&row.subject);
    let path = match row.action.split('.').next() {
        Some("app") if row.action != "app.delete" => Some(format!("/apps/{}", segment(&subject))),
        Some("token") => Some("/settings/tokens".to_owned()),
        Some("backend") => Some("/versions".to_owned()),
        Some("config") => Some("/settings".to_owned()),
        _ => None,
    };
    html! {
        @if let Some(path) = path { a href=(path) { (subject) } } @else { (subject) }
    }
}

/// Whether a value is a time of RFC 3339 in UTC.
fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.as_bytes()[10] == b'T' && text.ends_with('Z')
}

/// Old and new values by name.
fn changes(changes: &Value) -> Markup {
    let shown = |value: &Value| match value {
        Value::Null => html! { "–" },
        Value::String(text) if is_time(text) => time_of(Some(text)),
        Value::String(text) => html! { (printable(text)) },
        other => html! { (printable(&other.to_string())) },
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
