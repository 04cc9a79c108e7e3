//! The clients' side: listeners and connections.

pub(crate) mod current;
pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod listeners;
pub(crate) mod sockets;
