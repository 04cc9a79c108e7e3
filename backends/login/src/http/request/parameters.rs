//! The parameters of a request: the query's, then the form's. CONTRACT 2.
//!
//! The gateway has verified them. Only the checks that this service relies on are repeated here.

use std::ops::RangeInclusive;

use axum::{body::Bytes, extract::FromRequestParts};
use http::{
    HeaderMap, Method,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
    request::Parts,
};
use signpost_protocol::{
    form::BodyType,
    malformed::Malformed,
    param::{CALLBACK_PARAMS, Params, ParamsError},
    parse_digits,
};

use crate::error::{LoginError, ParamRule};

/// Limit of parameters, as the gateway's. CONTRACT 2.
pub(crate) const MAX_PARAMETERS: usize = 256;

/// The body of a request, which the middleware has read whole, within its limit.
#[derive(Clone)]
pub(crate) struct BufferedBody(pub(crate) Bytes);

/// The parameters of a request: pairs of the query, then of the form, decoded, in order of appearance.
///
/// A parameter that is read may appear once; those that are not read are ignored, `time` and `sign` among them.
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Returns an optional parameter, which may appear once.
    ///
    /// # Errors
    ///
    /// It appears twice: 400 `param_invalid`.
    pub fn optional(&self, name: &'static str) -> Result<Option<&str>, LoginError> {
        let mut values = self
            .0
            .iter()
            .filter(|(key, _)| key == name)
            .map(|(_, value)| value.as_str());
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            (_, Some(_)) => Err(LoginError::ParamInvalid {
                name,
                rule: ParamRule::Once,
            }),
        }
    }

    /// Returns a required parameter, which must appear once.
    ///
    /// # Errors
    ///
    /// It is absent, 400 `param_missing`; or it appears twice, 400 `param_invalid`.
    pub fn required(&self, name: &'static str) -> Result<&str, LoginError> {
        self.optional(name)?
            .ok_or(LoginError::ParamMissing { name })
    }

    /// Returns an optional parameter of the form that `pattern` describes and `parse` accepts.
    ///
    /// # Errors
    ///
    /// It has another form, or appears twice: 400 `param_invalid`.
    pub(crate) fn of_form<T>(
        &self,
        name: &'static str,
        pattern: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, LoginError> {
        let rule = || ParamRule::Values(pattern.to_owned());
        let malformed = || LoginError::ParamInvalid { name, rule: rule() };
        let given = self.optional(name)?;
        given
            .map(|text| parse(text).ok_or_else(malformed))
            .transpose()
    }

    /// Returns an optional parameter of at most `max_bytes` bytes that can be stored: Postgres cannot store U+0000 in a
    /// text.
    ///
    /// # Errors
    ///
    /// It is longer, has U+0000, or appears twice: 400 `param_invalid`.
    pub fn text(&self, name: &'static str, max_bytes: usize) -> Result<Option<&str>, LoginError> {
        let text = self.optional(name)?;
        if text.is_some_and(|text| text.len() > max_bytes || text.contains('\0')) {
            let rule = ParamRule::MaxBytes(max_bytes);
            return Err(LoginError::ParamInvalid { name, rule });
        }
        Ok(text)
    }

    /// Returns an optional parameter that is a whole number of `range`, in decimal digits only.
    ///
    /// # Errors
    ///
    /// It is no such number, or appears twice: 400 `param_invalid`.
    pub fn number(
        &self,
        name: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, LoginError> {
        let Some(text) = self.optional(name)? else {
            return Ok(None);
        };
        match parse_digits(text).filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(LoginError::ParamInvalid {
                name,
                rule: ParamRule::Values(format!("{}–{}", range.start(), range.end())),
            }),
        }
    }

    /// Returns what has a meaning in a query that names a login by `state`; `None` for other queries. All else is ignored,
    /// also what is not UTF-8: RFC 6749 section 4.1.2, CONTRACT 3.
    pub(crate) fn of_callback(query: &str) -> Option<Self> {
        let meant = url::form_urlencoded::parse(query.as_bytes())
            .filter(|(name, _)| CALLBACK_PARAMS.contains(&&**name))
            .map(|(name, value)| (name.into_owned(), value.into_owned()));
        let meant = Self(meant.collect());
        let names_login = meant.0.iter().any(|(name, _)| name == "state");
        names_login.then_some(meant)
    }

    fn parse(query: &[u8], body: &[u8]) -> Result<Self, LoginError> {
        let params = Params::parse(query, body, MAX_PARAMETERS).map_err(|error| match error {
            ParamsError::Malformed => LoginError::ParamsMalformed {
                at: Malformed::of_params(query, body).into(),
            },
            ParamsError::TooMany => LoginError::ParamsTooMany,
        })?;
        // Keys and values are UTF-8: that was checked.
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let pairs = params
            .iter()
            .map(|param| (text(param.key()), text(&param.value())));
        Ok(Self(pairs.collect()))
    }
}

impl<S: Sync> FromRequestParts<S> for Parameters {
    type Rejection = LoginError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, LoginError> {
        let missing = LoginError::Internal {
            what: "the buffered body is missing",
        };
        let BufferedBody(body) = parts.extensions.get().ok_or(missing)?;
        let form = form(&parts.method, &parts.headers, body)?;
        Self::parse(parts.uri.query().unwrap_or_default().as_bytes(), form)
    }
}

/// Returns the body if it is a form or empty.
fn form<'a>(method: &Method, headers: &HeaderMap, body: &'a [u8]) -> Result<&'a [u8], LoginError> {
    // An announced body without any byte is no body, whatever its type is said to be: CONTRACT 2.
    if body.is_empty() {
        return Ok(body);
    }
    if *method == Method::GET {
        return Err(LoginError::BodyNotAllowed);
    }
    let mut body_type = BodyType::default();
    for content_type in headers.get_all(CONTENT_TYPE) {
        body_type.note_content_type(content_type.as_bytes());
    }
    if headers.contains_key(CONTENT_ENCODING) {
        body_type.note_content_encoding();
    }
    if body_type.is_form() {
        Ok(body)
    } else {
        Err(LoginError::ContentTypeUnsupported)
    }
}

#[cfg(test)]
mod tests {
    use super::{form as form_of, *};

    #[test]
    fn a_known_parameter_may_appear_once() {
        let parameters = Parameters::parse(b"a=1&b=&x=1", b"c=%2B&x=2").unwrap();
        assert_eq!(parameters.required("a").unwrap(), "1");
        assert_eq!(parameters.required("b").unwrap(), "");
        assert_eq!(parameters.required("c").unwrap(), "+");
        assert!(parameters.optional("d").unwrap().is_none());
        assert!(matches!(
            parameters.required("d"),
            Err(LoginError::ParamMissing { name: "d" })
        ));
        assert!(matches!(
            parameters.optional("x"),
            Err(LoginError::ParamInvalid { name: "x", .. })
        ));
    }

    #[test]
    fn a_number_is_digits_within_its_range() {
        let number = |value: &str| {
            Parameters::parse(format!("a={value}").as_bytes(), b"")
                .unwrap()
                .number("a", 1..=30)
        };
        assert_eq!(number("1").unwrap(), Some(1));
        assert_eq!(number("30").unwrap(), Some(30));
        for bad in [
            "",
            "0",
            "31",
            "-1",
            "%2B1",
            "+1",
            "1.5",
            "x",
            "99999999999999999999",
            "1&a=1",
        ] {
            let error = number(bad).unwrap_err();
            assert!(
                matches!(error, LoginError::ParamInvalid { name: "a", .. }),
                "{bad}: {error}"
            );
        }
        let none = Parameters::parse(b"", b"").unwrap();
        assert_eq!(none.number("a", 1..=30).unwrap(), None);
    }

    #[test]
    fn parameters_that_the_gateway_rejects_are_rejected() {
        assert!(matches!(
            Parameters::parse(b"a=%", b""),
            Err(LoginError::ParamsMalformed { .. })
        ));
        let many = "a&".repeat(MAX_PARAMETERS + 1);
        assert!(matches!(
            Parameters::parse(many.as_bytes(), b""),
            Err(LoginError::ParamsTooMany)
        ));
    }

    #[test]
    fn only_a_post_has_a_body_and_it_is_a_form() {
        let form = |method: Method, media_type: &'static str| {
            let headers =
                HeaderMap::from_iter([(CONTENT_TYPE, http::HeaderValue::from_static(media_type))]);
            form_of(&method, &headers, b"a=1")
        };
        let urlencoded = "application/x-www-form-urlencoded; charset=utf-8";
        assert_eq!(form(Method::POST, urlencoded).unwrap(), b"a=1");
        assert!(matches!(
            form(Method::GET, urlencoded),
            Err(LoginError::BodyNotAllowed)
        ));
        assert!(matches!(
            form(Method::POST, "text/plain"),
            Err(LoginError::ContentTypeUnsupported)
        ));
    }
}
