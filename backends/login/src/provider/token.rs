//! The token endpoint: exchanges a code. RFC 6749 sections 4.1.3, 5.1 and 5.2.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{
    Request, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use serde_json::value::RawValue;
use url::{Url, form_urlencoded};

use super::{
    Endpoints, ProviderFault,
    http_client::{HttpClient, MAX_BODY_BYTES, is_json},
};
use crate::{
    config::{ClientAuth, ProviderConfig},
    json::{member, text},
};

/// A token response. Each token is read when it is needed; nothing else is.
pub(super) struct Tokens(Box<RawValue>);

impl Tokens {
    /// The access token, to be sent as a bearer token (RFC 6750 section 2.1).
    ///
    /// # Errors
    ///
    /// There is none, or it must not be sent so (RFC 6749 section 7.1). A provider that names no type has only this one.
    pub(super) fn access(&self) -> Result<String, ProviderFault> {
        let other = |kind: &RawValue| {
            let is_bearer = text(kind).is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"));
            kind.get() != "null" && !is_bearer
        };
        if member(&self.0, "token_type").is_some_and(other) {
            return Err(ProviderFault::NotBearer);
        }
        let token = member(&self.0, "access_token").and_then(text);
        // RFC 6749 appendix A.12.
        let is_usable = |token: &String| {
            !token.is_empty() && token.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        };
        token.filter(is_usable).ok_or(ProviderFault::NoAccessToken)
    }

    /// The ID token.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(super) fn id(&self) -> Result<String, ProviderFault> {
        let token = member(&self.0, "id_token").and_then(text);
        token.ok_or(ProviderFault::NoIdToken)
    }
}

/// The request that exchanges a code.
pub(super) fn request(
    config: &ProviderConfig,
    endpoints: &Endpoints<'_>,
    callback: &Url,
    code: &str,
    verifier: Option<&str>,
) -> Request<Vec<u8>> {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "authorization_code");
    form.append_pair("code", code);
    if let Some(verifier) = verifier {
        form.append_pair("code_verifier", verifier);
    }
    if config.sends_redirect_uri {
        form.append_pair("redirect_uri", callback.as_str());
    }
    let mut request = Request::post(endpoints.token.as_str())
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    let (id, secret) = (&config.client_id, config.client_secret.expose());
    match endpoints.client_auth {
        ClientAuth::Basic => {
            // Both are encoded before (RFC 6749 section 2.3.1).
            let encoded = |text: &str| -> String {
                form_urlencoded::byte_serialize(text.as_bytes()).collect()
            };
            let both = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
            request = request.header(AUTHORIZATION, format!("Basic {both}"));
        }
        ClientAuth::Post => {
            form.append_pair("client_id", id);
            form.append_pair("client_secret", secret);
        }
    }
    let request = request.body(form.finish().into_bytes());
    request.expect("a parsed URL is a valid target")
}

/// Exchanges a code.
pub(super) async fn exchange(
    http: &HttpClient,
    request: Request<Vec<u8>>,
) -> Result<Tokens, ProviderFault> {
    let response = http.send(request, MAX_BODY_BYTES).await?;
    let status = response.status();
    let tokens: Option<Box<RawValue>> = serde_json::from_slice(response.body()).ok();
    let error = tokens.as_ref().and_then(|tokens| member(tokens, "error"));
    // An error counts with any status: GitHub sends errors with 200.
    if let Some(error) = error.and_then(text) {
        return Err(rejected(&error));
    }
    if status != StatusCode::OK {
        let status = status.as_u16();
        return Err(ProviderFault::TokenStatus { status });
    }
    if !is_json(response.headers()) {
        return Err(ProviderFault::TokenType);
    }
    let has_error = error.is_some_and(|error| error.get() != "null");
    let tokens = tokens.filter(|tokens| tokens.get().starts_with('{') && !has_error);
    tokens.map(Tokens).ok_or(ProviderFault::TokenMalformed)
}

/// Names the error, if it is a word. Any other text must not be logged: it may be long, contain line breaks, and quote the
/// code or the client secret.
fn rejected(code: &str) -> ProviderFault {
    let is_word = (1..=40).contains(&code.len())
        && code.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_'));
    let error = if is_word { code } else { "another error" }.to_owned();
    match &*error {
        "invalid_client"
        | "unauthorized_client"
        | "incorrect_client_credentials"
        | "invalid_scope"
        | "unsupported_grant_type" => ProviderFault::ClientRejected { error },
        "redirect_uri_mismatch" => ProviderFault::CallbackRejected { error },
        "server_error" | "temporarily_unavailable" => ProviderFault::Unavailable { error },
        _ => ProviderFault::CodeRejected { error },
    }
}
