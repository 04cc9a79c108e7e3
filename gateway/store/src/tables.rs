//! Tables that several programs read: statements, rows and their types.

pub mod accounts;
pub mod applications;
pub mod audit;
pub mod credentials;
pub mod ended_logins;
pub mod idempotency;
pub mod sealed_keys;
