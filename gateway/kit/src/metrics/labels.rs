//! Values of labels, as enums and as fixed lists.

/// The classes of a response's status: `none` if the client left without a response.
pub const STATUS_CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// The index of a status' class. 0 is that of a request without a response.
#[inline]
#[must_use]
pub fn status_class(status: u16) -> usize {
    usize::from(status / 100).min(STATUS_CLASSES.len() - 1)
}

/// The values of a label that are counted apart; [`counted_label`](crate::counted_label) implements it.
pub trait Label: Copy + 'static {
    /// All of them, in their order.
    const VALUES: &'static [Self];

    /// The index in [`Self::VALUES`].
    fn index(self) -> usize;

    /// The value's text.
    fn text(self) -> &'static str;
}

/// Makes an enum of [`label_enum`](crate::label_enum) a [`Label`].
#[macro_export]
macro_rules! counted_label {
    ($name:ident) => {
        impl $crate::metrics::labels::Label for $name {
            const VALUES: &'static [Self] = &Self::ALL;

            fn index(self) -> usize {
                self as usize
            }

            fn text(self) -> &'static str {
                self.as_str()
            }
        }
    };
}
