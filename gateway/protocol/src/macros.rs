//! What several types of this project have alike.

/// Defines an enum of words, each written behind its variant: with `as_str`, its reverse `from_word`, and `ALL`, in which
/// the index of each is its number. A variant with a value also has the value that `ALL` shows.
#[macro_export]
macro_rules! label_enum {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident {
            $($(#[$doc:meta])* $variant:ident $(($payload:ty = $example:expr))? = $value:expr,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name {
            $($(#[$doc])* $variant $(($payload))?,)*
        }

        impl $name {
            /// All of them, in their order.
            $visibility const ALL: [Self; [$($value),*].len()] = [$(Self::$variant $(($example))?),*];

            /// The word.
            #[must_use]
            $visibility const fn as_str(self) -> &'static str {
                match self { $(Self::$variant { .. } => $value,)* }
            }

            /// The one that this word names.
            #[must_use]
            #[allow(dead_code, reason = "many are only written")]
            $visibility fn from_word(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == word)
            }
        }
    };
}

/// Defines the codes of problems: an enum of words, each with the status of its responses. A page at `/problems/` has its name.
/// Where each code also has one, `retry` says whether the same call can succeed later.
#[macro_export]
macro_rules! codes {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident {
            $($(#[$doc:meta])* $variant:ident = $code:literal, $status:ident $(, $retry:ident)?;)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ::serde::Serialize)]
        $visibility enum $name {
            $($(#[$doc])* #[serde(rename = $code)] $variant,)*
        }

        impl $name {
            /// All codes.
            $visibility const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word in the body's `code`, also the key of its texts.
            #[must_use]
            $visibility const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// The HTTP status of a response with this code.
            #[must_use]
            $visibility const fn status(self) -> ::http::StatusCode {
                match self { $(Self::$variant => ::http::StatusCode::$status,)* }
            }

            /// The `type` of its problems: the path of the page about them, which the gateway serves.
            #[must_use]
            $visibility const fn type_uri(self) -> &'static str {
                match self { $(Self::$variant => concat!("/problems/", $code),)* }
            }
        }

        $crate::codes! { @retry $name { $($variant $(, $retry)?;)* } }
    };
    (@retry $name:ident { $($variant:ident;)* }) => {};
    (@retry $name:ident { $($variant:ident, $retry:ident;)* }) => {
        impl $name {
            /// Whether the same call can succeed later.
            #[must_use]
            pub const fn retry(self) -> Retry {
                match self { $(Self::$variant => Retry::$retry,)* }
            }
        }
    };
}

/// `Debug` that prints the type's name alone: its value is secret, or long.
#[macro_export]
macro_rules! hide_in_debug {
    ($($name:ident),+) => {
        $(
            impl ::std::fmt::Debug for $name {
                fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    formatter.write_str(concat!(stringify!($name), "(…)"))
                }
            }
        )+
    };
}

/// Formats a type by its `as_str`: `show_as_str!(Name: Display, Debug)`.
macro_rules! show_as_str {
    ($name:ident: $($format:ident),+) => {
        $(
            impl ::std::fmt::$format for $name {
                fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    formatter.write_str(self.as_str())
                }
            }
        )+
    };
}
