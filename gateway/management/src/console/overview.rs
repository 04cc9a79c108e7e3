//! The first page: what needs attention, the versions, the gateways.

use axum::{extract::RawQuery, response::Response};
use maud::{Markup, html};
use serde_json::Value;

use super::{
    failure::Failure,
    page::{Reader, Section, page},
    parts::{items_of, said, state, table_of, text_of, time},
    visitor::Visitor,
};

/// Shows it.
pub(super) async fn show(visitor: Visitor, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    let reader = &visitor.reader;
    let (traffic, versions, gateways, changes) = tokio::try_join!(
        visitor.get("/api/v1/traffic"),
        visitor.get("/api/v1/versions?limit=1000"),
        visitor.get("/api/v1/gateways?limit=1000"),
        visitor.get("/api/v1/audit?limit=5"),
    )?;
    let sentences = sentences(reader, &versions, &gateways);
    let content = html! {
        (said(reader, query.as_deref()))
        section aria-labelledby="attention" {
            h2 id="attention" { (reader.text("console_attention")) }
            @if sentences.is_empty() {
                p.good { (reader.text("console_attention_none")) }
            } @else {
                ul.attention { @for sentence in &sentences { li { (sentence) } } }
            }
        }
        (super::traffic::section(reader, &traffic))
        section aria-labelledby="versions" {
            h2 id="versions" { (reader.text("console_versions")) }
            (version_table(reader, &versions))
        }
        section aria-labelledby="gateways" {
            h2 id="gateways" { (reader.text("console_gateways")) }
            (gateway_table(reader, &gateways))
        }
        section aria-labelledby="changes" {
            h2 id="changes" { (reader.text("console_last_changes")) }
            (super::audit::table(reader, &changes))
        }
    };
    let title = reader.text("console_overview");
    Ok(page(reader, Some(Section::Overview), &title, &content))
}

/// What needs attention: each a sentence that leads to where it is mended.
fn sentences(reader: &Reader, versions: &Value, gateways: &Value) -> Vec<Markup> {
    let mut sentences = Vec::new();
    let mut say = |path: &str, id: &str, args: &[(&str, &str)]| {
        sentences.push(html! { a href=(path) { (reader.tell(id, args)) } });
    };
    for version in items_of(versions, "items") {
        let name = text_of(version, "version");
        if version["stage"] == "brownout" {
            say(
                "/versions",
                "console_attention_brownout",
                &[("version", &name)],
            );
        }
        for backend in items_of(version, "backends") {
            let backend_name = text_of(backend, "backend");
            for address in items_of(backend, "addresses") {
                let health = text_of(address, "health");
                if matches!(&*health, "unhealthy" | "unreachable") {
                    let (address, health) =
                        (text_of(address, "address"), reader.word("health", &health));
                    let args = [
                        ("backend", &*backend_name),
                        ("address", &address),
                        ("health", &health),
                    ];
                    say("/versions", "console_attention_address", &args);
                }
            }
        }
    }
    let alive = items_of(gateways, "items")
        .iter()
        .filter(|one| one["is_alive"] == true);
    for gateway in alive {
        let host = text_of(gateway, "host");
        let readiness = text_of(gateway, "readiness");
        // It also says which certificates end, and which backends have no address left.
        if readiness != "ready" {
            let args = [("host", &*host), ("readiness", &readiness)];
            say("/#gateways", "console_attention_readiness", &args);
        }
        if gateway["differs"] == true {
            say(
                "/#gateways",
                "console_attention_differs",
                &[("host", &host)],
            );
        }
        if gateway["is_reload_rejected"] == true {
            say(
                "/settings/reload",
                "console_attention_reload",
                &[("host", &host)],
            );
        }
    }
    sentences
}

fn version_table(reader: &Reader, versions: &Value) -> Markup {
    html! {
        (table_of(reader, &[
            "console_version", "console_stage", "console_sunset", "console_addresses",
        ], &html! {
            @for version in items_of(versions, "items") { tr {
                th scope="row" {
                    a href="/versions" { (text_of(version, "version")) }
                    @if version["is_default"] == true { " " span.quiet { (reader.text("console_default")) } }
                }
                td { (state(reader, "stage_of", &text_of(version, "stage"))) }
                td { (time(&version["sunset"])) }
                td { @for backend in items_of(version, "backends") { @for address in items_of(backend, "addresses") {
                    (state(reader, "health", &text_of(address, "health"))) " "
                } } }
            } }
        }))
    }
}

fn gateway_table(reader: &Reader, gateways: &Value) -> Markup {
    html! {
        (table_of(reader, &[
            "console_host", "console_ready", "console_release", "console_started", "console_configuration", "console_certificates",
        ], &html! {
            @for gateway in items_of(gateways, "items") { tr {
                th scope="row" { (text_of(gateway, "host")) " " span.quiet { (text_of(gateway, "process")) } }
                td { (state(reader, "readiness", readiness(gateway))) }
                td { (text_of(gateway, "release")) }
                td { (time(&gateway["started_at"])) }
                td {
                    code { (text_of(gateway, "config").chars().take(8).collect::<String>()) }
                    @if gateway["differs"] == true { " " (state(reader, "readiness", "differs")) }
                }
                td { @for certificate in items_of(gateway, "certificates") {
                    div { (text_of(certificate, "file")) ": " (time(&certificate["expires"])) }
                } }
            } }
        }))
    }
}

fn readiness(gateway: &Value) -> &'static str {
    match (gateway["is_alive"] == true, gateway["is_ready"] == true) {
        (true, true) => "ready",
        (true, false) => "not_ready",
        (false, _) => "gone",
    }
}
