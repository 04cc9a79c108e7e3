//! Reads the user's identifier and display name from the provider's record of the user.

use http::{
    Request, StatusCode,
    header::{ACCEPT, AUTHORIZATION},
};
use serde_json::{Map, Value};
use signpost_protocol::app::is_invisible;
use url::Url;

use super::{
    ProviderFault,
    http_client::{HttpClient, MAX_BODY_BYTES, is_json},
};
use crate::{
    config::OAuthSettings,
    records::accounts::{User, Username},
};

/// Longest display name in bytes.
const MAX_DISPLAY_NAME: usize = 255;

/// Requests the record and returns the user in it: the identifier byte for byte.
pub(super) async fn by_record(
    http: &HttpClient,
    settings: &OAuthSettings,
    access_token: &oauth2::AccessToken,
) -> Result<User, ProviderFault> {
    let record = request(http, &settings.user_url, access_token).await?;
    let fields = &settings.display_name_fields;
    let username = identifier(settings.id_field.find(&record));
    Ok(User {
        username: username.ok_or_else(|| ProviderFault::NoIdentifier {
            field: settings.id_field.to_string(),
        })?,
        display_name: fields
            .iter()
            .find_map(|field| shown(field.find(&record)?.as_str()?)),
    })
}

/// Asks the provider's user info for the name to show of the user whom an ID token names.
pub(super) async fn name_by_info(
    http: &HttpClient,
    subject: &str,
    user_info: &Url,
    access_token: &oauth2::AccessToken,
) -> Result<Option<String>, ProviderFault> {
    let record = request(http, user_info, access_token).await?;
    // OpenID Connect Core 1.0 section 5.3.2: otherwise the access token may be another user's.
    if record.get("sub").and_then(Value::as_str) != Some(subject) {
        return Err(ProviderFault::OtherUser);
    }
    Ok(record
        .get("name")
        .and_then(Value::as_str)
        .map(str::to_owned))
}

/// The user whom an ID token names.
pub(super) fn by_id_token(subject: String, name: Option<&str>) -> Result<User, ProviderFault> {
    Ok(User {
        username: Username::new(subject).ok_or_else(|| ProviderFault::NoIdentifier {
            field: "sub".to_owned(),
        })?,
        display_name: name.and_then(shown),
    })
}

async fn request(
    http: &HttpClient,
    url: &Url,
    access_token: &oauth2::AccessToken,
) -> Result<Map<String, Value>, ProviderFault> {
    let request = Request::get(url.as_str())
        .header(AUTHORIZATION, format!("Bearer {}", access_token.secret()))
        .header(ACCEPT, "application/json")
        .body(Vec::new())
        // The URL was parsed before, so the token has characters that are invalid in a header.
        .map_err(|_| ProviderFault::TokenMalformed)?;
    let response = http.send(request, MAX_BODY_BYTES).await?;
    if response.status() != StatusCode::OK {
        return Err(ProviderFault::UserStatus {
            status: response.status().as_u16(),
        });
    }
    if !is_json(response.headers()) {
        return Err(ProviderFault::UserType);
    }
    serde_json::from_slice(response.body()).map_err(|_| ProviderFault::UserMalformed)
}

/// Accepts a text, or a non-negative whole number, since some providers have numeric ids: all its digits. What JSON's
/// reader holds as a fraction has lost digits, and is none.
fn identifier(value: Option<&Value>) -> Option<Username> {
    match value? {
        Value::String(text) => Username::new(text.clone()),
        Value::Number(number) if number.is_u64() => Username::new(number.to_string()),
        _ => None,
    }
}

/// The text without invisible characters, cut to [`MAX_DISPLAY_NAME`] bytes; `None` if nothing is left.
fn shown(text: &str) -> Option<String> {
    let shown: String = text
        .chars()
        .filter(|letter| !is_invisible(*letter))
        .collect();
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
        let of = |json: &str| {
            let value: Value = serde_json::from_str(json).unwrap();
            identifier(Some(&value)).map(|name| name.as_str().to_owned())
        };
        assert_eq!(of("\"{A-b}\"").as_deref(), Some("{A-b}"));
        // More digits than a float holds.
        for number in ["583231", "0", "9007199254740993", "18446744073709551615"] {
            assert_eq!(of(number).as_deref(), Some(number));
        }
        let long = format!("{:?}", "x".repeat(256));
        for none in [
            "\"\"",
            &long,
            "1.5",
            "1.0",
            "1e3",
            "-1",
            "null",
            "[\"a\"]",
            "true",
            "18446744073709551616",
        ] {
            assert!(of(none).is_none(), "{none}");
        }
        assert!(identifier(None).is_none());
        assert_eq!(identifier(Some(&json!(7))).unwrap().as_str(), "7");
    }

    #[test]
    fn a_display_name_is_a_text_that_changes_nothing_around_it() {
        let long = "林".repeat(100);
        for (found, expected) in [
            ("Ada Lovelace", "Ada Lovelace"),
            ("  João “Zé”\t\n", "João “Zé”"),
            ("a\u{202e}b\u{2066}c\u{0}\u{85}d\u{feff}\u{e0041}", "abcd"),
            (&long, &long[..255]),
            (&format!("{} b", "a".repeat(254)), &"a".repeat(254)),
        ] {
            assert_eq!(shown(found).as_deref(), Some(expected));
        }
        for none in ["", " \u{200f}\n"] {
            assert!(shown(none).is_none(), "{none}");
        }
    }
}
