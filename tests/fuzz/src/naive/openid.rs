//! What `OpenID` providers may say. Source: RFC 7515, RFC 7517 and RFC 7518, OIDC Core 2 and 3.1.3.7, OIDC Discovery 3.

use serde_json::{Value, value::RawValue};
use signpost_openid::Expected;

use super::json;

/// Whether something is accepted. `None` if these rules do not say.
pub type Verdict = Option<bool>;

const MAX_DOCUMENT: usize = 65_536;
const MAX_TOKEN: usize = 16_384;

/// Whether a discovery document of an issuer is accepted.
#[must_use]
pub fn discovery(document: &[u8], issuer: &str) -> Verdict {
    if document.len() > MAX_DOCUMENT || !is_object(document) {
        return Some(false);
    }
    let document = json::read(document)?;
    if document["issuer"] != issuer || issuer.contains('{') {
        return Some(false);
    }
    let is_local = match url(issuer, Some(true)) {
        Some(true) => Some(issuer.starts_with("http://")),
        other => other,
    };
    let endpoint = |name: &str, is_required: bool| match &document[name] {
        Value::Null => Some(!is_required),
        Value::String(text) => url(text, is_local),
        _ => Some(false),
    };
    let has_any = |name: &str, items: &[&str]| match &document[name] {
        Value::Null => Some(true),
        Value::Array(found) => Some(
            found.iter().all(Value::is_string)
                && items.iter().any(|item| found.contains(&Value::from(*item))),
        ),
        _ => Some(false),
    };
    let sends_iss = &document["authorization_response_iss_parameter_supported"];
    all(&[
        endpoint("authorization_endpoint", true),
        endpoint("token_endpoint", true),
        endpoint("jwks_uri", true),
        endpoint("userinfo_endpoint", false),
        has_any("response_types_supported", &["code"]),
        has_any(
            "token_endpoint_auth_methods_supported",
            &["client_secret_basic", "client_secret_post"],
        ),
        has_any(
            "id_token_signing_alg_values_supported",
            &["RS256", "ES256", "EdDSA"],
        ),
        Some(sends_iss.is_null() || sends_iss.is_boolean()),
        texts_or_absent(&document["code_challenge_methods_supported"]),
    ])
}

/// The number of usable keys in a set; 0 if it is rejected.
#[must_use]
pub fn usable_keys(document: &[u8]) -> Option<usize> {
    if document.len() > MAX_DOCUMENT || !is_object(document) {
        return Some(0);
    }
    let set = json::read(document)?;
    let keys = set["keys"].as_array();
    let keys = keys.filter(|keys| keys.len() <= 100);
    Some(keys.map_or(0, |keys| keys.iter().filter(|key| is_usable(key)).count()))
}

/// Whether a key in a set has this `x`.
#[must_use]
pub fn has_point(document: &[u8], x: &Value) -> Verdict {
    let set: Value = serde_json::from_slice(document).ok()?;
    Some(set["keys"].as_array()?.iter().any(|key| key["x"] == *x))
}

/// Whether an ID token is well-formed.
#[must_use]
pub fn token(text: &str) -> Verdict {
    let parts: Vec<_> = text.split('.').map(bytes).collect();
    let [Some(header), Some(_), Some(_)] = &parts[..] else {
        return Some(false);
    };
    if text.len() > MAX_TOKEN || !is_object(header) {
        return Some(false);
    }
    let header = json::read(header)?;
    let has = |name| header.get(name).is_some();
    let media_type = match &header["typ"] {
        Value::Null => true,
        Value::String(name) => ["jwt", "application/jwt"].contains(&&name.to_ascii_lowercase()[..]),
        _ => false,
    };
    Some(
        ["RS256", "ES256", "EdDSA"].contains(&header["alg"].as_str().unwrap_or_default())
            && !has("crit")
            && !has("b64")
            && media_type
            && is_key_id(&header["kid"]),
    )
}

/// Whether signed claims name a user.
#[must_use]
pub fn claims(payload: &str, expected: &Expected<'_>) -> Verdict {
    if !is_object(payload.as_bytes()) {
        return Some(false);
    }
    let claims = json::read(payload.as_bytes())?;
    let audiences = match &claims["aud"] {
        Value::Array(several) => several.clone(),
        one => vec![one.clone()],
    };
    let party = &claims["azp"];
    let now = expected.now as f64;
    let time = |name: &str| claims[name].as_f64();
    let subject = claims["sub"].as_str().unwrap_or_default();
    let is_visible = |letter: char| letter.is_ascii_graphic() || letter == ' ';
    Some(
        claims["iss"] == expected.issuer
            && claims["nonce"] == expected.nonce
            && audiences.iter().all(Value::is_string)
            && audiences.contains(&Value::from(expected.client_id))
            && (*party == expected.client_id || (party.is_null() && audiences.len() == 1))
            && time("exp").is_some_and(|time| time > now - 60.0)
            && time("iat").is_some()
            && (claims["nbf"].is_null() || time("nbf").is_some_and(|time| time <= now + 60.0))
            && (1..=255).contains(&subject.len())
            && subject.chars().all(is_visible),
    )
}

fn is_object(text: &[u8]) -> bool {
    let value = serde_json::from_slice::<&RawValue>(text);
    value.is_ok_and(|value| value.get().starts_with('{'))
}

fn all(verdicts: &[Verdict]) -> Verdict {
    if verdicts.contains(&Some(false)) {
        return Some(false);
    }
    verdicts.iter().all(Option::is_some).then_some(true)
}

fn texts_or_absent(value: &Value) -> Verdict {
    let are_texts = |items: &Vec<Value>| items.iter().all(Value::is_string);
    Some(value.is_null() || value.as_array().is_some_and(are_texts))
}

/// Whether a URL is safe: only for URLs of the plainest form and for what is wrong at first sight.
fn url(text: &str, may_be_local: Verdict) -> Verdict {
    let lower = text.to_ascii_lowercase();
    let is_visible = text.chars().all(|letter| letter.is_ascii_graphic());
    if !is_visible || text.contains('#') || text.len() > 2_048 || !lower.starts_with("http") {
        return Some(false);
    }
    let (scheme, rest) = text.split_once("://")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_plain = path.chars().all(|letter| letter.is_ascii_alphanumeric());
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|letter| letter.is_ascii_lowercase());
    if host.contains('@') {
        return Some(false);
    }
    if !is_plain || !host.split('.').all(is_name) {
        return None;
    }
    match scheme {
        "https" => Some(true),
        "http" if host == "localhost" || host.ends_with(".localhost") => may_be_local,
        "http" => Some(false),
        _ => None,
    }
}

fn is_usable(key: &Value) -> bool {
    let part = |name: &str| key[name].as_str().and_then(bytes).unwrap_or_default();
    let is_point = |name: &str| part(name).len() == 32;
    let is = |name: &str, value: &str| key[name] == value;
    let (is_key, algorithm) = match key["kty"].as_str() {
        Some("RSA") => (is_rsa(&part("n"), &part("e")), "RS256"),
        Some("EC") => (
            is("crv", "P-256") && is_point("x") && is_point("y"),
            "ES256",
        ),
        Some("OKP") => (is("crv", "Ed25519") && is_point("x"), "EdDSA"),
        _ => (false, ""),
    };
    let is_or_absent = |name: &str, value: &str| key[name].is_null() || is(name, value);
    let operations = &key["key_ops"];
    let verifies = operations.is_null()
        || texts_or_absent(operations) == Some(true)
            && operations
                .as_array()
                .is_some_and(|all| all.contains(&Value::from("verify")));
    let has_id = is_key_id(&key["kid"]);
    is_key && is_or_absent("alg", algorithm) && is_or_absent("use", "sig") && verifies && has_id
}

fn is_rsa(modulus: &[u8], exponent: &[u8]) -> bool {
    let bits = |bytes: &[u8]| {
        let bits: Vec<_> = bytes
            .iter()
            .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1))
            .skip_while(|bit| *bit == 0)
            .collect();
        bits
    };
    let (n, e) = (bits(modulus), bits(exponent));
    let are_odd = n.last() == Some(&1) && e.last() == Some(&1);
    are_odd && (2_048..=8_192).contains(&n.len()) && (2..=33).contains(&e.len())
}

fn is_key_id(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|id| id.len() <= 255)
}

/// Decodes base64url without padding, letter by letter.
fn bytes(text: &str) -> Option<Vec<u8>> {
    const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut bits = Vec::new();
    for letter in text.chars() {
        let value = LETTERS.find(letter)?;
        bits.extend((0..6).rev().map(|at| value >> at & 1 == 1));
    }
    let (whole, rest) = bits.split_at(bits.len() / 8 * 8);
    if rest.len() > 4 || rest.contains(&true) {
        return None;
    }
    let byte = |bits: &[bool]| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
    Some(whole.chunks(8).map(byte).collect())
}
