//! Who may call: applications, the accounts of users, and tokens of the management API.

pub(crate) mod accounts;
pub(crate) mod apps;
pub(crate) mod tokens;
