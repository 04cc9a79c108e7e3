//! Tokens of the management API.

use axum::extract::{Path, RawQuery};
use maud::{Markup, html};

use crate::{
    administration::{printable::printable, tokens::Role},
    api::ApiError,
    console::{
        apps::copied,
        failure::Page,
        fields::Fields,
        page::{Reader, Section, page},
        parts::{choice, done, field, folded, moment, of_change, pages, state, table_of},
        visitor::Visitor,
    },
    operations::{
        input::Why,
        tokens::{self, NewTokenInput, TokenId},
    },
};

/// Lists them.
pub(in crate::console) async fn list(visitor: Visitor, RawQuery(query): RawQuery) -> Page {
    let (reader, query) = (&visitor.reader, Fields::of_query(query.as_deref()));
    let input = query.page().map_err(|error| visitor.refused(&error))?;
    let tokens = visitor.run(&tokens::LIST, (), input).await?;
    let content = html! {
        (table_of(reader, &[
            "console_name", "console_role", "console_created", "console_last_used", "console_ends", "",
        ], &html! {
            @for token in &tokens.items { tr {
                th scope="row" { (printable(&token.name)) }
                td { (reader.word("role", token.role.as_str())) }
                td { (moment(token.created_at)) " " span.quiet { (printable(&token.created_by)) } }
                td { (moment(token.last_used_at)) }
                td {
                    @if token.revoked_at.is_none() { (moment(token.expires_at)) }
                    @else { (state(reader, "state", "revoked")) " " (moment(token.revoked_at)) }
                }
                td { @if reader.may(Role::Admin) && token.revoked_at.is_none() { (revocation(reader, token.id)) } }
            } }
        }))
        (pages(reader, "/settings/tokens", &[], (&query, tokens.next.as_deref())))
        @if reader.may(Role::Admin) { (new_form(&reader.of_form("/settings/tokens"))) }
    };
    let title = reader.text("console_tokens");
    Ok(page(reader, Some(Section::Settings), &title, &content))
}

fn revocation(reader: &Reader, token: i64) -> Markup {
    let address = format!("/settings/tokens/{token}/revoke");
    folded(reader, ("revoke", &address), |_| html! {})
}

fn new_form(reader: &Reader) -> Markup {
    let roles = Role::ALL.map(|role| (role.as_str(), reader.word("role", role.as_str())));
    html! {
        h2 { (reader.text("console_new_token")) }
        form.fields method="post" action="/settings/tokens" {
            (field(reader, "token_name", ""))
            (choice(reader, "role", &roles, "viewer"))
            (field(reader, "days", "90"))
            (of_change(reader))
            button { (reader.text("console_create")) }
        }
    }
}

/// Creates a token, and shows its text.
pub(in crate::console) async fn create(visitor: Visitor, fields: Fields) -> Page {
    let created = visitor.submit(&tokens::CREATE, (), new_of(&fields)).await;
    let done = created.map(|created| {
        let (reader, name) = (&visitor.reader, printable(&created.token.name));
        let content = html! {
            p.warning { (reader.text("console_token_once")) }
            p { (copied(reader, "token", &created.secret)) }
            p { a href="/settings/tokens" { (reader.text("console_tokens")) } }
        };
        let title = reader.tell("console_created_token", &[("name", &name)]);
        page(reader, Some(Section::Settings), &title, &content)
    });
    let first = |visitor| list(visitor, RawQuery(None));
    visitor.or_again(done, fields, first).await
}

fn new_of(fields: &Fields) -> Result<NewTokenInput, ApiError> {
    Ok(NewTokenInput {
        name: fields.get("token_name").to_owned(),
        role: fields.required("role")?,
        days: fields.count("days")?,
        reason: fields.value("reason")?,
    })
}

/// Revokes a token.
pub(in crate::console) async fn revoke(
    visitor: Visitor,
    Path(id): Path<String>,
    fields: Fields,
) -> Page {
    let token: TokenId = visitor.target(&id)?;
    let why = fields.value("reason").map(|reason| Why { reason });
    let revoked = visitor.submit(&tokens::REVOKE, token, why).await;
    let done = revoked.map(|_| done("/settings/tokens", "token_revoked"));
    // The page on which the token is the first one.
    let query = format!("after={}", token.id.saturating_sub(1));
    let show = |visitor| list(visitor, RawQuery(Some(query)));
    visitor.or_again(done, fields, show).await
}
