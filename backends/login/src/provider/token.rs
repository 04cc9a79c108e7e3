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
use url::Url;

use super::{
    Endpoints, ProviderFault,
    http_client::{HttpClient, MAX_BODY_BYTES},
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
        async move { http.send(request, MAX_BODY_BYTES).await.map(with_status) }
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

/// GitHub reports errors with status 200: whatever has `error` is a failure.
fn with_status(mut response: Response<Vec<u8>>) -> Response<Vec<u8>> {
    #[derive(Deserialize)]
    struct Refusal {
        #[serde(rename = "error")]
        _error: String,
    }
    if response.status() == StatusCode::OK
        && serde_json::from_slice::<Refusal>(response.body()).is_ok()
    {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    response
}

/// Names the error, if it is a word. Any other text must not be logged: it may be long, contain line breaks, and quote the
/// code or the client secret.
fn rejected(error: &BasicErrorResponseType) -> ProviderFault {
    let code = error.as_ref();
    let is_word = (1..=40).contains(&code.len())
        && code.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_'));
    let error = if is_word { code } else { "another error" }.to_owned();
    match &*error {
        "invalid_client" | "incorrect_client_credentials" | "redirect_uri_mismatch" => {
            ProviderFault::ClientRejected { error }
        }
        _ => ProviderFault::CodeRejected { error },
    }
}
