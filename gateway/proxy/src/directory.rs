//! Who may call: applications, the accounts of users and their logins, tokens of the management API; and who changed what.

pub(crate) mod accounts;
pub(crate) mod apps;
