//! What is signed of a request, and how it is right.

use http::HeaderName;
use serde::Serialize;
use serde_json::{Value, json};
use signpost_kit::{clock::Timestamp, config::origin::Origin};
use signpost_protocol::{
    app::AppIdent,
    header::HeaderNames,
    language::Language,
    param::{self, Params},
    sign::{BodyHash, SIGN, SignProfile, SignedHead, TIME, sign, sign_head},
    version::Version,
};
use signpost_proxy::{App, Head, Method};
use utoipa::ToSchema;

use super::{
    header,
    samples::{Call, CodeSample, LANGUAGES, Setting, settings_of, shell},
};

/// Stands for a credential.
const CREDENTIAL: &str = "CREDENTIAL";
/// Characters around a difference that are shown.
const SHOWN: usize = 24;

/// A parameter.
#[derive(Serialize, ToSchema)]
pub struct Param {
    /// The decoded key.
    pub key: String,
    /// The decoded value.
    pub value: String,
    /// The pair as sent.
    pub sent: String,
    /// Whether it is in the string to sign.
    pub is_signed: bool,
}

/// The first difference between two strings to sign.
#[derive(Serialize, ToSchema)]
pub struct Difference {
    /// Bytes before it.
    pub at: usize,
    /// What the string to sign has from a little before it on.
    pub expected: String,
    /// What the client's has there.
    pub found: String,
}

/// A signed request.
#[derive(Serialize, ToSchema)]
pub struct Signed {
    /// The value of `sign`.
    pub sign: String,
    /// Path and query.
    pub target: String,
    /// The form, if there is one.
    #[schema(required)]
    pub form: Option<String>,
    /// A command of curl that sends it, to the address that the request has; without one, to `public_url`.
    pub curl: String,
    /// The same call by each client library.
    pub code: Vec<CodeSample>,
}

/// What signs a request.
pub(super) struct Signing<'s> {
    pub names: &'s HeaderNames,
    pub address: &'s Origin,
    pub profile: &'s SignProfile,
    pub app: &'s App,
    pub head: &'s Head,
}

impl Signing<'_> {
    /// The request with the present time and the right signature, in the form if it has one.
    pub(super) fn sign(&self, method: Method, form: &str, now: Timestamp) -> Signed {
        let target = self.head.target();
        let (mut query, mut form) = (unsigned(target.query), unsigned(form));
        let has_form = method == Method::Post && !form.is_empty();
        let time = format!("{TIME}={}", now.as_millis());
        push_pair(if has_form { &mut form } else { &mut query }, &time);
        // Without a limit: the examination has counted them, and `time` may be one more.
        let params = Params::parse(query.as_bytes(), form.as_bytes(), usize::MAX);
        let params = params.unwrap_or_default();
        let sign = sign(
            self.profile,
            &self.app.key,
            method.as_str(),
            target.path,
            &params,
        )
        .to_hex();
        let pairs = own_pairs(&params);
        drop(params);
        let pair = format!("{SIGN}={sign}");
        push_pair(if has_form { &mut form } else { &mut query }, &pair);
        let path = target.path;
        let target = match &*query {
            "" => path.to_owned(),
            query => format!("{path}?{query}"),
        };
        let form = has_form.then_some(form);
        Signed {
            curl: self.curl(method, &target, form.as_deref()),
            code: self.code(method, &pairs, None),
            sign,
            target,
            form,
        }
    }

    /// The request with the present time and the right signature in headers.
    pub(super) fn sign_in_headers(&self, method: Method, body: &[u8], now: Timestamp) -> Signed {
        let target = self.head.target();
        let time = now.as_millis().to_string();
        let head = SignedHead {
            method: method.as_str(),
            target: target.sent,
            time: time.as_bytes(),
            nonce: b"",
        };
        let hash = BodyHash::of(body);
        let sign = sign_head(self.profile.header_algorithm(), &self.app.key, head, &hash).to_hex();
        let body = (!body.is_empty()).then(|| text(body));
        let mut curl = self.curl(method, target.sent, body.as_deref());
        let content_type = header(self.head, "content-type").filter(|_| body.is_some());
        let content_type = content_type.map(|value| format!("Content-Type: {value}"));
        for field in [
            Some(format!("{}: {time}", self.names.spelled(&self.names.time))),
            Some(format!("{}: {sign}", self.names.spelled(&self.names.sign))),
            content_type,
        ] {
            curl += &field.map_or_else(String::new, |field| format!(" -H {}", shell(&field)));
        }
        Signed {
            curl,
            code: self.code_in_headers(method, body.as_deref().unwrap_or_default()),
            sign,
            target: target.sent.to_owned(),
            form: body,
        }
    }

    fn curl(&self, method: Method, target: &str, form: Option<&str>) -> String {
        let names = self.names;
        // Without -g, curl takes brackets for a range.
        let mut command = format!("curl -g {}", shell(&format!("{}{target}", self.address)));
        let ident = self.app.ident.as_ref().map(|ident| ident.as_str());
        for (_, our) in names.convention() {
            let value = match header(self.head, our.as_str()) {
                _ if *our == names.app && ident.is_some() => ident,
                Some(_) if *our == names.authorization => Some(CREDENTIAL),
                sent => sent,
            };
            if let Some(value) = value {
                let field = format!("{}: {value}", names.spelled(our));
                command += &format!(" -H {}", shell(&field));
            }
        }
        if let Some(form) = form {
            command += &format!(" --data-raw {}", shell(form));
        }
        match (method, form) {
            (Method::Get, None) | (Method::Post, Some(_)) => {}
            (Method::Head, _) => command += " -I",
            _ => command += &format!(" -X {}", method.as_str()),
        }
        command
    }

    /// None of a body that is neither JSON nor all of a form.
    fn code_in_headers(&self, method: Method, body: &str) -> Vec<CodeSample> {
        let content_type = header(self.head, "content-type").unwrap_or_default();
        let is = |kind: &str| content_type.to_ascii_lowercase().starts_with(kind);
        let query = self.head.target().query;
        let (pairs, json) = match body {
            "" => (query, None),
            form if is("application/x-www-form-urlencoded") && query.is_empty() => (form, None),
            json => match serde_json::from_str(json) {
                Ok(json) if is("application/json") => (query, Some(json)),
                _ => return Vec::new(),
            },
        };
        let params = Params::parse(pairs.as_bytes(), b"", usize::MAX).unwrap_or_default();
        let pairs = params.iter();
        let pairs = pairs.map(|param| (text(param.key()), text(&param.value())));
        self.code(method, &pairs.collect::<Vec<_>>(), json.as_ref())
    }

    fn code(
        &self,
        method: Method,
        pairs: &[(String, String)],
        json: Option<&Value>,
    ) -> Vec<CodeSample> {
        let call = Call {
            address: &self.address.to_string(),
            settings: &self.settings(),
            method: method.as_str(),
            path: self.head.target().path,
            pairs,
            json,
            credential: header(self.head, self.names.authorization.as_str()).map(|_| CREDENTIAL),
        };
        LANGUAGES
            .iter()
            .map(|language| language.code(&call))
            .collect()
    }

    /// The settings of a client library that differ from its defaults. What the request has of them is a setting only if it is
    /// right.
    fn settings(&self) -> Vec<Setting> {
        let names = self.names;
        let sent = |name: &HeaderName| header(self.head, name.as_str());
        let mut settings = Vec::new();
        let ident = self.app.ident.as_ref().map(|ident| ident.as_str());
        let claimed = || sent(&names.app).filter(|sent| sent.parse::<AppIdent>().is_ok());
        settings.extend(ident.or_else(claimed).map(|ident| ("app", json!(ident))));
        let version = sent(&names.version).filter(|sent| sent.parse::<Version>().is_ok());
        settings.extend(version.map(|version| ("version", json!(version))));
        if let Some(language) = sent(&names.language) {
            let language = Language::of_request(Some(language.as_bytes()), []);
            settings.push(("language", json!(language.tag())));
        }
        settings.extend(settings_of(names, self.profile));
        settings
    }
}

/// The text that a signature in headers signs, by the headers that were sent.
pub(super) fn signed_text(
    names: &HeaderNames,
    profile: &SignProfile,
    head: &Head,
    body: &[u8],
) -> String {
    let sent = |name: &HeaderName| header(head, name.as_str()).unwrap_or_default();
    let signed = SignedHead {
        method: std::str::from_utf8(head.method()).unwrap_or_default(),
        target: head.target().sent,
        time: sent(&names.time).as_bytes(),
        nonce: sent(&names.nonce).as_bytes(),
    };
    signed.for_display(profile.header_algorithm(), &BodyHash::of(body))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Names and values without `time` and `sign`, decoded.
fn own_pairs(params: &Params<'_>) -> Vec<(String, String)> {
    let own = params.iter().filter(|param| !is_of_signature(param));
    own.map(|param| (text(param.key()), text(&param.value())))
        .collect()
}

/// The pairs without `time` and `sign`, as they were sent.
fn unsigned(pairs: &str) -> String {
    let is_signing = |pair: &str| {
        let name = pair.split('=').next().unwrap_or_default();
        // As a parameter: names are compared decoded (CONTRACT 2).
        let named = Params::parse(name.as_bytes(), b"", 1);
        named.is_ok_and(|named| named.iter().any(is_of_signature))
    };
    let others = pairs
        .split('&')
        .filter(|pair| !pair.is_empty() && !is_signing(pair));
    others.collect::<Vec<_>>().join("&")
}

/// Whether it is `time` or `sign`.
fn is_of_signature(param: &param::Param<'_>) -> bool {
    param.is_named(TIME.as_bytes()) || param.is_named(SIGN.as_bytes())
}

fn push_pair(pairs: &mut String, pair: &str) {
    if !pairs.is_empty() {
        pairs.push('&');
    }
    pairs.push_str(pair);
}

/// The parameters in the order in which they are signed.
pub(super) fn signed_params(profile: &SignProfile, params: &Params<'_>) -> Vec<Param> {
    let mut shown: Vec<_> = params.iter().collect();
    shown.sort_by(|param, other| param.key().cmp(other.key()));
    let shown = shown.into_iter().map(|param| Param {
        key: text(param.key()),
        value: text(&param.value()),
        sent: format!("{}={}", text(param.wire_key()), text(param.wire_value())),
        is_signed: profile.signs(param),
    });
    shown.collect()
}

/// The first difference of two strings.
pub(super) fn difference(expected: &str, own: &str) -> Option<Difference> {
    let same = {
        let pairs = expected.chars().zip(own.chars());
        pairs.take_while(|(letter, other)| letter == other)
    };
    let (letters, at) = same.fold((0, 0), |(letters, at), (letter, _)| {
        (letters + 1, at + letter.len_utf8())
    });
    let around = |text: &str| {
        let around = text.chars().skip(usize::saturating_sub(letters, SHOWN));
        around.take(2 * SHOWN).collect()
    };
    (expected != own).then(|| Difference {
        at,
        expected: around(expected),
        found: around(own),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_of_two_strings_is_shown_with_what_is_around_it() {
        for (expected, found, shown) in [
            ("a=1", "a=1", None),
            ("a=1&b=2", "a=1&b=3", Some((6, "a=1&b=2", "a=1&b=3"))),
            ("a=1", "a=1&", Some((3, "a=1", "a=1&"))),
            ("é=1", "é", Some((2, "é=1", "é"))),
        ] {
            let difference = difference(expected, found);
            let parts = difference
                .as_ref()
                .map(|one| (one.at, &*one.expected, &*one.found));
            assert_eq!(parts, shown, "{found}");
        }
    }

    #[test]
    fn a_request_is_signed_anew_without_what_signed_it_before() {
        for (pairs, expected) in [
            ("", ""),
            ("time=1&sign=2", ""),
            ("a=1&time=1&&b=%20&sign=2", "a=1&b=%20"),
            ("a=1&%73ign=2&tim%65=1&=%", "a=1&=%"),
            ("signs=1&timely", "signs=1&timely"),
        ] {
            assert_eq!(unsigned(pairs), expected, "{pairs}");
        }
    }
}
