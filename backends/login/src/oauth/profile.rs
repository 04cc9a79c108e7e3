//! Who the person is, as the provider's profile says.

use http::{
    Request, StatusCode,
    header::{ACCEPT, AUTHORIZATION},
};
use serde_json::{Map, Value};

use super::{ProviderFault, http_client::HttpClient};
use crate::{accounts::Username, config::ProviderConfig};

/// Asks for the profile and takes the identifier out of it, byte for byte.
pub(super) async fn username(
    http: &HttpClient,
    provider: &ProviderConfig,
    access_token: &oauth2::AccessToken,
) -> Result<Username, ProviderFault> {
    let request = Request::get(provider.user_url.as_str())
        .header(AUTHORIZATION, format!("Bearer {}", access_token.secret()))
        .header(ACCEPT, "application/json")
        .body(Vec::new())
        // The address was parsed at start, so it is the token that no header can carry.
        .map_err(|_| ProviderFault::TokenMalformed)?;
    let answer = http.send(request).await?;
    if answer.status() != StatusCode::OK {
        return Err(ProviderFault::ProfileStatus {
            status: answer.status().as_u16(),
        });
    }
    let profile: Map<String, Value> =
        serde_json::from_slice(answer.body()).map_err(|_| ProviderFault::ProfileMalformed)?;
    let field = &provider.kind.id_field;
    identifier(profile.get(field)).ok_or_else(|| ProviderFault::NoIdentifier {
        field: field.clone(),
    })
}

/// A text as it is, or a whole number in decimal digits: some providers number people.
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
