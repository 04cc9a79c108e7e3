//! Reads the user's identifier from the provider's profile.

use http::{
    Request, StatusCode,
    header::{ACCEPT, AUTHORIZATION},
};
use serde_json::{Map, Value};

use super::{ProviderFault, http_client::HttpClient};
use crate::{config::ProviderConfig, records::accounts::Username};

/// Requests the profile and returns the identifier in it, byte for byte.
pub(super) async fn username(
    http: &HttpClient,
    provider: &ProviderConfig,
    access_token: &oauth2::AccessToken,
) -> Result<Username, ProviderFault> {
    let request = Request::get(provider.user_url.as_str())
        .header(AUTHORIZATION, format!("Bearer {}", access_token.secret()))
        .header(ACCEPT, "application/json")
        .body(Vec::new())
        // The URL was parsed at start, so the token has characters that are invalid in a header.
        .map_err(|_| ProviderFault::TokenMalformed)?;
    let response = http.send(request).await?;
    if response.status() != StatusCode::OK {
        return Err(ProviderFault::ProfileStatus {
            status: response.status().as_u16(),
        });
    }
    let profile: Map<String, Value> =
        serde_json::from_slice(response.body()).map_err(|_| ProviderFault::ProfileMalformed)?;
    let field = &provider.kind.id_field;
    identifier(profile.get(field)).ok_or_else(|| ProviderFault::NoIdentifier {
        field: field.clone(),
    })
}

/// Accepts a text, or a non-negative whole number, since some providers have numeric ids.
fn identifier(value: Option<&Value>) -> Option<Username> {
    match value? {
        Value::String(text) => Username::new(text.clone()),
        Value::Number(number) if number.is_u64() => Username::new(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_identifier_is_a_text_or_a_whole_number() {
        let of = |value: Value| identifier(Some(&value)).map(|name| name.as_str().to_owned());
        assert_eq!(of(json!("{A-b}")).as_deref(), Some("{A-b}"));
        assert_eq!(of(json!(583_231)).as_deref(), Some("583231"));
        for none in [
            json!(""),
            json!("x".repeat(256)),
            json!(1.5),
            json!(-1),
            json!(null),
            json!(["a"]),
        ] {
            assert!(of(none.clone()).is_none(), "{none}");
        }
        assert!(identifier(None).is_none());
    }
}
