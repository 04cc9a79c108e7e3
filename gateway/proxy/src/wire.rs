//! HTTP/1.1 on the wire, without its meaning: syntax, and reads, writes and timers of both sides.

pub(crate) mod io;
pub(crate) mod syntax;
