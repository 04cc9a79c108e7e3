//! Recognizing kinds of bodies; only a form has parameters. CONTRACT 2.

use std::borrow::Cow;

/// The body's type according to the request's headers, collected one by one.
#[derive(Clone, Copy, Debug, Default)]
pub struct BodyType<'a> {
    content_type: Option<&'a [u8]>,
    is_ambiguous: bool,
    is_encoded: bool,
}

impl<'a> BodyType<'a> {
    /// Records a `Content-Type`. With two of them the body is not a form: a backend could use either.
    pub fn note_content_type(&mut self, value: &'a [u8]) {
        self.is_ambiguous |= self.content_type.replace(value).is_some();
    }

    /// Records a `Content-Encoding`. With any value the body is not a form: it would have to be decoded before
    /// verifying.
    pub const fn note_content_encoding(&mut self) {
        self.is_encoded = true;
    }

    /// Whether the body is a form: `application/x-www-form-urlencoded` without another charset than UTF-8, not encoded.
    #[must_use]
    pub fn is_form(&self) -> bool {
        let content_type = self.content_type.unwrap_or_default();
        let is_form =
            content_type
                .split_at_checked(FORM.len())
                .is_some_and(|(media_type, parameters)| {
                    media_type.eq_ignore_ascii_case(FORM) && are_utf8(parameters)
                });
        is_form && !self.is_ambiguous && !self.is_encoded
    }

    /// Whether the body is JSON: `application/json`, or `application/…+json` (RFC 6839), in one `Content-Type`.
    #[must_use]
    pub fn is_json(&self) -> bool {
        let content_type = self.content_type.unwrap_or_default();
        let end = content_type.iter().position(|&byte| byte == b';');
        let media_type = content_type[..end.unwrap_or(content_type.len())].trim_ascii();
        let is_json = media_type.eq_ignore_ascii_case(b"application/json")
            || media_type
                .split_at_checked(b"application/".len())
                .is_some_and(|(class, name)| {
                    class.eq_ignore_ascii_case(b"application/")
                        && name.len() > b"+json".len()
                        && name[name.len() - b"+json".len()..].eq_ignore_ascii_case(b"+json")
                });
        is_json && !self.is_ambiguous && !self.is_encoded
    }

    /// Whether readers can disagree about the type: two `Content-Type`.
    #[must_use]
    pub const fn is_ambiguous(&self) -> bool {
        self.is_ambiguous
    }
}

/// The media type of a form.
const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// Whether the parameters of a media type are well-formed, and each `charset` is UTF-8. Others have no meaning. RFC 9110
/// section 5.6.6.
fn are_utf8(mut rest: &[u8]) -> bool {
    while !rest.is_empty() {
        let Some(parameter) = rest.trim_ascii_start().strip_prefix(b";") else {
            return false;
        };
        let (name, after) = token(parameter.trim_ascii_start());
        rest = after;
        if name.is_empty() {
            continue;
        }
        let Some((value, after)) = after.strip_prefix(b"=").and_then(value) else {
            return false;
        };
        // `charset*` and `charset*0` are others' ways to write it (RFC 8187, RFC 2231): never UTF-8 alone.
        let stem = name.split(|&byte| byte == b'*').next().unwrap_or_default();
        let is_utf8 = name == stem && value.eq_ignore_ascii_case(b"utf-8");
        if stem.eq_ignore_ascii_case(b"charset") && !is_utf8 {
            return false;
        }
        rest = after;
    }
    true
}

/// Splits off a parameter's value: a token, or a quoted string (RFC 9110 section 5.6.4).
fn value(rest: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let Some(quoted) = rest.strip_prefix(b"\"") else {
        let (value, rest) = token(rest);
        return (!value.is_empty()).then_some((value.into(), rest));
    };
    let (mut value, mut bytes) = (Vec::new(), quoted.iter());
    loop {
        match bytes.next()? {
            b'"' => return Some((value.into(), bytes.as_slice())),
            // A quoted pair: the next byte stands for itself, even a quotation mark.
            b'\\' => value.push(*bytes.next()?),
            &byte => value.push(byte),
        }
    }
}

/// Splits off a token, which may be empty. RFC 9110 section 5.6.2.
fn token(text: &[u8]) -> (&[u8], &[u8]) {
    let is_of_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let end = text.iter().position(|byte| !is_of_token(byte));
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body_type<'a>(content_types: &[&'a str]) -> BodyType<'a> {
        let mut body_type = BodyType::default();
        for content_type in content_types {
            body_type.note_content_type(content_type.as_bytes());
        }
        body_type
    }

    #[test]
    fn a_form_is_urlencoded_utf8() {
        for good in [
            "application/x-www-form-urlencoded",
            "Application/X-WWW-Form-Urlencoded",
            "application/x-www-form-urlencoded; charset=UTF-8",
            "application/x-www-form-urlencoded;charset=\"utf-8\"",
            "application/x-www-form-urlencoded;",
            "application/x-www-form-urlencoded \t;; ; ;",
            "application/x-www-form-urlencoded ; CharSet=\"U\\TF-8\" ;charset=utf-8",
            "application/x-www-form-urlencoded; boundary=x;charset=utf-8; q=\";charset=latin1\\\"\"",
        ] {
            assert!(body_type(&[good]).is_form(), "{good}");
        }
        for bad in [
            &[][..],
            &[""],
            &["text/plain"],
            &["multipart/form-data; boundary=x"],
            &["application/x-www-form-urlencoded; charset=latin1"],
            &["application/x-www-form-urlencoded; charset=us-ascii"],
            &["application/x-www-form-urlencoded; charset*=us-ascii''utf-7"],
            &["application/x-www-form-urlencoded; Charset*0=utf-8"],
            &["application/x-www-form-urlencoded; charset=utf-8; charset=latin1"],
            &["application/x-www-form-urlencoded; charset=\"latin1\"; charset=utf-8"],
            &["application/x-www-form-urlencoded; charset=utf-8 x"],
            &["application/x-www-form-urlencoded; charset = utf-8"],
            &["application/x-www-form-urlencoded; charset="],
            &["application/x-www-form-urlencoded; charset"],
            &["application/x-www-form-urlencoded; charset=\"utf-8"],
            &["application/x-www-form-urlencoded; charset=\"utf-8\\"],
            &["application/x-www-form-urlencoded; =utf-8"],
            &["application/x-www-form-urlencoded charset=utf-8"],
            &["application/x-www-form-urlencoded, charset=utf-8"],
            &["application/x-www-form-urlencodedx"],
            &["application/x-www-form-urlencoded, text/plain"],
        ] {
            assert!(!body_type(bad).is_form(), "{bad:?}");
        }
    }

    #[test]
    fn json_is_a_media_type_or_the_suffix_of_one() {
        for good in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/problem+json",
            "application/vnd.api+JSON ;a=b",
        ] {
            assert!(body_type(&[good]).is_json(), "{good}");
        }
        for bad in [
            "",
            "text/json",
            "application/+json",
            "application/jsonx",
            "application/json-seq",
            "application/x-www-form-urlencoded",
            "application/json, text/plain",
        ] {
            assert!(!body_type(&[bad]).is_json(), "{bad}");
        }
        let json = "application/json";
        assert!(!body_type(&[json, json]).is_json());
        assert!(body_type(&[json, json]).is_ambiguous());
    }

    #[test]
    fn a_form_has_one_content_type_and_no_encoding() {
        let form = "application/x-www-form-urlencoded";
        assert!(!body_type(&[form, form]).is_form());
        let mut encoded = body_type(&[form]);
        encoded.note_content_encoding();
        assert!(!encoded.is_form());
    }
}
