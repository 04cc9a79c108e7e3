//! The heads of responses. RFC 9113 section 8.3.2; names become lower case.

use super::hpack::encode::{put_field, put_status};
use crate::{
    downstream::http1::response::{digits, put_fields},
    request::{BodyLength, client::ResponseHead},
    wire::syntax::field::NameAndValue,
};

/// Room for a usual head.
const USUAL_BLOCK: usize = 512;

/// Creates the header block of a response: status, fields, `date` if it is missing (RFC 9110 section 6.6.1), and
/// `content-length` if the length is known. The phases have removed the fields of the connection.
pub(crate) fn header_block<'f>(
    head: ResponseHead<'_>,
    fields: impl Iterator<Item = NameAndValue<'f>>,
) -> Vec<u8> {
    let mut block = Vec::with_capacity(USUAL_BLOCK);
    put_status(&mut block, head.status);
    put_fields(fields, |name, value| put_field(&mut block, name, value));
    if let BodyLength::Known(length) = head.body {
        put_field(&mut block, b"content-length", digits(&mut [0; 20], length));
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::downstream::http2::hpack::Decoder;

    /// The fields of a block, as a client decodes them.
    fn decoded(block: &[u8]) -> Vec<(String, Vec<u8>)> {
        let mut fields = Vec::new();
        let mut decoder = Decoder::default();
        let field = |name: &[u8], value: &[u8]| {
            fields.push((String::from_utf8(name.to_vec()).unwrap(), value.to_vec()));
        };
        assert_eq!(decoder.decode(block, field), Ok(block.len()));
        fields
    }

    #[test]
    fn a_head_has_lower_case_names_a_date_and_the_length() {
        let long = [b'x'; 20_000];
        let fields = [
            (&b"X-Acme"[..], &b"1"[..]),
            (b"Set-Cookie", b"a=1"),
            (b"set-cookie", b"b=2"),
            (b"X-Bytes", b"\xff\t"),
            (b"X-Long", &long),
            (b"X-Empty", b""),
        ];
        for status in [200, 203, 204, 404, 599] {
            let head = ResponseHead {
                status,
                reason: b"A reason",
                body: BodyLength::Known(7),
            };
            let mut all = decoded(&header_block(head, fields.into_iter()));
            let date = all.remove(7);
            assert!(date.0 == "date" && date.1.ends_with(b" GMT"), "{date:?}");
            let status = status.to_string();
            let expected = [
                (":status", status.as_bytes()),
                ("x-acme", b"1"),
                ("set-cookie", b"a=1"),
                ("set-cookie", b"b=2"),
                ("x-bytes", b"\xff\t"),
                ("x-long", &long),
                ("x-empty", b""),
                ("content-length", b"7"),
            ];
            let expected = expected.map(|(name, value)| (name.to_owned(), value.to_vec()));
            assert!(all == expected, "{status}");
        }
    }

    #[test]
    fn a_date_of_the_backend_stays_and_an_unknown_length_is_not_written() {
        let head = ResponseHead {
            status: 200,
            reason: b"",
            body: BodyLength::Unknown,
        };
        let fields = [(&b"Date"[..], &b"today"[..])];
        let all = decoded(&header_block(head, fields.into_iter()));
        let expected = [(":status", "200"), ("date", "today")];
        assert_eq!(
            all,
            expected.map(|(name, value)| (name.to_owned(), value.into()))
        );
    }
}
