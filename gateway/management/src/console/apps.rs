//! Applications: the list, one of them, a new one.

pub(super) mod change;
pub(super) mod transfer;

use axum::extract::{Path, RawQuery};
use maud::{Markup, html};
use signpost_protocol::sign::{SignCarrier, SignProfile};

use super::{
    failure::Page,
    fields::Fields,
    links::{address, segment},
    page::{Reader, Section, page},
    parts::{
        choice, field, moment, of_change, pages, samples, state, table_of, version_choice, word_of,
    },
    visitor::Visitor,
};
use crate::{
    administration::{
        printable::printable, rules::ProfileChoice, summary::AppSummary, tokens::Role,
    },
    api::ApiError,
    doctor::samples::name_of,
    operations::{
        apps::{self, NewAppInput, Search, WithKey},
        card::{CARD, Card},
        input::{Change, KnownIdent, Limit, NamedPage, Nothing},
        versions::{self, ReportInput},
    },
    reports::{usage::VersionSummary, versions::ListedVersion},
};

/// The choice of a preset that removes an application's own profile.
const GATEWAY_PROFILE: &str = "gateway";

/// Lists them, by pages or by a search.
pub(super) async fn list(visitor: Visitor, RawQuery(query): RawQuery) -> Page {
    let reader = &visitor.reader;
    let query = query.as_deref();
    let fields = Fields::of_query(query);
    let after = fields.value("after");
    let input = Search {
        search: fields.given("search").map(str::to_owned),
        limit: Limit::new(50),
        after: after.map_err(|error| visitor.refused(&error))?,
    };
    let apps = visitor.run(&apps::LIST, (), input).await?;
    let search = fields.get("search");
    let content = html! {
        form.fields.bar role="search" action="/apps" {
            (field(reader, "search", search))
            button { (reader.text("console_search")) }
        }
        @if reader.may(Role::Operator) {
            div.bar {
                a.button href="/apps/new" { (reader.text("console_new_app")) }
                a.button.plain href="/apps/import" { (reader.text("console_import")) }
                a.button.plain href="/logins" { (reader.word("change", "logout")) }
            }
        }
        (table(reader, &apps.items, !search.is_empty()))
        (pages(reader, "/apps", &[("search", search)], (&fields, apps.next.as_deref())))
    };
    let title = reader.text("console_apps");
    Ok(page(reader, Some(Section::Apps), &title, &content))
}

fn table(reader: &Reader, apps: &[AppSummary], is_search: bool) -> Markup {
    let none = if is_search {
        "console_apps_not_found"
    } else {
        "console_apps_none"
    };
    html! {
        @if apps.is_empty() { p.empty { (reader.text(none)) } } @else {
            (table_of(reader, &[
                "console_name", "console_ident", "console_state", "console_default_version", "console_created",
            ], &html! {
                @for app in apps { tr {
                    th scope="row" { a href=(path_of(&app.ident)) { (printable(&app.name)) } }
                    td { code { (printable(&app.ident)) } }
                    td { (state(reader, "state", &app.state)) }
                    td { (app.default_version.as_deref().unwrap_or_default()) }
                    td { (moment(app.created_at)) }
                } }
            }))
        }
    }
}

/// The path of an application's page.
fn path_of(ident: &str) -> String {
    format!("/apps/{}", segment(ident))
}

/// Shows an application, and what can be done with it.
pub(super) async fn show(visitor: Visitor, Path(ident): Path<String>) -> Page {
    let (reader, ident) = (&visitor.reader, &*ident);
    let named = || Some(ident.to_owned());
    let target = visitor.target(ident)?;
    let (app, card, changes, versions, rejections) = tokio::try_join!(
        visitor.run(&apps::SHOW, target, Nothing {}),
        visitor.run(&CARD, target, Nothing {}),
        super::audit::last(&visitor, named(), 10),
        visitor.run(&versions::LIST, (), NamedPage::ALL),
        super::live::rejections(&visitor, named(), 10),
    )?;
    // A report that is refused now is no reason to show nothing.
    let of_app = ReportInput {
        app: Some(KnownIdent(target)),
        ..ReportInput::default()
    };
    let report = visitor.run(&versions::REPORT, (), of_app).await;
    let usages = report.map(|report| report.versions).unwrap_or_default();
    let name = printable(&app.name);
    let content = html! {
        (facts(reader, &app))
        (first_call(reader, &card))
        section aria-labelledby="usage" {
            h2 id="usage" { (reader.text("console_app_versions")) }
            (usage(reader, &usages))
        }
        section aria-labelledby="rejections" {
            h2 id="rejections" { (reader.text("console_live_rejected")) }
            (rejections)
        }
        @if visitor.check(&apps::UPDATE, &target).is_ok() { (change::forms(reader, &app, &versions.items)) }
        section aria-labelledby="changes" {
            h2 id="changes" { (reader.text("console_last_changes")) }
            (super::audit::table(reader, &changes))
            p { a href=(address("/audit", &[("subject", ident)])) { (reader.text("console_all_changes")) } }
        }
    };
    Ok(page(reader, Some(Section::Apps), &name, &content))
}

/// The versions that an application calls, by the report of the last 30 days.
fn usage(reader: &Reader, versions: &[VersionSummary]) -> Markup {
    let versions = versions.iter();
    let used: Vec<_> = versions
        .filter_map(|version| Some((version, version.applications.first()?)))
        .collect();
    html! {
        @if used.is_empty() { p.empty { (reader.text("console_app_unused")) } } @else {
            (table_of(reader, &["console_version", "console_requests", "console_last_used", "console_client"], &html! {
                @for (version, usage) in used { tr {
                    th scope="row" { (version.version) }
                    td.number { (usage.requests.requests) }
                    td { (moment(usage.requests.last_seen)) }
                    td { (usage.user_agent()) }
                } }
            }))
        }
    }
}

fn facts(reader: &Reader, app: &AppSummary) -> Markup {
    let or_gateway =
        |setting: Option<String>| setting.unwrap_or_else(|| reader.text("console_as_gateway"));
    let rate_limit = app.rate_limit.map(|rate| rate.to_string());
    html! {
        dl.facts {
            dt { (reader.text("console_ident")) } dd { code { (printable(&app.ident)) } }
            dt { (reader.text("console_state")) } dd { (state(reader, "state", &app.state)) }
            dt { (reader.text("console_created")) } dd { (moment(app.created_at)) }
            dt { (reader.text("console_default_version")) } dd { (or_gateway(app.default_version.clone())) }
            dt { (reader.text("console_rate_limit")) } dd { (or_gateway(rate_limit)) }
            dt { (reader.text("console_profile")) } dd { (profile(reader, app.sign_profile.as_ref())) }
            dt { (reader.text("console_return_to")) }
            dd { @for origin in &app.return_to { div { (origin) } } @if app.return_to.is_empty() { "–" } }
            @if !app.extensions.is_empty() {
                dt { (reader.text("console_extensions")) }
                dd { @for one in &app.extensions { div { (one.version) " " (moment(one.until)) } } }
            }
            @if app.previous_key_until.is_some() {
                dt { (reader.text("console_overlap")) } dd { (moment(app.previous_key_until)) }
            }
            dt { (reader.text("console_revision")) } dd { (app.revision) }
        }
    }
}

/// The settings of a sign profile that are words.
fn profile(reader: &Reader, profile: Option<&SignProfile>) -> Markup {
    let words = profile.map(|profile| {
        [
            ("algorithm", word_of(&profile.algorithm)),
            ("cover", word_of(&profile.cover)),
            ("carrier", word_of(&profile.carrier)),
            ("replay", word_of(&profile.replay)),
        ]
    });
    html! {
        @if words.is_none() { (reader.text("console_as_gateway")) }
        @for (name, word) in words.iter().flatten() { code { (name) " = " (word) } " " }
    }
}

/// The form of a new application.
pub(super) async fn new_form(visitor: Visitor) -> Page {
    visitor.check(&apps::CREATE, &())?;
    let reader = &visitor.reader;
    let versions = visitor
        .run(&versions::LIST, (), NamedPage::ALL)
        .await?
        .items;
    let content = html! {
        form.fields method="post" action="/apps/new" {
            (field(reader, "name", ""))
            (settings(reader, &versions, |_| ""))
            (of_change(reader))
            button { (reader.text("console_create")) }
        }
    };
    let title = reader.text("console_new_app");
    Ok(page(reader, Some(Section::Apps), &title, &content))
}

/// The settings that a form of a new application and one of a change have alike, with what they have at first.
fn settings<'f>(
    reader: &Reader,
    versions: &[ListedVersion],
    of: impl Fn(&'static str) -> &'f str,
) -> Markup {
    let word = |words: &[&'static str]| {
        let unset = std::iter::once(("", reader.text("console_unchanged")));
        let words = words.iter().map(|word| (*word, (*word).to_owned()));
        unset.chain(words).collect::<Vec<_>>()
    };
    let mut presets = word(&SignProfile::PRESETS);
    presets.push((GATEWAY_PROFILE, reader.text("console_as_gateway")));
    html! {
        (version_choice(reader, "default_version", "console_as_gateway", versions, of("default_version")))
        (field(reader, "rate_limit", of("rate_limit")))
        (field(reader, "return_to", of("return_to")))
        fieldset {
            legend { (reader.text("console_profile")) }
            (choice(reader, "preset", &presets, of("preset")))
            (choice(reader, "algorithm", &word(&["md5", "hmac-sha256"]), of("algorithm")))
            (choice(reader, "cover", &word(&["parameters", "request"]), of("cover")))
            (choice(reader, "carrier", &word(&SignCarrier::ALL.map(|(word, _)| word)), of("carrier")))
            (choice(reader, "replay", &word(&["allow", "reject"]), of("replay")))
        }
    }
}

/// The choice of a sign profile; `None` without any.
fn profile_of(fields: &Fields) -> Result<Option<Change<ProfileChoice>>, ApiError> {
    if fields.get("preset") == GATEWAY_PROFILE {
        return Ok(Some(Change::None));
    }
    let preset = fields.given("preset").map(|name| {
        let unknown = || ApiError::invalid("profile.preset", SignProfile::PRESETS.join(", "));
        SignProfile::preset(name).ok_or_else(unknown)
    });
    let choice = ProfileChoice {
        preset: preset.transpose()?,
        algorithm: fields.value("algorithm")?,
        cover: fields.value("cover")?,
        carrier: fields.value("carrier")?,
        replay: fields.value("replay")?,
    };
    Ok(choice.is_any().then_some(Change::This(choice)))
}

fn new_of(fields: &Fields) -> Result<NewAppInput, ApiError> {
    Ok(NewAppInput {
        name: fields.required("name")?,
        return_to: fields.values("return_to")?,
        profile: match profile_of(fields)? {
            Some(Change::This(choice)) => Some(choice),
            _ => None,
        },
        default_version: fields.value("default_version")?,
        rate_limit: fields.value("rate_limit")?.map(Change::This),
        reason: fields.value("reason")?,
    })
}

/// Creates an application, and shows its key.
pub(super) async fn create(visitor: Visitor, fields: Fields) -> Page {
    let done = match visitor.submit(&apps::CREATE, (), new_of(&fields)).await {
        Ok(created) => new_key(&visitor, &created, "console_created_app").await,
        Err(failure) => Err(failure),
    };
    visitor.or_again(done, fields, new_form).await
}

/// Shows a new key, once, and how it is used.
async fn new_key(visitor: &Visitor, created: &WithKey, title: &str) -> Page {
    let reader = &visitor.reader;
    let (name, ident) = (printable(&created.app.name), &created.app.ident);
    // The key is shown even if the card cannot be: it is lost otherwise.
    let card = visitor.run(&CARD, visitor.target(ident)?, Nothing {}).await;
    let content = html! {
        p.warning { (reader.text("console_key_once")) }
        dl.facts {
            dt { (reader.text("console_ident")) }
            dd { (copied(reader, "ident", ident)) }
            dt { (reader.text("console_key")) }
            dd { (copied(reader, "key", &created.key)) }
        }
        @if let Ok(card) = &card { (first_call(reader, card)) }
        p { a href=(path_of(ident)) { (reader.tell("console_to_app", &[("name", &name)])) } }
    };
    let title = reader.tell(title, &[("name", &name)]);
    Ok(page(reader, Some(Section::Apps), &title, &content))
}

/// What the card says of a first call.
fn first_call(reader: &Reader, card: &Card) -> Markup {
    let code = card.code.iter();
    let code = code.map(|sample| {
        (
            name_of(sample.language).unwrap_or(sample.language),
            sample.code.clone(),
        )
    });
    html! {
        section aria-labelledby="first-call" {
            h2 id="first-call" { (reader.text("console_try")) }
            p { code { (card.address) } ", time ± " (card.window_seconds) " s, " (profile(reader, Some(&card.sign_profile))) }
            @if let Some(command) = &card.command { pre { code { (command) } } }
            details { summary { "Bash, curl" } pre { code { (card.first_call.join("\n")) } } }
            (samples(reader, code))
        }
    }
}

/// A value with a button that copies it. The script shows the button.
pub(super) fn copied(reader: &Reader, id: &str, value: &str) -> Markup {
    html! {
        code id=(id) { (value) } " "
        button.plain type="button" data-copy=(id) data-done=(reader.text("console_copied")) hidden { (reader.text("console_copy")) }
    }
}
