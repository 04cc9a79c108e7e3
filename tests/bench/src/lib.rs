//! Measures Signpost side by side with its peers.
//!
//! | module | subject |
//! | --- | --- |
//! | [`case`] | what is measured |
//! | [`contestant`] | who is measured: configuration and start |
//! | [`process`] | a started program, and what the kernel knows of it |
//! | [`field`] | all that run at the same time |
//! | [`keys`], [`requests`] | what is sent |
//! | [`load`] | how it is sent, and how answers are checked |
//! | [`usage`] | processor time by process |
//! | [`proof`] | that a contestant does the work |
//! | [`rounds`] | processor time, throughput, latency |
//! | [`instructions`] | instructions in user space |
//! | [`memory`] | resident memory |
//! | [`machine`] | what it was measured on |
//! | [`report`] | tables, targets, chart |
//! | [`capacity`] | what one machine serves, by store and by size |
//! | [`train`] | gathers the profile that `scripts/dist` builds with |

pub mod capacity;
pub mod case;
pub mod contestant;
pub mod field;
pub mod instructions;
pub mod keys;
pub mod load;
pub mod machine;
pub mod memory;
pub mod process;
pub mod progress;
pub mod proof;
pub mod report;
pub mod requests;
pub mod rounds;
pub mod train;
pub mod usage;
