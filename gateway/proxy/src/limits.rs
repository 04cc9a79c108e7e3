//! What bounds clients: rates, signatures that are used once, connections.

pub(crate) mod connections;
pub(crate) mod rates;
pub(crate) mod replay;
