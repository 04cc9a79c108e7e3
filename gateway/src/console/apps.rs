//! Applications: the list, one of them, a new one.

pub(super) mod change;
pub(super) mod transfer;

use axum::{
    extract::{Path, RawQuery},
    response::Response,
};
use maud::{Markup, html};
use serde_json::{Map, Value, json};
use signpost_protocol::sign::SignProfile;

use super::{
    failure::Failure,
    fields::Fields,
    links::{address, parameter, segment},
    page::{Reader, Section, page},
    parts::{
        Field, choice, items_of, next_page, of_change, said, state, table_of, text_of, time,
        version_choice,
    },
    samples::samples,
    visitor::Visitor,
};
use crate::{directory::tokens::Role, doctor::samples::LANGUAGES};

/// The choice of a preset that removes an application's own profile.
const GATEWAY_PROFILE: &str = "gateway";

/// Lists them, by pages or by a search.
pub(super) async fn list(visitor: Visitor, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    let reader = &visitor.reader;
    let of = |name| parameter(query.as_deref(), name);
    let (search, after) = (of("search"), of("after"));
    let call = [("search", &*search), ("after", &after), ("limit", "50")];
    let apps = visitor.get(&address("/api/v1/apps", &call)).await?;
    let content = html! {
        (said(reader, query.as_deref()))
        div.bar {
            form role="search" action="/apps" {
                input type="search" name="search" value=(search) aria-label=(reader.text("console_search_apps")) placeholder=(reader.text("console_search_apps"));
                button { (reader.text("console_search")) }
            }
            @if reader.may(Role::Operator) {
                a.button href="/apps/new" { (reader.text("console_new_app")) }
                a.button.plain href="/apps/import" { (reader.text("console_import")) }
            }
        }
        (table(reader, &apps, !search.is_empty()))
        (next_page(reader, "/apps", &[("search", &search)], &apps))
    };
    let title = reader.text("console_apps");
    Ok(page(reader, Some(Section::Apps), &title, &content))
}

fn table(reader: &Reader, apps: &Value, is_search: bool) -> Markup {
    let items = items_of(apps, "items");
    let none = if is_search {
        "console_apps_not_found"
    } else {
        "console_apps_none"
    };
    html! {
        @if items.is_empty() { p.empty { (reader.text(none)) } } @else {
            (table_of(reader, &[
                "console_name", "console_ident", "console_state", "console_default_version", "console_created",
            ], &html! {
                @for app in items { tr {
                    th scope="row" { a href=(path_of(app)) { (text_of(app, "name")) } }
                    td { code { (text_of(app, "ident")) } }
                    td { (state(reader, "state", &text_of(app, "state"))) }
                    td { (text_of(app, "default_version")) }
                    td { (time(&app["created_at"])) }
                } }
            }))
        }
    }
}

/// The path of an application's page.
fn path_of(app: &Value) -> String {
    format!(
        "/apps/{}",
        segment(app["ident"].as_str().unwrap_or_default())
    )
}

/// Shows an application, and what can be done with it.
pub(super) async fn show(
    visitor: Visitor,
    Path(ident): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let banner = said(&visitor.reader, query.as_deref());
    show_with(&visitor, &ident, &banner, None).await
}

/// The same, with what was filled in and not accepted.
async fn show_with(
    visitor: &Visitor,
    ident: &str,
    banner: &Markup,
    given: Option<&Fields>,
) -> Result<Response, Failure> {
    let reader = &visitor.reader;
    let (of_app, of_audit) = (
        format!("/api/v1/apps/{}", segment(ident)),
        address("/api/v1/audit", &[("subject", ident), ("limit", "10")]),
    );
    let of_report = address("/api/v1/versions/report", &[("app", ident)]);
    let of_rejections = address("/api/v1/rejections", &[("app", ident), ("limit", "10")]);
    let (app, changes, versions, rejections) = tokio::try_join!(
        visitor.get(&of_app),
        visitor.get(&of_audit),
        visitor.get("/api/v1/versions?limit=1000"),
        visitor.get(&of_rejections),
    )?;
    // A report that is refused now is no reason to show nothing.
    let report = visitor.get(&of_report).await.unwrap_or_default();
    let name = text_of(&app, "name");
    let content = html! {
        (banner)
        (facts(reader, &app))
        section aria-labelledby="usage" {
            h2 id="usage" { (reader.text("console_app_versions")) }
            (usage(reader, &report))
        }
        section aria-labelledby="rejections" {
            h2 id="rejections" { (reader.text("console_live_rejected")) }
            (super::live::table(reader, &rejections))
        }
        @if reader.may(Role::Operator) { (change::forms(reader, &app, &versions, given)) }
        section aria-labelledby="changes" {
            h2 id="changes" { (reader.text("console_last_changes")) }
            (super::audit::table(reader, &changes))
            p { a href=(address("/audit", &[("subject", ident)])) { (reader.text("console_all_changes")) } }
        }
    };
    Ok(page(reader, Some(Section::Apps), &name, &content))
}

/// The versions that an application calls, by the report of the last 30 days.
fn usage(reader: &Reader, report: &Value) -> Markup {
    let versions = items_of(report, "versions").iter();
    let used: Vec<_> = versions
        .filter_map(|version| Some((version, items_of(version, "applications").first()?)))
        .collect();
    html! {
        @if used.is_empty() { p.empty { (reader.text("console_app_unused")) } } @else {
            (table_of(reader, &["console_version", "console_requests", "console_last_used", "console_client"], &html! {
                @for (version, usage) in used { tr {
                    th scope="row" { (text_of(version, "version")) }
                    td.number { (text_of(usage, "requests")) }
                    td { (time(&usage["last_seen"])) }
                    td { (text_of(&usage["client"], "user_agent")) }
                } }
            }))
        }
    }
}

fn facts(reader: &Reader, app: &Value) -> Markup {
    let or_gateway = |member: &str| match &app[member] {
        Value::Null => reader.text("console_as_gateway"),
        _ => text_of(app, member),
    };
    html! {
        dl.facts {
            dt { (reader.text("console_ident")) } dd { code { (text_of(app, "ident")) } }
            dt { (reader.text("console_state")) } dd { (state(reader, "state", &text_of(app, "state"))) }
            dt { (reader.text("console_created")) } dd { (time(&app["created_at"])) }
            dt { (reader.text("console_default_version")) } dd { (or_gateway("default_version")) }
            dt { (reader.text("console_rate_limit")) } dd { (or_gateway("rate_limit")) }
            dt { (reader.text("console_profile")) } dd { (profile(reader, &app["sign_profile"])) }
            dt { (reader.text("console_return_to")) }
            dd { @for origin in items_of(app, "return_to") { div { (origin.as_str().unwrap_or_default()) } } @if items_of(app, "return_to").is_empty() { "–" } }
            @if !app["previous_key_until"].is_null() {
                dt { (reader.text("console_overlap")) } dd { (time(&app["previous_key_until"])) }
            }
            dt { (reader.text("console_revision")) } dd { (text_of(app, "revision")) }
        }
    }
}

/// The settings of a sign profile that are words.
fn profile(reader: &Reader, profile: &Value) -> Markup {
    html! {
        @if profile.is_null() { (reader.text("console_as_gateway")) } @else {
            @for member in ["algorithm", "cover", "replay"] {
                code { (member) " = " (text_of(profile, member)) } " "
            }
        }
    }
}

/// The form of a new application.
pub(super) async fn new_form(visitor: Visitor) -> Result<Response, Failure> {
    new_page(&visitor, &html! {}, None).await
}

async fn new_page(
    visitor: &Visitor,
    banner: &Markup,
    given: Option<&Fields>,
) -> Result<Response, Failure> {
    let reader = &visitor.reader;
    let versions = visitor.get("/api/v1/versions?limit=1000").await?;
    let of = |name| given.map_or("", |given| given.get(name));
    let content = html! {
        (banner)
        form.fields method="post" action="/apps/new" {
            (Field::line("name", of("name")).required().show(reader))
            (settings(reader, &versions, of))
            (of_change(reader))
            button { (reader.text("console_create")) }
        }
    };
    let title = reader.text("console_new_app");
    Ok(page(reader, Some(Section::Apps), &title, &content))
}

/// The settings that a form of a new application and one of a change have alike.
fn settings<'f>(reader: &Reader, versions: &Value, of: impl Fn(&'static str) -> &'f str) -> Markup {
    let word = |words: &[&'static str]| {
        let unset = std::iter::once(("", reader.text("console_unchanged")));
        let words = words.iter().map(|word| (*word, (*word).to_owned()));
        unset.chain(words).collect::<Vec<_>>()
    };
    let mut presets = word(&SignProfile::PRESETS);
    presets.push((GATEWAY_PROFILE, reader.text("console_as_gateway")));
    html! {
        (version_choice(reader, "default_version", "console_as_gateway", versions, of("default_version")))
        (Field::line("rate_limit", of("rate_limit")).show(reader))
        (Field::lines("return_to", of("return_to")).show(reader))
        fieldset {
            legend { (reader.text("console_profile")) }
            (choice(reader, "preset", &presets, of("preset")))
            (choice(reader, "algorithm", &word(&["md5", "hmac-sha256"]), of("algorithm")))
            (choice(reader, "cover", &word(&["parameters", "request"]), of("cover")))
            (choice(reader, "replay", &word(&["allow", "reject"]), of("replay")))
        }
    }
}

/// The settings of a form as the API takes them.
fn settings_of(fields: &Fields) -> Map<String, Value> {
    let mut settings = fields.object(&["name", "reason"]);
    settings.insert("return_to".to_owned(), json!(fields.lines("return_to")));
    let profile = fields.object(&["preset", "algorithm", "cover", "replay"]);
    if fields.get("preset") == GATEWAY_PROFILE {
        settings.insert("profile".to_owned(), Value::Null);
    } else if !profile.is_empty() {
        settings.insert("profile".to_owned(), Value::Object(profile));
    }
    // Null removes a setting.
    for name in ["default_version", "rate_limit"] {
        settings.insert(name.to_owned(), json!(fields.given(name)));
    }
    settings
}

/// Creates an application, and shows its key.
pub(super) async fn create(visitor: Visitor, fields: Fields) -> Result<Response, Failure> {
    let body = Value::Object(settings_of(&fields));
    match visitor
        .post("/api/v1/apps/create", &body, fields.get("once"))
        .await
    {
        Ok(created) => Ok(new_key(&visitor.reader, &created, "console_created_app")),
        Err(failure) => {
            let failure = failure.of_input()?;
            let page = new_page(&visitor, &failure.banner(), Some(&fields)).await?;
            Ok(failure.with_page(page))
        }
    }
}

/// Shows a new key, once.
fn new_key(reader: &Reader, created: &Value, title: &str) -> Response {
    let app = &created["app"];
    let (name, ident) = (text_of(app, "name"), text_of(app, "ident"));
    let content = html! {
        p.warning { (reader.text("console_key_once")) }
        dl.facts {
            dt { (reader.text("console_ident")) }
            dd { (copied(reader, "ident", &ident)) }
            dt { (reader.text("console_key")) }
            dd { (copied(reader, "key", created["key"].as_str().unwrap_or_default())) }
        }
        h2 { (reader.text("console_try")) }
        pre { code { "signpost call --app " (ident) " --key file:app.key /user" } }
        (samples(reader, LANGUAGES.iter().map(|one| (one.name, one.lines_of(&ident)))))
        p { a href=(path_of(app)) { (reader.tell("console_to_app", &[("name", &name)])) } }
    };
    let title = reader.tell(title, &[("name", &name)]);
    page(reader, Some(Section::Apps), &title, &content)
}

/// A value with a button that copies it. The script shows the button.
pub(super) fn copied(reader: &Reader, id: &str, value: &str) -> Markup {
    html! {
        code id=(id) { (value) } " "
        button.plain type="button" data-copy=(id) data-done=(reader.text("console_copied")) hidden { (reader.text("console_copy")) }
    }
}
