//! The token endpoint: exchanges a code. RFC 6749 section 4.1.3, implemented by the `oauth2` crate.

use std::fmt;

use http::{Response, StatusCode};
use oauth2::{
    AuthType, AuthUrl, AuthorizationCode, Client, ClientId, ClientSecret, EndpointNotSet,
    EndpointSet, ExtraTokenFields, PkceCodeVerifier, RedirectUrl, RequestTokenError,
    StandardRevocableToken, StandardTokenResponse, TokenResponse, TokenUrl,
    basic::{
        BasicErrorResponse, BasicErrorResponseType, BasicRevocationErrorResponse,
        BasicTokenIntrospectionResponse, BasicTokenType,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use super::{
    Endpoints, ProviderFault,
    http_client::{HttpClient, MAX_BODY_BYTES, is_json},
};
use crate::config::{ClientAuth, ProviderConfig};

/// The client of one provider.
pub(super) type OAuthClient = Client<
    BasicErrorResponse,
    StandardTokenResponse<IdTokenField, BasicTokenType>,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
>;

/// What OpenID Connect adds to a token response.
#[derive(Deserialize, Serialize)]
pub(super) struct IdTokenField {
    #[serde(skip_serializing_if = "Option::is_none")]
    id_token: Option<String>,
}

impl ExtraTokenFields for IdTokenField {}

impl fmt::Debug for IdTokenField {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("IdTokenField(…)")
    }
}

/// The tokens for a code.
pub(super) struct Tokens {
    pub(super) access: oauth2::AccessToken,
    pub(super) id: Option<String>,
}

/// Creates the client of a provider.
pub(super) fn client(
    config: &ProviderConfig,
    endpoints: &Endpoints<'_>,
    callback: &Url,
) -> OAuthClient {
    let client = Client::new(ClientId::new(config.client_id.clone()))
        .set_client_secret(ClientSecret::new(config.client_secret.expose().to_owned()))
        .set_auth_type(match endpoints.client_auth {
            ClientAuth::Basic => AuthType::BasicAuth,
            ClientAuth::Post => AuthType::RequestBody,
        })
        .set_auth_uri(AuthUrl::from_url(endpoints.authorize.clone()))
        .set_token_uri(TokenUrl::from_url(endpoints.token.clone()));
    // If set, the crate sends it in both calls.
    match config.sends_redirect_uri {
        true => client.set_redirect_uri(RedirectUrl::from_url(callback.clone())),
        false => client,
    }
}

/// Exchanges a code.
pub(super) async fn exchange(
    client: &OAuthClient,
    http: &HttpClient,
    code: String,
    verifier: Option<PkceCodeVerifier>,
) -> Result<Tokens, ProviderFault> {
    let mut request = client.exchange_code(AuthorizationCode::new(code));
    if let Some(verifier) = verifier {
        request = request.set_pkce_verifier(verifier);
    }
    let http = http.clone();
    let send = move |request| {
        let http = http.clone();
        async move { http.send(request, MAX_BODY_BYTES).await.and_then(judged) }
    };
    match request.request_async(&send).await {
        Ok(response) => Ok(Tokens {
            access: response.access_token().clone(),
            id: response.extra_fields().id_token.clone(),
        }),
        Err(RequestTokenError::Request(fault)) => Err(fault),
        Err(RequestTokenError::ServerResponse(refusal)) => Err(rejected(refusal.error())),
        // The causes are dropped: they quote the response, which may contain a token.
        Err(RequestTokenError::Parse(..) | RequestTokenError::Other(_)) => {
            Err(ProviderFault::TokenMalformed)
        }
    }
}

/// The crate reads a response with an error code, with any status: GitHub sends errors with 200. Any other response must have
/// status 200 and be JSON.
fn judged(mut response: Response<Vec<u8>>) -> Result<Response<Vec<u8>>, ProviderFault> {
    let status = response.status();
    let members = serde_json::from_slice::<Map<String, Value>>(response.body());
    let error = members.ok().and_then(|mut members| members.remove("error"));
    if let Some(Value::String(_)) = error {
        if status == StatusCode::OK {
            *response.status_mut() = StatusCode::BAD_REQUEST;
        }
        Ok(response)
    } else if status != StatusCode::OK {
        let status = status.as_u16();
        Err(ProviderFault::TokenStatus { status })
    } else if !is_json(response.headers()) {
        Err(ProviderFault::TokenType)
    } else if error.is_some_and(|error| !error.is_null()) {
        Err(ProviderFault::TokenMalformed)
    } else {
        Ok(response)
    }
}

/// Names the error, if it is a word. Any other text must not be logged: it may be long, contain line breaks, and quote the
/// code or the client secret.
fn rejected(error: &BasicErrorResponseType) -> ProviderFault {
    let code = error.as_ref();
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
