//! Counts requests by application and version, for `/metrics` and for `signpost versions report`. `conf/guides/versions.md`.
//!
//! A request only adds to numbers of its own thread. A scrape shows the numbers of the busiest applications; every few
//! seconds a task writes the numbers of requests with a route to the store. In single-application mode there is no
//! store, and nothing is counted here.
//!
//! | module | subject |
//! | --- | --- |
//! | [`counters`] | the counters of each thread |
//! | [`busiest`] | which applications a scrape shows |
//! | [`batch`] | what is written at once |
//! | [`writer`] | writes batches, and the last one at a stop |
//! | [`store`] | the tables |
//! | [`stored`] | what the report reads |
//! | [`day`] | days in UTC |

mod batch;
mod busiest;
mod counters;
pub(crate) mod day;
mod store;
pub(crate) mod stored;
#[cfg(test)]
mod tests;
pub(crate) mod writer;

use signpost_protocol::version::VersionSource;

pub(crate) use self::counters::Usage;

/// Days for which counts and clients are kept, today included: long enough for a client that runs once a quarter, short
/// enough for personal data.
pub const KEEP_DAYS: u16 = 90;

/// Stands for an application in the counts of callbacks, which have none. The ids of applications begin at 1.
pub const NO_APPLICATION: i64 = 0;

/// Stands for all applications that a batch has no room for.
pub const OTHER_APPLICATIONS: i64 = -1;

/// Requests by source, in the order of [`VersionSource::ALL`].
pub type Counts = [u64; VersionSource::ALL.len()];
