//! The parameters of a request: the query's, then the form's. CONTRACT 2.
//!
//! The gateway has verified them. Only the checks that this service relies on are repeated here.

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

use crate::error::{LoginError, ParamRule};

/// Limit of parameters, as the gateway's. CONTRACT 2.
pub(crate) const MAX_PARAMETERS: usize = 256;

/// Decoded pairs in order of appearance. Unknown ones, `time` and `sign` among them, are ignored.
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Returns an optional parameter, which may appear once.
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
                rule: ParamRule::Once,
            }),
        }
    }

    /// Returns a required parameter, which must appear once.
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
        // The middleware has buffered the body and limited its size, so this does not wait or fail.
        let body = Bytes::from_request(Request::new(body), state)
            .await
            .map_err(|_| LoginError::Internal {
                what: "the buffered body is missing",
            })?;
        let form = form(&parts.method, &parts.headers, &body)?;
        Self::parse(parts.uri.query().unwrap_or_default().as_bytes(), form)
    }
}

/// Returns the body if it is a form or empty.
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
    fn parameters_that_the_gateway_rejects_are_rejected() {
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
