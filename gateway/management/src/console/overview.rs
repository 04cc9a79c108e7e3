//! The first page: what needs attention, the versions, the gateways.

use maud::{Markup, html};
use signpost_proxy::AddressHealth;

use super::{
    failure::Page,
    page::{Reader, Section, page},
    parts::{state, table_of, time_of},
    visitor::Visitor,
};
use crate::{
    administration::printable::printable,
    operations::{
        gateways,
        input::{NamedPage, Nothing},
        versions,
    },
    reports::{gateways::ListedGateway, versions::ListedVersion},
};

/// Shows it.
pub(super) async fn show(visitor: Visitor) -> Page {
    let reader = &visitor.reader;
    let (traffic, versions, gateways, changes) = tokio::try_join!(
        visitor.run(&gateways::TRAFFIC, (), Nothing {}),
        visitor.run(&versions::LIST, (), NamedPage::ALL),
        visitor.run(&gateways::LIST, (), NamedPage::ALL),
        super::audit::last(&visitor, None, 5),
    )?;
    let (versions, gateways) = (versions.items, gateways.items);
    let sentences = sentences(reader, &versions, &gateways);
    let content = html! {
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
fn sentences(
    reader: &Reader,
    versions: &[ListedVersion],
    gateways: &[ListedGateway],
) -> Vec<Markup> {
    let mut sentences = Vec::new();
    let mut say = |path: &str, id: &str, args: &[(&str, &str)]| {
        sentences.push(html! { a href=(path) { (reader.tell(id, args)) } });
    };
    for version in versions {
        if version.dates.stage == "brownout" {
            let args = [("version", &*version.version)];
            say("/versions", "console_attention_brownout", &args);
        }
        for backend in &version.backends {
            for address in &backend.addresses {
                use AddressHealth::{Unhealthy, Unreachable};
                if matches!(address.health, Unhealthy | Unreachable) {
                    let args = [
                        ("backend", &*printable(&backend.backend)),
                        ("address", &printable(&address.address)),
                        ("health", &reader.word("health", address.health.as_str())),
                    ];
                    say("/versions", "console_attention_address", &args);
                }
            }
        }
    }
    for gateway in gateways.iter().filter(|gateway| gateway.is_alive) {
        let of = &gateway.state;
        let host = ("host", &*printable(&of.name()));
        // It also says which certificates end, and which backends have no address left.
        if of.readiness != "ready" {
            let args = [host, ("readiness", &printable(&of.readiness))];
            say("/#gateways", "console_attention_readiness", &args);
        }
        if gateway.differs {
            let keys = printable(&gateway.different_keys.join(", "));
            say(
                "/#gateways",
                "console_attention_differs",
                &[host, ("keys", &keys)],
            );
        }
        if of.is_reload_rejected {
            say("/settings/reload", "console_attention_reload", &[host]);
        }
    }
    sentences
}

fn version_table(reader: &Reader, versions: &[ListedVersion]) -> Markup {
    html! {
        (table_of(reader, &[
            "console_version", "console_stage", "console_sunset", "console_addresses",
        ], &html! {
            @for version in versions { tr {
                th scope="row" {
                    a href="/versions" { (version.version) }
                    @if version.is_default { " " span.quiet { (reader.text("console_default")) } }
                }
                td { (state(reader, "stage_of", version.dates.stage)) }
                td { (time_of(version.dates.sunset.as_deref())) }
                td { @for address in version.backends.iter().flat_map(|backend| &backend.addresses) {
                    (state(reader, "health", address.health.as_str())) " "
                } }
            } }
        }))
    }
}

fn gateway_table(reader: &Reader, gateways: &[ListedGateway]) -> Markup {
    html! {
        (table_of(reader, &[
            "console_host", "console_ready", "console_release", "console_started", "console_configuration", "console_certificates",
        ], &html! {
            @for gateway in gateways { @let of = &gateway.state; tr {
                th scope="row" {
                    (printable(&of.host)) " " span.quiet { (of.process) }
                    @for address in &of.addresses { br; code { (printable(address)) } }
                }
                td { (state(reader, "readiness", readiness(gateway))) }
                td { (printable(&of.release)) }
                td { (time_of(Some(&of.started_at))) }
                td {
                    code { (of.config.chars().take(8).collect::<String>()) }
                    @if gateway.differs { " " (state(reader, "readiness", "differs")) }
                }
                td { @for certificate in &of.certificates {
                    div { (printable(&certificate.file)) ": " (time_of(Some(&certificate.expires))) }
                } }
            } }
        }))
    }
}

const fn readiness(gateway: &ListedGateway) -> &'static str {
    match (gateway.is_alive, gateway.state.is_ready) {
        (true, true) => "ready",
        (true, false) => "not_ready",
        (false, _) => "gone",
    }
}
