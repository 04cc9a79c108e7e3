//! What one machine serves, by kind and size of the store: `scripts/capacity`.
//!
//! The load is [`workers`](crate::load::workers).
//!
//! | module | subject |
//! | --- | --- |
//! | [`effort`] | how much is measured |
//! | [`plan`] | all measurements (cells), one after the other |
//! | [`store`] | a new store of either kind, and its durability |
//! | [`tables`] | rows by the million, written directly to the store |
//! | [`people`] | accounts, and credentials for some of them |
//! | [`applications`] | applications, with keys encrypted as the gateway expects |
//! | [`installation`] | gateway, v1 and sandbox provider as processes |
//! | [`caller`] | signed calls |
//! | [`work`] | the workers: a login, check, event or lookup in each step |
//! | [`login`] | a whole polling login |
//! | [`growth`] | the gateway's start time and memory by the number of applications |
//! | [`disk`] | the time of a flush on this disk |
//! | [`report`] | the tables |

pub mod applications;
pub mod caller;
pub mod disk;
pub mod effort;
pub mod growth;
pub mod installation;
pub mod login;
pub mod people;
pub mod plan;
pub mod report;
pub mod store;
pub mod tables;
pub mod work;
