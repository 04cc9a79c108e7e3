//! Reads the user's identifier and display name from the provider's record of the user.

use http::{
    Request, StatusCode,
    header::{ACCEPT, AUTHORIZATION},
};
use serde_json::value::RawValue;
use signpost_protocol::app::kept_name;
use url::Url;

use super::{
    ProviderFault,
    http_client::{HttpClient, MAX_BODY_BYTES, is_json},
    token::Tokens,
};
use crate::{
    config::OAuthSettings,
    json::{member, text},
    records::accounts::{User, Username},
};

/// Longest display name in bytes.
const MAX_DISPLAY_NAME: usize = 255;

/// Requests the record and returns the user in it: the identifier byte for byte.
pub(super) async fn by_record(
    http: &HttpClient,
    settings: &OAuthSettings,
    tokens: &Tokens,
) -> Result<User, ProviderFault> {
    let record = request(http, &settings.user_url, tokens).await?;
    let fields = &settings.display_name_fields;
    let username = identifier(settings.id_field.find(&record));
    Ok(User {
        username: username.ok_or_else(|| ProviderFault::NoIdentifier {
            field: settings.id_field.to_string(),
        })?,
        display_name: fields
            .iter()
            .find_map(|field| kept_name(&text(field.find(&record)?)?, MAX_DISPLAY_NAME)),
    })
}

/// Asks the provider's user info for the name to show of the user whom an ID token names.
pub(super) async fn name_by_info(
    http: &HttpClient,
    subject: &str,
    user_info: &Url,
    tokens: &Tokens,
) -> Result<Option<String>, ProviderFault> {
    let record = request(http, user_info, tokens).await?;
    // OpenID Connect Core 1.0 section 5.3.2: otherwise the access token may be another user's.
    match member(&record, "sub").and_then(text) {
        Some(same) if same == subject => Ok(member(&record, "name").and_then(text)),
        Some(_) => Err(ProviderFault::OtherUser),
        None => Err(ProviderFault::NoIdentifier {
            field: "sub".to_owned(),
        }),
    }
}

/// The user whom an ID token names.
pub(super) fn by_id_token(subject: String, name: Option<&str>) -> Result<User, ProviderFault> {
    Ok(User {
        username: Username::new(subject).ok_or_else(|| ProviderFault::NoIdentifier {
            field: "sub".to_owned(),
        })?,
        display_name: name.and_then(|name| kept_name(name, MAX_DISPLAY_NAME)),
    })
}

async fn request(
    http: &HttpClient,
    url: &Url,
    tokens: &Tokens,
) -> Result<Box<RawValue>, ProviderFault> {
    let request = Request::get(url.as_str())
        .header(AUTHORIZATION, format!("Bearer {}", tokens.access()?))
        .header(ACCEPT, "application/json")
        .body(Vec::new())
        .expect("a parsed URL is a valid target, and the token is printable");
    let response = http.send(request, MAX_BODY_BYTES).await?;
    if response.status() != StatusCode::OK {
        return Err(ProviderFault::UserStatus {
            status: response.status().as_u16(),
        });
    }
    if !is_json(response.headers()) {
        return Err(ProviderFault::UserType);
    }
    let record: Option<Box<RawValue>> = serde_json::from_slice(response.body()).ok();
    let record = record.filter(|record| record.get().starts_with('{'));
    record.ok_or(ProviderFault::UserMalformed)
}

/// Accepts a text, or a whole number, since some providers have numeric ids: its digits as they stand. `1.0` and `1e3` are
/// none: another writer of JSON has other digits for them.
fn identifier(value: Option<&RawValue>) -> Option<Username> {
    let json = value?.get();
    let digits = json.strip_prefix('-').unwrap_or(json);
    match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Username::new(json.to_owned()),
        false => value.and_then(text).and_then(Username::new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_a_text_or_a_whole_number() {
        let of = |json: &str| {
            let value: &RawValue = serde_json::from_str(json).unwrap();
            identifier(Some(value)).map(|name| name.as_str().to_owned())
        };
        assert_eq!(of("\"{A-b}\"").as_deref(), Some("{A-b}"));
        // More digits than any number of this machine holds.
        let longest = "9".repeat(255);
        for number in [
            "583231",
            "0",
            "-1",
            "9007199254740993",
            "18446744073709551616",
            "-340282366920938463463374607431768211457",
            &longest,
        ] {
            assert_eq!(of(number).as_deref(), Some(number));
        }
        let long = format!("{:?}", "x".repeat(256));
        for none in [
            "\"\"",
            &long,
            "1.5",
            "1.0",
            "1e3",
            "-1E+3",
            "null",
            "[\"a\"]",
            "true",
            &"9".repeat(256),
        ] {
            assert!(of(none).is_none(), "{none}");
        }
        assert!(identifier(None).is_none());
    }
}
