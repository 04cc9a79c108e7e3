//! What one machine serves, by store and by size: `scripts/capacity`. The load is [`workers`](crate::load::workers).
//!
//! | module | subject |
//! | --- | --- |
//! | [`effort`] | how much is measured |
//! | [`plan`] | all cells, one after the other |
//! | [`store`] | a store of either kind, and its durability |
//! | [`tables`] | rows by the million, written past the programs |
//! | [`people`] | accounts, and credentials of some of them |
//! | [`applications`] | applications, sealed as the gateway reads them |
//! | [`installation`] | gateway, v1 and sandbox provider as processes |
//! | [`caller`] | signed calls |
//! | [`work`] | logins, checks, events and look-ups, a step each |
//! | [`login`] | a whole polling login |
//! | [`growth`] | the gateway's start and memory by the number of applications |
//! | [`disk`] | what durability costs on this disk |
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
