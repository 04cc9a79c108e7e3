//! The fields that frame a body or close the connection; the same for requests and responses. RFC 9112 sections 6 and
//! 9.6.

use super::{
    bytes::content_length,
    field::{FieldFault, NameAndValue, connection_options},
};

/// A message's framing fields, collected in one pass.
#[derive(Debug, Default)]
pub(crate) struct FramingFields {
    /// `Content-Length`, at most once.
    pub content_length: Option<u64>,
    /// `Transfer-Encoding: chunked`, at most once.
    pub is_chunked: bool,
    /// Whether `Connection` has the option `close`.
    pub closes: bool,
}

impl FramingFields {
    /// Records a field if it is a framing field.
    ///
    /// # Errors
    ///
    /// A `Content-Length` that is not one number, or a `Transfer-Encoding` that is not exactly `chunked`.
    pub(crate) fn take(&mut self, (name, value): NameAndValue<'_>) -> Result<(), FieldFault> {
        // By length first: nearly all fields are none of the three, and cost one comparison of a number.
        match name.len() {
            10 if name.eq_ignore_ascii_case(b"connection") => {
                let is_close = |option: &[u8]| option.eq_ignore_ascii_case(b"close");
                self.closes |= connection_options(value).any(is_close);
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                // A second field is rejected even if both are equal, although RFC 9110 section 8.6 allows to accept it:
                // whoever reads the other one must not find another body.
                let length = content_length(value).filter(|_| self.content_length.is_none());
                let fault = FieldFault::Malformed("Content-Length is not one number");
                self.content_length = Some(length.ok_or(fault)?);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                // For `gzip, chunked` or a coding in quotes, parsers disagree whether the body is chunked at all
                // (request smuggling).
                if self.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    let why = "Transfer-Encoding is not exactly chunked";
                    return Err(FieldFault::Malformed(why));
                }
                self.is_chunked = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks that the framing is unambiguous.
    ///
    /// # Errors
    ///
    /// Both `Content-Length` and `Transfer-Encoding`, or `Transfer-Encoding` in HTTP/1.0.
    pub(crate) const fn check(&self, is_http_1_0: bool) -> Result<(), FieldFault> {
        match (self.content_length, self.is_chunked) {
            // RFC 9112 section 6.3 prefers the chunks, but a peer that goes by the length would take the rest of the
            // body for the next message.
            (Some(_), true) => Err(FieldFault::Malformed(
                "both Content-Length and Transfer-Encoding",
            )),
            // RFC 9112 section 6.1: the framing of such a message counts as faulty, since HTTP/1.0 has no chunks.
            (None, true) if is_http_1_0 => {
                Err(FieldFault::Malformed("Transfer-Encoding in HTTP/1.0"))
            }
            _ => Ok(()),
        }
    }
}
