//! The heads of responses. RFC 9113 section 8.3.2; names become lower case.

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use pingora::protocols::http::date::get_cached_date;
use signpost_protocol::header::{RATELIMIT, X_REQUEST_ID};

use crate::{
    request::{BodyLength, client::ResponseHead},
    wire::syntax::field::NameAndValue,
};

/// The usual number of fields.
const USUAL_FIELDS: usize = 16;

/// Creates a response's head: status, fields, `date` if it is missing (RFC 9110 section 6.6.1), and `content-length` if
/// the length is known. The phases have removed the fields of the connection.
pub(crate) fn response_head<'f>(
    head: ResponseHead<'_>,
    fields: impl Iterator<Item = NameAndValue<'f>>,
) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() =
        StatusCode::from_u16(head.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let (mut map, mut has_date) = (HeaderMap::with_capacity(USUAL_FIELDS), false);
    for (name, value) in fields {
        // The parser of responses allows nothing that these types do not.
        let (Ok(name), Ok(mut value)) =
            (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        else {
            continue;
        };
        value.set_sensitive(differs(&name));
        has_date |= name == header::DATE;
        // The parser's limit of fields is far below the map's.
        let _ = map.try_append(name, value);
    }
    if !has_date && let Ok(mut date) = HeaderValue::from_bytes(get_cached_date().as_bytes()) {
        date.set_sensitive(true);
        map.insert(header::DATE, date);
    }
    if let BodyLength::Known(length) = head.body {
        map.insert(header::CONTENT_LENGTH, length.into());
    }
    *response.headers_mut() = map;
    response
}

/// Whether a field has another value in nearly each response. It is not indexed then: it would evict the others from the
/// connection's table, and the `h2` crate would compare each response's value with all that the table has.
fn differs(name: &HeaderName) -> bool {
    [header::DATE, X_REQUEST_ID, RATELIMIT].contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_lower_case_names_a_date_and_the_length() {
        let fields = [
            (&b"X-Acme"[..], &b"1"[..]),
            (b"Set-Cookie", b"a=1"),
            (b"set-cookie", b"b=2"),
            (b"X-Bytes", b"\xff\t"),
        ];
        let head = ResponseHead {
            status: 203,
            reason: b"Whatever",
            body: BodyLength::Known(7),
        };
        let response = response_head(head, fields.into_iter());
        assert_eq!(response.status(), 203);
        let map = response.headers();
        assert_eq!(map["x-acme"], "1");
        assert_eq!(map["x-bytes"].as_bytes(), b"\xff\t");
        assert_eq!(map["content-length"], "7");
        assert!(map["date"].to_str().unwrap().ends_with(" GMT"));
        assert!(map["date"].is_sensitive() && !map["x-acme"].is_sensitive());
        let cookies: Vec<_> = map.get_all("set-cookie").iter().collect();
        assert_eq!(cookies, ["a=1", "b=2"]);
    }

    #[test]
    fn a_date_of_the_backend_stays_and_an_unknown_length_is_not_written() {
        let head = ResponseHead {
            status: 200,
            reason: b"",
            body: BodyLength::Unknown,
        };
        let fields = [(&b"Date"[..], &b"today"[..]), (b"X-Request-Id", b"7")];
        let response = response_head(head, fields.into_iter());
        let map = response.headers();
        assert!(map["date"].is_sensitive() && map["x-request-id"].is_sensitive());
        let dates: Vec<_> = map.get_all("date").iter().collect();
        assert_eq!(dates, ["today"]);
        assert!(!map.contains_key("content-length"));
    }
}
