//! Requests as they come. The script adds them to the table; without it, the page has the last rejected ones.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{RawQuery, State},
};
use futures_util::StreamExt;
use http::HeaderMap;
use maud::{Markup, html};
use signpost_proxy::SeenRequest;
use tokio::time::sleep;

use super::{
    Shared,
    failure::{Failure, Page},
    fields::Fields,
    links::{address, segment},
    page::{Reader, Section, page},
    parts::{choice, field, moment, table_of, version_choice},
    visitor::Visitor,
};
use crate::{
    administration::printable::printable,
    api::{CHECK_INTERVAL, RequestParams, Write},
    operations::{
        input::{Limit, NamedPage},
        requests::{REJECTIONS, RejectionFilter},
        versions,
    },
    reports::versions::ListedVersion,
};

/// The parameters that choose requests.
const FILTERS: [&str; 3] = ["version", "ident", "status"];

/// Columns of the table.
const HEADS: [&str; 7] = [
    "console_when",
    "console_request",
    "console_app",
    "console_version",
    "console_status",
    "console_duration",
    "console_problem",
];

/// The application that a request names.
pub(super) async fn app(visitor: &Visitor, seen: &SeenRequest) -> Markup {
    let ident = seen.app.as_deref().unwrap_or_default();
    let name = visitor.app_name(ident).await;
    html! {
        @if let Some(name) = name { a href={ "/apps/" (segment(ident)) } { (printable(&name)) } " " }
        code { (printable(ident)) }
    }
}

/// Shows the page.
pub(super) async fn show(visitor: Visitor, RawQuery(query): RawQuery) -> Page {
    let reader = &visitor.reader;
    let given = Fields::of_query(query.as_deref());
    let filters = FILTERS.map(|name| (name, given.get(name)));
    let versions = visitor.run(&versions::LIST, (), NamedPage::ALL).await?;
    let app = given.given("ident").map(str::to_owned);
    let rejected = rejections(&visitor, app, 50).await?;
    let content = html! {
        (filter(reader, &versions.items, filters))
        section aria-labelledby="stream-title" data-stream=(address("/live/stream", &filters)) {
            h2 id="stream-title" { (reader.text("console_live_now")) }
            p role="status" data-on=(reader.text("console_live_on")) data-off=(reader.text("console_live_off")) data-ended=(reader.text("console_live_ended")) data-missed=(reader.text("console_live_missed")) {
                (reader.text("console_live_script"))
            }
            (table_of(reader, &HEADS, &html! {}))
        }
        section aria-labelledby="rejected-title" {
            h2 id="rejected-title" { (reader.text("console_live_rejected")) }
            (rejected)
        }
    };
    let title = reader.text("console_live");
    Ok(page(reader, Some(Section::Live), &title, &content))
}

/// The requests as the API streams them, each as a row of the table.
pub(super) async fn stream(
    State(console): State<Shared>,
    visitor: Visitor,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Page {
    let fields = Fields::of_query(query.as_deref());
    let params = || {
        Ok(RequestParams {
            version: fields.value("version")?,
            app: fields.value("ident")?,
            status: fields.count("status")?,
        })
    };
    let params = params().map_err(|error| visitor.refused(&error))?;
    let visitor = Arc::new(visitor);
    let shown = Arc::clone(&visitor);
    let write: Write = Box::new(move |seen| {
        let visitor = Arc::clone(&shown);
        Box::pin(async move { row(&visitor, &seen).await.into_string() })
    });
    let response = visitor.watch(params, write).await?;
    let ended = Box::pin(async move {
        while console.sessions.lives(&headers) {
            sleep(CHECK_INTERVAL).await;
        }
    });
    Ok(response.map(|body| Body::from_stream(body.into_data_stream().take_until(ended))))
}

fn filter(
    reader: &Reader,
    versions: &[ListedVersion],
    [version, app, status]: [(&str, &str); 3],
) -> Markup {
    let statuses = ["2", "3", "4", "5"].map(|class| (class, format!("{class}xx")));
    let statuses: Vec<_> = std::iter::once(("", reader.text("console_all")))
        .chain(statuses)
        .collect();
    html! {
        form.fields.bar action="/live" {
            (version_choice(reader, "version", "console_all", versions, version.1))
            (field(reader, "ident", app.1))
            (choice(reader, "status", &statuses, status.1))
            button { (reader.text("console_filter")) }
        }
    }
}

/// A table of the last rejected requests, of an application or of all.
pub(super) async fn rejections(
    visitor: &Visitor,
    app: Option<String>,
    limit: u16,
) -> Result<Markup, Failure> {
    let (reader, limit) = (&visitor.reader, Limit::new(limit));
    let filter = RejectionFilter { app, limit };
    let rejected = visitor.run(&REJECTIONS, (), filter).await?.items;
    let mut rows = Vec::new();
    for seen in &rejected {
        rows.push(row(visitor, seen).await);
    }
    Ok(html! {
        @if rejected.is_empty() { p.empty { (reader.text("console_rejections_none")) } } @else {
            (table_of(reader, &HEADS, &html! { @for row in rows { (row) } }))
        }
    })
}

/// A request, with a link to what explains its problem.
async fn row(visitor: &Visitor, seen: &SeenRequest) -> Markup {
    let (reader, app) = (&visitor.reader, app(visitor, seen).await);
    html! { tr {
        td { (moment(seen.at)) }
        td { code { (printable(&seen.method)) " " (printable(&seen.path)) } }
        td { (app) }
        td { (printable(seen.version.as_deref().unwrap_or_default())) }
        td { (seen.status) }
        td.number { (number(seen.duration_ms)) }
        td { @if let Some(code) = &seen.code {
            a href={ "/doctor/" (segment(&printable(&seen.request_id))) } { (reader.title(code)) }
            " " code.quiet { (printable(code)) }
        } }
    } }
}

/// A number as JSON has it: `12.0`.
fn number(milliseconds: f64) -> String {
    format!("{milliseconds:?}")
}
