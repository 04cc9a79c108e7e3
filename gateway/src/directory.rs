//! Who may call: applications, and the accounts of users.

pub(crate) mod accounts;
pub(crate) mod apps;
