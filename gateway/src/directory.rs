//! Who may call: applications, the accounts of users, tokens of the management API; and who changed what.

pub(crate) mod accounts;
pub(crate) mod apps;
pub(crate) mod audit;
pub(crate) mod printable;
pub(crate) mod tokens;
