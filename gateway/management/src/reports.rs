//! What is read of versions, requests and gateways, for operators.

pub mod gateways;
pub mod rejections;
pub mod shadows;
pub mod traffic;
pub mod usage;
pub mod versions;
