//! Who may call: applications, and the users whose credentials the login service stored.

pub(crate) mod accounts;
pub(crate) mod apps;
