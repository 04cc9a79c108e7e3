//! The body of a call, and revisions.

use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body_util::LengthLimitError;
use signpost_protocol::parse_digits;

use super::{ApiError, Shared, problem::Code};
use crate::operations::input::malformed;

/// Limit of a JSON body in bytes: an application's 100 origins fit.
pub(crate) const MAX_BODY_BYTES: usize = 64 * 1024;

/// The timeout of a whole body.
pub(super) fn body_timeout(api: &Shared) -> Duration {
    api.current.load().policy.bounds.timeouts.body
}

/// Checks that the body has one of these types.
pub(super) fn check_content_type(headers: &HeaderMap, allowed: &[&str]) -> Result<(), ApiError> {
    let given = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let given = given
        .and_then(|value| value.split(';').next())
        .unwrap_or_default();
    if allowed
        .iter()
        .any(|one| given.trim().eq_ignore_ascii_case(one))
    {
        return Ok(());
    }
    let error = ApiError::from(Code::ContentTypeUnsupported).arg("kind", "api");
    Err(error.arg("allowed", allowed.join(", ")))
}

/// Reads a body whole.
pub(crate) async fn read(body: Body, limit: usize, timeout: Duration) -> Result<Bytes, ApiError> {
    let too_large = || ApiError::from(Code::BodyTooLarge).arg("limit", limit.to_string());
    // A declared length says it at once.
    if usize::try_from(body.size_hint().lower()).is_ok_and(|length| length > limit) {
        return Err(too_large());
    }
    match tokio::time::timeout(timeout, to_bytes(body, limit)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_too_long(&error) => Err(too_large()),
        Ok(Err(_)) => Err(malformed(
            "the body ends too early, or is not framed as it says",
        )),
        Err(_) => {
            Err(ApiError::from(Code::RequestTimeout).arg("seconds", timeout.as_secs().to_string()))
        }
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    let cause = std::error::Error::source(error);
    cause.is_some_and(|cause| cause.is::<LengthLimitError>())
}

/// The revision that a change names, by its body or by `If-Match`.
pub(super) fn revision(headers: &HeaderMap, body: Option<i64>) -> Result<i64, ApiError> {
    if body.is_some_and(|body| body < 1) {
        return Err(ApiError::invalid("revision", "a number from 1"));
    }
    let mut fields = headers.get_all(header::IF_MATCH).into_iter();
    let given = match (fields.next(), body) {
        (None, Some(body)) => return Ok(body),
        (None, None) => return Err(Code::RevisionMissing.into()),
        (Some(field), _) => field.to_str().ok().and_then(number_of),
    };
    let is_same = body.is_none_or(|body| Some(body) == given);
    let given = given.filter(|_| is_same && fields.next().is_none());
    given.ok_or_else(|| {
        ApiError::invalid(
            "If-Match",
            "one revision, for example \"3\", the same as in the body",
        )
    })
}

/// The revision of a strong entity tag. RFC 9110 section 8.8.3.
fn number_of(tag: &str) -> Option<i64> {
    parse_digits(tag.strip_prefix('"')?.strip_suffix('"')?)
}

/// The entity tag of a revision.
pub(super) fn etag(revision: i64) -> [(HeaderName, HeaderValue); 1] {
    let value = HeaderValue::try_from(format!("\"{revision}\""));
    [(
        header::ETAG,
        value.expect("digits in quotes are visible ASCII"),
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_named_by_body_or_header() {
        for (field, body, expected) in [
            (None, None, Err(Code::RevisionMissing)),
            (None, Some(3), Ok(3)),
            (None, Some(0), Err(Code::ParamInvalid)),
            (Some("\"3\""), None, Ok(3)),
            (Some("\"3\""), Some(3), Ok(3)),
            (Some("\"3\""), Some(4), Err(Code::ParamInvalid)),
            (Some("3"), None, Err(Code::ParamInvalid)),
            (Some("*"), None, Err(Code::ParamInvalid)),
            (Some("W/\"3\""), None, Err(Code::ParamInvalid)),
            (Some("\"3\", \"4\""), None, Err(Code::ParamInvalid)),
            (
                Some("\"99999999999999999999\""),
                None,
                Err(Code::ParamInvalid),
            ),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(field) = field {
                headers.insert(header::IF_MATCH, HeaderValue::from_static(field));
            }
            let found = revision(&headers, body).map_err(|error| error.code());
            assert_eq!(found, expected, "{field:?} {body:?}");
        }
    }
}
