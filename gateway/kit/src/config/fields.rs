//! Structs whose fields are keys.

/// Creates a struct from the results of reading its fields. All are read before the first [`Invalid`](crate::config::Invalid)
/// ends this, so that every problem is reported. A field without an expression is a result that was read before.
#[macro_export]
macro_rules! read_all {
    ($struct:ident { $($field:ident $(: $read:expr)?),* $(,)? }) => {{
        $($(let $field = $read;)?)*
        let all_read = move || Ok($struct { $($field: $field?),* });
        let read: $crate::config::Read<_> = all_read();
        read
    }};
}
