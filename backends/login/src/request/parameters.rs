//! The parameters of a request: the query's, then the form's. CONTRACT 2.
//!
//! The gateway has verified them; what is checked here again is only what this service relies on.

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
};
use gateway_protocol::{
    form::BodyType,
    param::{Params, ParamsError},
};
use http::{
    HeaderMap, Method,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};

use crate::error::LoginError;

/// As the gateway's. CONTRACT 2.
pub(crate) const MAX_PARAMETERS: usize = 256;
/// What a parameter that stands there twice may be; a sign, since it is shown in every language.
const ONCE: &str = "1×";

/// Decoded pairs in order of appearance. Those that are not ours, `time` and `sign` among them, are ignored.
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// The value of a parameter that may be there once.
    pub(crate) fn optional(&self, name: &'static str) -> Result<Option<&str>, LoginError> {
        let mut values = self
            .0
            .iter()
            .filter(|(key, _)| key == name)
            .map(|(_, value)| value.as_str());
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            (_, Some(_)) => Err(LoginError::ParamInvalid {
                name,
                allowed: ONCE.to_owned(),
            }),
        }
    }

    /// The value of a parameter that must be there once.
    pub(crate) fn required(&self, name: &'static str) -> Result<&str, LoginError> {
        self.optional(name)?
            .ok_or(LoginError::ParamMissing { name })
    }

    fn parse(query: &[u8], body: &[u8]) -> Result<Self, LoginError> {
        let params = Params::parse(query, body, MAX_PARAMETERS).map_err(|error| match error {
            ParamsError::Malformed => LoginError::ParamsMalformed,
            ParamsError::TooMany => LoginError::ParamsTooMany,
        })?;
        let text = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec()).map_err(|_| LoginError::ParamsMalformed)
        };
        let pairs = params
            .iter()
            .map(|param| Ok((text(param.key())?, text(&param.value())?)));
        pairs.collect::<Result<_, _>>().map(Self)
    }
}

impl<S: Send + Sync> FromRequest<S> for Parameters {
    type Rejection = LoginError;

    async fn from_request(request: Request, state: &S) -> Result<Self, LoginError> {
        let (parts, body) = request.into_parts();
        // The middleware has taken it in and bounded it: what is left is to have it in one piece.
        let body = Bytes::from_request(Request::new(body), state)
            .await
            .map_err(|_| LoginError::Internal {
                what: "a body that had been taken in was not there",
            })?;
        let form = form(&parts.method, &parts.headers, &body)?;
        Self::parse(parts.uri.query().unwrap_or_default().as_bytes(), form)
    }
}

/// The body, if it is one that parameters can be in.
fn form<'a>(method: &Method, headers: &HeaderMap, body: &'a [u8]) -> Result<&'a [u8], LoginError> {
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
    fn ours_may_stand_there_once() {
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
    fn what_no_gateway_lets_through_is_refused() {
        assert!(matches!(
            Parameters::parse(b"a=%", b""),
            Err(LoginError::ParamsMalformed)
        ));
        let many = "a&".repeat(MAX_PARAMETERS + 1);
        assert!(matches!(
            Parameters::parse(many.as_bytes(), b""),
            Err(LoginError::ParamsTooMany)
        ));
    }

    #[test]
    fn a_body_is_a_form_and_belongs_to_a_post() {
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
