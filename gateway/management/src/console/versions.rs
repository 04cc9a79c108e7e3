//! Versions: their stage and dates, who uses them, their backends, and addresses to take out.

use axum::extract::Path;
use maud::{Markup, html};
use signpost_proxy::rfc3339;

use super::{
    failure::{Failure, Page},
    fields::Fields,
    links::{address, segment},
    page::{Reader, Section, page},
    parts::{check, done, field, folded, moment, state, table_of, time_of, word_of},
    retirement,
    shadows::Shadows,
    visitor::Visitor,
};
use crate::{
    administration::{printable::printable, tokens::Role},
    api::ApiError,
    operations::{
        backends::{self, BackendItem, DrainInput, UndrainInput},
        input::{NamedPage, malformed},
        versions::{self, ReportInput},
    },
    reports::{
        paths::PathUsage,
        usage::{AppKind, AppUsage, VersionSummary},
        versions::{ListedBackend, ListedDates, ListedEndpoint},
    },
};

/// Applications of a version that the page names.
const MAX_SHOWN_APPS: usize = 20;
/// Paths of a version that the page shows.
const MAX_SHOWN_PATHS: usize = 100;
/// Applications of a path that the page names.
const MAX_CALLERS: usize = 5;

/// Shows all versions.
pub(super) async fn show(visitor: Visitor) -> Page {
    let reader = &visitor.reader;
    let (versions, backends) = tokio::try_join!(
        visitor.run(&versions::LIST, (), NamedPage::ALL),
        visitor.run(&backends::LIST, (), NamedPage::ALL),
    )?;
    // A report that is too large for the API is no reason to show nothing.
    let asked = ReportInput {
        paths: Some(true),
        ..ReportInput::default()
    };
    let report = visitor.run(&versions::REPORT, (), asked);
    let (usages, problem) = match report.await {
        Ok(report) => (report.versions, None),
        Err(failure) => (Vec::new(), Some(failure.of_input()?)),
    };
    let all: u64 = usages.iter().map(|usage| usage.requests.requests).sum();
    let now = rfc3339(visitor.now());
    let mut shadows = Vec::new();
    for version in &versions.items {
        shadows.push(Shadows::read(&visitor, version).await?);
    }
    let content = html! {
        @if let Some(problem) = &problem { (problem.banner()) }
        @for (version, shadows) in versions.items.iter().zip(&shadows) {
            @let name = &version.version;
            section.card aria-labelledby={ "version-" (name) } {
                h2 id={ "version-" (name) } {
                    (name) " " (state(reader, "stage_of", version.dates.stage))
                    @if version.is_default { " " span.quiet { (reader.text("console_default")) } }
                }
                (time_line(reader, &version.dates, &now))
                @for ListedEndpoint { endpoint, dates } in &version.endpoints {
                    h3 { code { (endpoint) } " " (state(reader, "stage_of", dates.stage)) }
                    (time_line(reader, dates, &now))
                }
                (users(reader, usages.iter().find(|usage| usage.version == *name), all))
                (shadows.show(reader, version))
                p { a href=(address(retirement::PATH, &[("version", name)])) { (reader.text("console_retire")) } }
                @for backend in &version.backends { (self::backend(reader, backend, &backends.items)) }
            }
        }
    };
    let title = reader.text("console_versions");
    Ok(page(reader, Some(Section::Versions), &title, &content))
}

/// The dates of a version or of an endpoint on a time line, and where `now` is on it.
fn time_line(reader: &Reader, listed: &ListedDates, now: &str) -> Markup {
    let brownouts = listed.brownouts.iter();
    let brownouts =
        brownouts.map(|brownout| ("console_brownout", &brownout.start, Some(&*brownout.end)));
    let dates = [
        ("console_deprecated", &listed.deprecated),
        ("console_sunset", &listed.sunset),
    ];
    let dates = dates
        .into_iter()
        .filter_map(|(text, date)| Some((text, date.as_ref()?, None)));
    let mut dates: Vec<_> = dates.chain(brownouts).collect();
    // All are written alike, and in UTC.
    dates.sort_by_key(|(_, date, _)| *date);
    let past = dates
        .iter()
        .take_while(|(_, date, _)| date.as_str() <= now)
        .count();
    html! {
        @if !dates.is_empty() {
            ol.timeline {
                @for (place, (text, date, end)) in dates.iter().enumerate() {
                    @if place == past { li.today { (reader.text("console_today")) } }
                    li.past[place < past] {
                        (reader.text(text)) br; (time_of(Some(date))) @if end.is_some() { " – " (time_of(*end)) }
                    }
                }
                @if past == dates.len() { li.today { (reader.text("console_today")) } }
            }
        }
        @if let Some(after) = listed.after_sunset {
            p { (reader.text("console_after_sunset")) ": " (reader.word("after", after)) }
        }
    }
}

/// Who still uses a version, by the report of the last 30 days.
fn users(reader: &Reader, usage: Option<&VersionSummary>, all: u64) -> Markup {
    let requests = usage.map_or(0, |usage| usage.requests.requests);
    let apps = usage.map_or(&[][..], |usage| &usage.applications);
    let percent = (requests * 100)
        .checked_div(all)
        .unwrap_or_default()
        .to_string();
    let args = [
        ("requests", &*requests.to_string()),
        ("percent", &percent),
        ("applications", &apps.len().to_string()),
    ];
    html! {
        p {
            (reader.tell("console_used_by", &args))
            " " meter min="0" max="100" value=(percent) aria-label=(reader.text("console_share")) {}
        }
        @if !apps.is_empty() {
            details {
                summary { (reader.text("console_users")) }
                (table_of(reader, &["console_name", "console_requests", "console_client"], &html! {
                    @for app in apps.iter().take(MAX_SHOWN_APPS) { tr {
                        th scope="row" { (user(reader, app)) }
                        td.number { (app.requests.requests) }
                        td { (app.user_agent()) }
                    } }
                }))
            }
        }
        @if let Some(extended) = usage.map(|usage| &usage.retiring.extended).filter(|all| !all.is_empty()) {
            p { (reader.text("console_extensions")) ": "
                @for (ident, until) in extended.iter().take(MAX_SHOWN_APPS) {
                    a href={ "/apps/" (segment(ident)) } { (printable(ident)) } " " (time_of(Some(until))) " "
                }
                @if extended.len() > MAX_SHOWN_APPS { "…" }
            }
        }
        @if let Some(paths) = usage.and_then(|usage| usage.paths.as_ref()).filter(|paths| !paths.is_empty()) {
            details {
                summary { (reader.text("console_paths")) }
                (table_of(reader, &["console_path", "console_requests", "console_last_used", "console_users"], &html! {
                    @for path in paths.iter().take(MAX_SHOWN_PATHS) { tr {
                        th scope="row" { code { (path.method) " " (path.path) } }
                        td.number { (path.requests) }
                        td { (time_of(Some(&rfc3339(path.last_seen)))) }
                        td { (path.applications) ": " (callers(path)) }
                    } }
                }))
            }
        }
    }
}

/// Some of the applications that called a path.
fn callers(path: &PathUsage) -> String {
    let idents = path.users.iter().filter_map(|user| user.ident.as_deref());
    let shown: Vec<_> = idents.take(MAX_CALLERS).map(printable).collect();
    let more = path.applications > shown.len() as u64;
    shown.join(", ") + if more { ", …" } else { "" }
}

/// An application of the report, with a link to its page while it exists.
fn user(reader: &Reader, app: &AppUsage) -> Markup {
    let ident = app.ident.as_deref().unwrap_or_default();
    html! {
        @if let Some(name) = &app.name {
            a href={ "/apps/" (segment(ident)) } { (printable(name)) }
        } @else if app.kind == AppKind::Application { code { (ident) } }
        @else { (reader.word("kind", &word_of(&app.kind))) }
    }
}

/// A backend's addresses, each with what can be done with it.
fn backend(reader: &Reader, backend: &ListedBackend, known: &[BackendItem]) -> Markup {
    let name = &backend.backend;
    let known = known.iter().find(|known| known.backend == *name);
    let addresses: Vec<_> = match known {
        Some(known) => known
            .addresses
            .iter()
            .map(|address| (&address.status, address.drained_until))
            .collect(),
        None => backend
            .addresses
            .iter()
            .map(|status| (status, None))
            .collect(),
    };
    html! {
        h3 {
            (printable(name)) " " span.quiet {
                (reader.word("part", backend.part))
                @if let Some(percent) = backend.percent { " " (percent) " %" }
                " " (backend.shown_responses())
            }
        }
        ul.addresses { @for (status, drained_until) in addresses { li {
            code { (printable(&status.address)) } " "
            (state(reader, "health", status.health.as_str())) " "
            @if drained_until.is_some() {
                span.quiet { (reader.text("console_until")) " " (moment(drained_until)) } " "
            }
            @if reader.may(Role::Operator) {
                @let change = if drained_until.is_some() { "undrain" } else { "drain" };
                (drain(reader, change, name, &status.address))
            }
        } } }
    }
}

fn drain(reader: &Reader, change: &str, backend: &str, name: &str) -> Markup {
    let query = [("backend", backend), ("address", name)];
    let address = address(&format!("/versions/{change}"), &query);
    folded(reader, (change, &address), |reader| {
        html! {
            @if change == "drain" {
                (field(reader, "minutes", "30"))
                (check(reader, "force"))
            }
        }
    })
}

/// Takes an address out, or back.
pub(super) async fn change(visitor: Visitor, Path(change): Path<String>, fields: Fields) -> Page {
    let changed = match &*change {
        "drain" => {
            let drained = visitor.submit(&backends::DRAIN, (), drain_input(&fields));
            drained.await.map(drop)
        }
        "undrain" => {
            let undrained = visitor.submit(&backends::UNDRAIN, (), undrain_input(&fields));
            undrained.await.map(drop)
        }
        _ => return Err(Failure::not_found(visitor.reader)),
    };
    let done = changed.map(|()| done("/versions", &change));
    visitor.or_again(done, fields, show).await
}

fn drain_input(fields: &Fields) -> Result<DrainInput, ApiError> {
    let of = undrain_input(fields)?;
    let minutes: Option<u64> = fields.count("minutes")?;
    let minutes = minutes.ok_or_else(|| malformed("missing field `seconds`"))?;
    Ok(DrainInput {
        backend: of.backend,
        address: of.address,
        seconds: minutes.saturating_mul(60),
        force: fields.get("force") == "true",
        reason: of.reason,
    })
}

fn undrain_input(fields: &Fields) -> Result<UndrainInput, ApiError> {
    Ok(UndrainInput {
        backend: fields.required("backend")?,
        address: backends::address_of(fields.get("address"))?,
        reason: fields.value("reason")?,
    })
}
