//! The backends' side: chooses an address, sends the request, retries it, relays the response.

pub(crate) mod backend;
pub(crate) mod routing;
pub(crate) mod secret_rejections;
