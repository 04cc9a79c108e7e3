//! Values of labels, as enums and as fixed lists.

/// The classes of a response's status: `none` if the client left without a response.
pub const STATUS_CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// The index of a status' class. 0 is that of a request without a response.
#[inline]
#[must_use]
pub fn status_class(status: u16) -> usize {
    usize::from(status / 100).min(STATUS_CLASSES.len() - 1)
}
