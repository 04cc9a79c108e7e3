//! Requests as they come. The script adds them to the table; without it, the page has the last rejected ones.

use axum::{
    body::Body,
    extract::{RawQuery, State},
    response::Response,
};
use futures_util::StreamExt;
use http::HeaderMap;
use maud::{Markup, html};
use signpost_proxy::SeenRequest;
use tokio::time::sleep;

use super::{
    Shared,
    failure::Failure,
    fields::Fields,
    links::{address, parameter, segment},
    page::{Reader, Section, page},
    parts::{Field, choice, moment, table_of, version_choice},
    visitor::Visitor,
};
use crate::{
    administration::printable::printable,
    api::{CHECK_INTERVAL, RequestParams},
    operations::{
        input::{Limit, NamedPage},
        requests::{REJECTIONS, RejectionFilter},
        versions,
    },
    reports::versions::ListedVersion,
};

/// The parameters that choose requests.
const FILTERS: [&str; 3] = ["version", "app", "status"];

/// Columns of the table.
const HEADS: [&str; 7] = [
    "console_when",
    "console_request",
    "console_app",
    "console_version",
    "console_status",
    "console_duration",
    "console_problem_code",
];

/// Shows the page.
pub(super) async fn show(visitor: Visitor, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    let reader = &visitor.reader;
    let given = FILTERS.map(|name| parameter(query.as_deref(), name));
    let versions = visitor.run(&versions::LIST, (), NamedPage::ALL).await?;
    let app = Some(given[1].clone()).filter(|app| !app.is_empty());
    let rejected = rejections(&visitor, app, 50).await?;
    let [version, app, status] = &given;
    let filters = [("version", &**version), ("app", app), ("status", status)];
    let content = html! {
        (filter(reader, &versions.items, &given))
        section aria-labelledby="stream-title" data-stream=(address("/live/stream", &filters)) {
            h2 id="stream-title" { (reader.text("console_live_now")) }
            p role="status" data-on=(reader.text("console_live_on")) data-off=(reader.text("console_live_off")) data-ended=(reader.text("console_live_ended")) data-missed=(reader.text("console_live_missed")) {
                (reader.text("console_live_script"))
            }
            (table_of(reader, &HEADS, &html! {}))
        }
        section aria-labelledby="rejected-title" {
            h2 id="rejected-title" { (reader.text("console_live_rejected")) }
            (table(reader, &rejected))
        }
    };
    let title = reader.text("console_live");
    Ok(page(reader, Some(Section::Live), &title, &content))
}

/// The requests as the API streams them.
pub(super) async fn stream(
    State(console): State<Shared>,
    visitor: Visitor,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let fields = Fields::of_query(query.as_deref());
    let params = || {
        Ok(RequestParams {
            version: fields.value("version")?,
            app: fields.value("app")?,
            status: fields.count("status")?,
        })
    };
    let params = params().map_err(|error| visitor.refused(&error))?;
    let response = visitor.watch(params).await?;
    let ended = Box::pin(async move {
        while console.sessions.lives(&headers) {
            sleep(CHECK_INTERVAL).await;
        }
    });
    Ok(response.map(|body| Body::from_stream(body.into_data_stream().take_until(ended))))
}

fn filter(reader: &Reader, versions: &[ListedVersion], given: &[String; 3]) -> Markup {
    let statuses = ["2", "3", "4", "5"].map(|class| (class, format!("{class}xx")));
    let statuses: Vec<_> = std::iter::once(("", reader.text("console_all")))
        .chain(statuses)
        .collect();
    html! {
        form.fields.bar action="/live" {
            (version_choice(reader, "version", "console_all", versions, &given[0]))
            (Field::line("app", &given[1]).show(reader))
            (choice(reader, "status", &statuses, &given[2]))
            button { (reader.text("console_filter")) }
        }
    }
}

/// The last rejected requests, of an application or of all.
pub(super) async fn rejections(
    visitor: &Visitor,
    app: Option<String>,
    limit: u16,
) -> Result<Vec<SeenRequest>, Failure> {
    let limit = Limit::new(limit);
    let filter = RejectionFilter { app, limit };
    Ok(visitor.run(&REJECTIONS, (), filter).await?.items)
}

/// Rejected requests, each with a link to what explains it.
pub(super) fn table(reader: &Reader, rejected: &[SeenRequest]) -> Markup {
    html! {
        @if rejected.is_empty() { p.empty { (reader.text("console_rejections_none")) } } @else {
            (table_of(reader, &HEADS, &html! { @for seen in rejected { (row(reader, seen)) } }))
        }
    }
}

fn row(reader: &Reader, seen: &SeenRequest) -> Markup {
    let id = printable(&seen.request_id);
    let text = |text: &Option<String>| printable(text.as_deref().unwrap_or_default());
    html! { tr {
        td { (moment(seen.at)) }
        td { code { (printable(&seen.method)) " " (printable(&seen.path)) } }
        td { code { (text(&seen.app)) } }
        td { (text(&seen.version)) }
        td { (seen.status) }
        td.number { (number(seen.duration_ms)) }
        td {
            a href={ "/doctor/" (segment(&id)) } aria-label=(reader.tell("console_explain", &[("id", &id)])) {
                code { (text(&seen.code)) @if seen.hint.is_some() { " " (text(&seen.hint)) } }
            }
        }
    } }
}

/// A number as JSON has it: `12.0`.
fn number(milliseconds: f64) -> String {
    format!("{milliseconds:?}")
}
