//! Values of labels, as enums and as fixed lists.

/// The classes of a response's status: `none` if the client left without a response.
pub const STATUS_CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// The index of a status' class. 0 is that of a request without a response.
#[inline]
#[must_use]
pub fn status_class(status: u16) -> usize {
    usize::from(status / 100).min(STATUS_CLASSES.len() - 1)
}

/// Defines an enum of a label's values, each written behind its variant: with `as_str`, and with `ALL`, in which the
/// index of each is its number.
#[macro_export]
macro_rules! label_enum {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident {
            $($(#[$doc:meta])* $variant:ident = $value:expr,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All of them, in their order.
            $visibility const ALL: [Self; [$($value),*].len()] = [$(Self::$variant),*];

            /// The label's value.
            #[must_use]
            $visibility const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $value,)* }
            }
        }
    };
}
