//! Reads the user's identifier, display name and e-mail address from the provider's record of the user.

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

/// Longest e-mail address in bytes (RFC 5321 section 4.5.3.1.3, without its angle brackets).
const MAX_EMAIL: usize = 254;

/// What is known of a user beside the identifier, as the provider sends it.
#[derive(Debug)]
pub(super) struct Profile {
    /// The name to show.
    pub(super) name: Option<String>,
    /// The e-mail address, which the provider has verified.
    pub(super) email: Option<String>,
}

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
        email: verified_email(&record).filter(is_email),
    })
}

/// The e-mail address, if the provider says that it has verified it (OpenID Connect Core 1.0 section 5.1). Some send a
/// text for the truth.
fn verified_email(record: &RawValue) -> Option<String> {
    let is_verified = ["true", "\"true\""].contains(&member(record, "email_verified")?.get());
    text(member(record, "email")?).filter(|_| is_verified)
}

/// Whether a text can be an address: nothing of it is invisible, and it is kept whole or not at all.
fn is_email(text: &String) -> bool {
    let is_visible = |letter: char| !letter.is_whitespace() && !letter.is_control();
    let is_whole = kept_name(text, MAX_EMAIL).as_ref() == Some(text);
    is_whole && text.contains('@') && text.chars().all(is_visible)
}

/// Asks the provider's user info for the profile of the user whom an ID token names.
pub(super) async fn profile_by_info(
    http: &HttpClient,
    subject: &str,
    user_info: &Url,
    tokens: &Tokens,
) -> Result<Profile, ProviderFault> {
    let record = request(http, user_info, tokens).await?;
    // OpenID Connect Core 1.0 section 5.3.2: otherwise the access token may be another user's.
    match member(&record, "sub").and_then(text) {
        Some(same) if same == subject => Ok(Profile {
            name: member(&record, "name").and_then(text),
            email: verified_email(&record),
        }),
        Some(_) => Err(ProviderFault::OtherUser),
        None => Err(ProviderFault::NoIdentifier {
            field: "sub".to_owned(),
        }),
    }
}

/// The user whom an ID token names.
pub(super) fn by_id_token(subject: String, profile: Profile) -> Result<User, ProviderFault> {
    Ok(User {
        username: Username::new(subject).ok_or_else(|| ProviderFault::NoIdentifier {
            field: "sub".to_owned(),
        })?,
        display_name: profile
            .name
            .and_then(|name| kept_name(&name, MAX_DISPLAY_NAME)),
        email: profile.email.filter(is_email),
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
    fn an_e_mail_address_is_verified_and_whole() {
        let of = |json: &str| {
            let record: &RawValue = serde_json::from_str(json).unwrap();
            verified_email(record).filter(is_email)
        };
        let with = |email: &str| {
            of(&serde_json::json!({"email": email, "email_verified": true}).to_string())
        };
        assert_eq!(with("ada@id.example").as_deref(), Some("ada@id.example"));
        assert!(with("林@例子.example").is_some());
        let text = r#"{"email":"a@b","email_verified":"true"}"#;
        assert_eq!(of(text).as_deref(), Some("a@b"));
        let long = format!("{}@id.example", "x".repeat(255));
        for none in ["", "ada", " a@b", "a@b\n", "a@\u{200b}b", "a b@c", &long] {
            assert_eq!(with(none), None, "{none:?}");
        }
        for none in [
            r#"{"email":"a@b"}"#,
            r#"{"email":"a@b","email_verified":false}"#,
            r#"{"email":"a@b","email_verified":"yes"}"#,
            r#"{"email":"a@b","email_verified":1}"#,
            r#"{"email":7,"email_verified":true}"#,
            r#"{"email_verified":true}"#,
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }

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
