//! Tokens of the management API.

use axum::{
    extract::{Path, RawQuery},
    response::Response,
};
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::{
    administration::tokens::Role,
    console::{
        apps::copied,
        failure::Failure,
        fields::Fields,
        links::{address, parameter, segment},
        page::{Reader, Section, page},
        parts::{
            Field, choice, done, items_of, next_page, of_change, said, state, table_of, text_of,
            time,
        },
        visitor::Visitor,
    },
};

/// Lists them.
pub(in crate::console) async fn list(
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let after = parameter(query.as_deref(), "after");
    let banner = said(&visitor.reader, query.as_deref());
    list_with(&visitor, &after, &banner, None).await
}

async fn list_with(
    visitor: &Visitor,
    after: &str,
    banner: &Markup,
    given: Option<&Fields>,
) -> Result<Response, Failure> {
    let reader = &visitor.reader;
    let tokens = visitor
        .get(&address("/api/v1/tokens", &[("after", after)]))
        .await?;
    let content = html! {
        (banner)
        (table_of(reader, &[
            "console_name", "console_role", "console_created", "console_last_used", "console_ends", "",
        ], &html! {
            @for token in items_of(&tokens, "items") { tr {
                th scope="row" { (text_of(token, "name")) }
                td { (reader.word("role", &text_of(token, "role"))) }
                td { (time(&token["created_at"])) " " span.quiet { (text_of(token, "created_by")) } }
                td { (time(&token["last_used_at"])) }
                td {
                    @if token["revoked_at"].is_null() { (time(&token["expires_at"])) }
                    @else { (state(reader, "state", "revoked")) " " (time(&token["revoked_at"])) }
                }
                td { @if reader.may(Role::Admin) && token["revoked_at"].is_null() { (revocation(reader, token)) } }
            } }
        }))
        (next_page(reader, "/settings/tokens", &[], tokens["next"].as_str()))
        @if reader.may(Role::Admin) { (new_form(reader, given)) }
    };
    let title = reader.text("console_tokens");
    Ok(page(reader, Some(Section::Settings), &title, &content))
}

fn revocation(reader: &Reader, token: &Value) -> Markup {
    html! {
        details {
            summary { (reader.word("change", "revoke")) }
            form.fields method="post" action={ "/settings/tokens/" (text_of(token, "id")) "/revoke" } {
                (of_change(reader))
                button.danger { (reader.word("change", "revoke")) }
            }
        }
    }
}

fn new_form(reader: &Reader, given: Option<&Fields>) -> Markup {
    let of = |name, or| given.map_or(or, |given| given.get(name));
    let roles = Role::ALL.map(|role| (role.as_str(), reader.word("role", role.as_str())));
    html! {
        h2 { (reader.text("console_new_token")) }
        form.fields method="post" action="/settings/tokens" {
            (Field::line("name", of("name", "")).required().show(reader))
            (choice(reader, "role", &roles, of("role", "viewer")))
            (Field::number("days", of("days", "90")).required().show(reader))
            (of_change(reader))
            button { (reader.text("console_create")) }
        }
    }
}

/// Creates a token, and shows its text.
pub(in crate::console) async fn create(
    visitor: Visitor,
    fields: Fields,
) -> Result<Response, Failure> {
    let reader = &visitor.reader;
    let mut body = fields.object(&["name", "role", "reason"]);
    if let Some(days) = fields.number("days") {
        body.insert("days".to_owned(), days);
    }
    match visitor
        .post("/api/v1/tokens/create", &json!(body), fields.get("once"))
        .await
    {
        Ok(created) => {
            let content = html! {
                p.warning { (reader.text("console_token_once")) }
                p { (copied(reader, "token", created["secret"].as_str().unwrap_or_default())) }
                p { a href="/settings/tokens" { (reader.text("console_tokens")) } }
            };
            let name = text_of(&created["token"], "name");
            let title = reader.tell("console_created_token", &[("name", &name)]);
            Ok(page(reader, Some(Section::Settings), &title, &content))
        }
        Err(failure) => {
            let failure = failure.of_input()?;
            let page = list_with(&visitor, "", &failure.banner(), Some(&fields)).await?;
            Ok(failure.with_page(page))
        }
    }
}

/// Revokes a token.
pub(in crate::console) async fn revoke(
    visitor: Visitor,
    Path(id): Path<String>,
    fields: Fields,
) -> Result<Response, Failure> {
    let path = format!("/api/v1/tokens/{}/revoke", segment(&id));
    let body = json!(fields.object(&["reason"]));
    visitor.post(&path, &body, fields.get("once")).await?;
    Ok(done("/settings/tokens", "token_revoked"))
}
