//! A signer written from the text of CONTRACT 3 alone.
//!
//! It shares no code with the gateway's, so that the two check each other: a misreading in one of them
//! shows in the vectors.

use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use serde::Deserialize;
use sha2::Sha256;

/// A sign profile, in the form of the vectors and of the gateway's configuration.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// Whether values are signed as sent or decoded.
    pub values: Values,
    /// How pairs and key are joined.
    pub layout: Layout,
    /// What happens to pairs without a value.
    pub empty: Empty,
    /// Parameters that are not signed, besides `sign`.
    pub leave_out: Vec<String>,
    /// Whether method and path are signed too.
    pub cover: Cover,
    /// The hash or HMAC of the signature.
    pub algorithm: Algorithm,
    /// Only in the vectors: method and path lines, if the request is covered.
    pub head: String,
}

/// The HMAC-SHA-256 of a text, in hex.
#[must_use]
pub fn hmac_hex(key: &str, text: &[u8]) -> String {
    let mut hash = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("a key of any length");
    hash.update(text);
    hex(&hash.finalize().into_bytes())
}

/// The SHA-256 of a body, in hex.
#[must_use]
pub fn sha256_hex(body: &[u8]) -> String {
    hex(&Sha256::digest(body))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `values`
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the contract's table has a line on each")]
pub enum Values {
    #[default]
    Wire,
    Decoded,
}

/// `layout`
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the contract's table has a line on each")]
pub enum Layout {
    #[default]
    Pairs,
    PairsKey,
    Concat,
    ConcatBoth,
}

/// `empty`
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the contract's table has a line on each")]
pub enum Empty {
    #[default]
    Keep,
    Drop,
}

/// `cover`
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the contract's table has a line on each")]
pub enum Cover {
    #[default]
    Parameters,
    Request,
}

/// `algorithm`
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the contract's table has a line on each")]
pub enum Algorithm {
    #[default]
    Md5,
    HmacSha256,
}

/// A request to sign.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// `GET` or `POST`.
    pub method: &'a str,
    /// The path, as sent.
    pub path: &'a str,
    /// The query, without the question mark.
    pub query: &'a str,
    /// The form.
    pub body: &'a str,
}

/// The signature of a request, in lower-case hex.
///
/// # Panics
///
/// When a parameter does not decode to UTF-8: such a request has no signature.
#[must_use]
pub fn sign(profile: &Profile, key: &str, request: Request<'_>) -> String {
    let canonical = canonical(profile, key, request);
    match profile.algorithm {
        Algorithm::Md5 => md5_hex(&canonical),
        Algorithm::HmacSha256 => {
            let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes())
                .expect("HMAC accepts keys of any length");
            mac.update(canonical.as_bytes());
            hex::encode(mac.finalize().into_bytes())
        }
    }
}

/// The MD5 of a text, in lower-case hex, for tests that sign incorrectly.
#[must_use]
pub fn md5_hex(text: &str) -> String {
    hex::encode(Md5::digest(text))
}

/// The canonical string, with `key` in place of the key.
///
/// # Panics
///
/// See [`sign`].
#[must_use]
pub fn canonical(profile: &Profile, key: &str, request: Request<'_>) -> String {
    let mut pairs: Vec<(String, String, String)> = request
        .query
        .split('&')
        .chain(request.body.split('&'))
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded_name = form_decode(name);
            match profile.values {
                Values::Wire => (decoded_name, name.to_owned(), value.to_owned()),
                Values::Decoded => (decoded_name.clone(), decoded_name, form_decode(value)),
            }
        })
        .filter(|(name, _, value)| {
            let is_dropped = profile.empty == Empty::Drop && value.is_empty();
            name != "sign" && !profile.leave_out.contains(name) && !is_dropped
        })
        .collect();
    // `sort_by` is stable, and strings are compared by their bytes.
    pairs.sort_by(|(left, ..), (right, ..)| left.cmp(right));

    let is_concat = matches!(profile.layout, Layout::Concat | Layout::ConcatBoth);
    let (equals, between) = if is_concat { ("", "") } else { ("=", "&") };
    let written: Vec<String> = pairs
        .iter()
        .map(|(_, name, value)| format!("{name}{equals}{value}"))
        .collect();
    let written = written.join(between);

    let head = match profile.cover {
        Cover::Parameters => String::new(),
        Cover::Request => format!("{}\n{}\n", request.method, request.path),
    };
    match (profile.layout, profile.algorithm) {
        (Layout::PairsKey, _) => format!("{head}{written}&key={key}"),
        (_, Algorithm::HmacSha256) => format!("{head}{written}"),
        (Layout::Pairs | Layout::Concat, _) => format!("{head}{written}{key}"),
        (Layout::ConcatBoth, _) => format!("{head}{key}{written}{key}"),
    }
}

fn form_decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let (digits, after) = rest.split_at(2);
                bytes.extend(hex::decode(digits).expect("an escape has two hex digits"));
                rest = after;
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).expect("a signed text is UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::cases;

    #[test]
    fn every_vector_matches() {
        for case in cases() {
            // If the profile covers the request, its `head` has the method and the path.
            let mut head = case.profile.head.split('\n');
            let request = Request {
                method: head.next().unwrap_or_default(),
                path: head.next().unwrap_or_default(),
                query: &case.query,
                body: &case.body,
            };
            let canonical = canonical(&case.profile, "<APP_KEY>", request);
            assert_eq!(
                canonical, case.canonical,
                "{} {:?}",
                case.name, case.profile
            );
            let sign = sign(&case.profile, &case.app_key, request);
            assert_eq!(sign, case.sign, "{} {:?}", case.name, case.profile);
        }
    }
}
