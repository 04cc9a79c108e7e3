//! Reads the user's identifier and display name from the provider's profile.

use http::{
    Request, StatusCode,
    header::{ACCEPT, AUTHORIZATION},
};
use serde_json::{Map, Value};
use signpost_protocol::app::is_invisible;

use super::{ProviderFault, http_client::HttpClient};
use crate::{
    config::ProviderConfig,
    records::accounts::{User, Username},
};

/// Longest display name in bytes.
const MAX_DISPLAY_NAME: usize = 255;

/// Requests the profile and returns the user in it: the identifier byte for byte.
pub(super) async fn user(
    http: &HttpClient,
    provider: &ProviderConfig,
    access_token: &oauth2::AccessToken,
) -> Result<User, ProviderFault> {
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
    let kind = &provider.kind;
    let username = identifier(profile.get(&kind.id_field));
    let display_name = kind.display_name_field.as_ref();
    Ok(User {
        username: username.ok_or_else(|| ProviderFault::NoIdentifier {
            field: kind.id_field.clone(),
        })?,
        display_name: display_name.and_then(|field| display_name_in(profile.get(field))),
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

/// The text without invisible characters, cut to [`MAX_DISPLAY_NAME`] bytes; `None` if it is none, or nothing is left.
fn display_name_in(value: Option<&Value>) -> Option<String> {
    let letters = value?.as_str()?.chars();
    let shown: String = letters.filter(|letter| !is_invisible(*letter)).collect();
    let shown = shown.trim();
    let name = shown[..shown.floor_char_boundary(MAX_DISPLAY_NAME)].trim_end();
    (!name.is_empty()).then(|| name.to_owned())
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

    #[test]
    fn a_display_name_is_a_text_that_changes_nothing_around_it() {
        let of = |value: Value| display_name_in(Some(&value));
        let long = "林".repeat(100);
        for (found, shown) in [
            ("Ada Lovelace", "Ada Lovelace"),
            ("  João “Zé”\t\n", "João “Zé”"),
            ("a\u{202e}b\u{2066}c\u{0}\u{85}d\u{feff}\u{e0041}", "abcd"),
            (&long, &long[..255]),
            (&format!("{} b", "a".repeat(254)), &"a".repeat(254)),
        ] {
            assert_eq!(of(json!(found)).as_deref(), Some(shown));
        }
        for none in [
            json!(""),
            json!(" \u{200f}\n"),
            json!(7),
            json!(null),
            json!(["a"]),
        ] {
            assert!(of(none.clone()).is_none(), "{none}");
        }
        assert!(display_name_in(None).is_none());
    }
}
