//! Signing in with a token of the API, and out.

use std::net::SocketAddr;

use axum::{
    extract::{ConnectInfo, RawQuery, State},
    response::{IntoResponse, Redirect, Response},
};
use http::{HeaderMap, header};
use maud::html;
use url::{Position, Url};
use zeroize::Zeroizing;

use super::{
    Console, Shared, account,
    failure::{Failure, Page},
    fields::Fields,
    links::{address, parameter},
    page::{Reader, page},
    parts::{field, said},
    session::{Proof, Session},
};
use crate::{
    api::run_for,
    operations::{input::Nothing, tokens::WHOAMI},
};

/// The page to sign in.
pub(super) async fn form(
    State(console): State<Shared>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let mut reader = Reader::of_request(&headers);
    reader.banner = said(&reader, query.as_deref());
    sign_in_page(&console, &reader, &parameter(query.as_deref(), "to"))
}

fn sign_in_page(console: &Console, reader: &Reader, to: &str) -> Response {
    let content = html! {
        @if console.accounts.is_some() {
            p { a.button href=(account::BEGIN) { (reader.text("console_sign_in_account")) } }
        }
        p { (reader.text("console_sign_in_how")) }
        pre { code { "signpost token create --name NAME --role viewer" } }
        form.fields method="post" action="/sign-in" {
            (field(reader, "token", ""))
            input type="hidden" name="to" value=(own_path(to));
            button { (reader.text("console_sign_in_button")) }
        }
    };
    page(reader, None, &reader.text("console_sign_in"), &content)
}

/// Begins a session. One that the browser has had ends.
pub(super) async fn sign_in(
    State(console): State<Shared>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    fields: Fields,
) -> Page {
    let mut reader = Reader::of_request(&headers);
    let given = fields.get("token");
    let proof = Proof::Token(Zeroizing::new(given.to_owned()));
    let who = (proof.clone(), address, reader.language);
    let token = match run_for(&console.operations, &WHOAMI, who, ((), Nothing {})).await {
        Ok(token) => token,
        Err(error) => {
            let failure = Failure::of_logged(&console, &error, reader.clone());
            let failure = match failure.needs_sign_in() {
                true => failure,
                false => failure.of_input()?,
            };
            reader.banner = failure.banner();
            let page = sign_in_page(&console, &reader, fields.get("to"));
            return Ok(failure.with_page(page));
        }
    };
    let _ = console.sessions.end(&headers);
    let (name, role) = (token.name, token.role);
    let cookie = console.sessions.begin(Session { proof, name, role });
    let cookie = cookie.map_err(|_| Failure::internal(reader.clone()))?;
    let to = Redirect::to(&own_path(fields.get("to")));
    Ok(([(header::SET_COOKIE, cookie)], to).into_response())
}

/// Ends the session.
pub(super) async fn sign_out(State(console): State<Shared>, headers: HeaderMap) -> Response {
    let cookie = console.sessions.end(&headers);
    let to = Redirect::to(&address("/sign-in", &[("done", "signed_out")]));
    ([(header::SET_COOKIE, cookie)], to).into_response()
}

/// The path if it is one of the console, otherwise `/`: a link cannot choose another place for a sign-in to lead to.
fn own_path(to: &str) -> String {
    let own = || {
        let base = Url::parse("http://console/").ok()?;
        let url = base.join(to).ok()?;
        let path = &url[Position::BeforePath..Position::AfterQuery];
        // Browsers read two slashes as another host.
        let is_own = url.origin() == base.origin() && !path.starts_with("//");
        is_own.then(|| path.to_owned())
    };
    own().unwrap_or_else(|| "/".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_leads_to_a_path_of_the_console_only() {
        for (to, expected) in [
            ("", "/"),
            ("/apps?search=a%20b&after=x", "/apps?search=a%20b&after=x"),
            ("/apps#there", "/apps"),
            ("//attacker.example/", "/"),
            ("/\\attacker.example/", "/"),
            ("\\\\attacker.example", "/"),
            ("https://attacker.example/", "/"),
            ("javascript:alert(1)", "/"),
            ("/.//attacker.example/", "/"),
            ("/..//attacker.example/", "/"),
            ("/%2e//attacker.example/", "/"),
            ("/apps/.././/attacker.example", "/"),
            ("/\t/attacker.example", "/"),
            ("/a\r\nSet-Cookie: x=y", "/aSet-Cookie:%20x=y"),
        ] {
            assert_eq!(own_path(to), expected, "{to:?}");
        }
    }
}
