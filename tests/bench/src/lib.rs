//! Measures Signpost side by side with other proxies.
//!
//! | module | subject |
//! | --- | --- |
//! | [`case`] | what is measured |
//! | [`contestant`] | the measured programs: configuration and start |
//! | [`process`] | a started program: its log, processor time and memory |
//! | [`fleet`] | the backend and all contestants of a run |
//! | [`keys`], [`requests`] | the requests |
//! | [`tls`] | the contestants' certificate, and the load's side of a handshake |
//! | [`load`] | sends them, and checks the responses |
//! | [`usage`] | processor time by process |
//! | [`proof`] | that a contestant does the work |
//! | [`rounds`] | processor time, throughput, latency |
//! | [`ramp`] | throughput, latency and processor time at 10 to 100 % of load |
//! | [`instructions`] | instructions in user space |
//! | [`memory`] | resident memory |
//! | [`machine`] | the machine: its set-up and description |
//! | [`report`] | tables, targets, chart |
//! | [`capacity`] | what one machine serves, by kind and size of the store |
//! | [`train`] | gathers the profile that `scripts/dist --profile-guided` builds with |

pub mod capacity;
pub mod case;
pub mod contestant;
pub mod fleet;
pub mod instructions;
pub mod keys;
pub mod load;
pub mod machine;
pub mod memory;
pub mod process;
pub mod progress;
pub mod proof;
pub mod ramp;
pub mod report;
pub mod requests;
pub mod rounds;
pub mod tls;
pub mod train;
pub mod usage;
