//! Tokens of the management API.

use axum::{
    extract::{Path, RawQuery},
    response::Response,
};
use maud::{Markup, html};

use crate::{
    administration::{
        printable::printable,
        tokens::{Role, Token},
    },
    api::ApiError,
    console::{
        apps::copied,
        failure::Failure,
        fields::Fields,
        page::{Reader, Section, page},
        parts::{Field, choice, done, moment, next_page, of_change, said, state, table_of},
        visitor::Visitor,
    },
    operations::{
        input::{PageInput, Why},
        tokens::{self, NewTokenInput, TokenId},
    },
};

/// Lists them.
pub(in crate::console) async fn list(
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let query = query.as_deref();
    let input = Fields::of_query(query)
        .page()
        .map_err(|error| visitor.refused(&error))?;
    let banner = said(&visitor.reader, query);
    list_with(&visitor, input, &banner, None).await
}

async fn list_with(
    visitor: &Visitor,
    input: PageInput,
    banner: &Markup,
    given: Option<&Fields>,
) -> Result<Response, Failure> {
    let reader = &visitor.reader;
    let tokens = visitor.run(&tokens::LIST, (), input).await?;
    let content = html! {
        (banner)
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
                td { @if reader.may(Role::Admin) && token.revoked_at.is_none() { (revocation(reader, token)) } }
            } }
        }))
        (next_page(reader, "/settings/tokens", &[], tokens.next.as_deref()))
        @if reader.may(Role::Admin) { (new_form(reader, given)) }
    };
    let title = reader.text("console_tokens");
    Ok(page(reader, Some(Section::Settings), &title, &content))
}

fn revocation(reader: &Reader, token: &Token) -> Markup {
    html! {
        details {
            summary { (reader.word("change", "revoke")) }
            form.fields method="post" action={ "/settings/tokens/" (token.id) "/revoke" } {
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
    match visitor.submit(&tokens::CREATE, (), new_of(&fields)).await {
        Ok(created) => {
            let content = html! {
                p.warning { (reader.text("console_token_once")) }
                p { (copied(reader, "token", &created.secret)) }
                p { a href="/settings/tokens" { (reader.text("console_tokens")) } }
            };
            let name = printable(&created.token.name);
            let title = reader.tell("console_created_token", &[("name", &name)]);
            Ok(page(reader, Some(Section::Settings), &title, &content))
        }
        Err(failure) => {
            let failure = failure.of_input()?;
            let first = PageInput::default();
            let page = list_with(&visitor, first, &failure.banner(), Some(&fields)).await?;
            Ok(failure.with_page(page))
        }
    }
}

fn new_of(fields: &Fields) -> Result<NewTokenInput, ApiError> {
    Ok(NewTokenInput {
        name: fields.get("name").to_owned(),
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
) -> Result<Response, Failure> {
    let token: TokenId = visitor.target(&id)?;
    let why = fields.value("reason").map(|reason| Why { reason });
    visitor.submit(&tokens::REVOKE, token, why).await?;
    Ok(done("/settings/tokens", "token_revoked"))
}
