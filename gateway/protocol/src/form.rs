//! Recognizing forms: the only kind of body with parameters. CONTRACT 2.

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

    /// Whether the body is a form: `application/x-www-form-urlencoded`, optionally with `charset=utf-8`, not encoded.
    #[must_use]
    pub fn is_form(&self) -> bool {
        let Some(content_type) = self.content_type else {
            return false;
        };
        let mut parts = content_type
            .split(|&byte| byte == b';')
            .map(<[u8]>::trim_ascii);
        let is_form = parts.next().is_some_and(|media_type| {
            media_type.eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
        });
        let is_utf8 = |part: &[u8]| {
            part.eq_ignore_ascii_case(b"charset=utf-8")
                || part.eq_ignore_ascii_case(b"charset=\"utf-8\"")
        };
        is_form && parts.all(is_utf8) && !self.is_ambiguous && !self.is_encoded
    }
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
        ] {
            assert!(body_type(&[good]).is_form(), "{good}");
        }
        for bad in [
            &[][..],
            &[""],
            &["text/plain"],
            &["multipart/form-data; boundary=x"],
            &["application/x-www-form-urlencoded; charset=latin1"],
            &["application/x-www-form-urlencoded; boundary=x"],
            &["application/x-www-form-urlencoded;"],
            &["application/x-www-form-urlencoded, text/plain"],
        ] {
            assert!(!body_type(bad).is_form(), "{bad:?}");
        }
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
