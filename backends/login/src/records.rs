//! What the store holds: a type each, with its statements.

pub mod accounts;
pub(crate) mod applications;
pub(crate) mod credentials;
pub mod events;
pub(crate) mod logins;
pub(crate) mod own;
