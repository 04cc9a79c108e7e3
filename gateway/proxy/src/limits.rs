//! What bounds clients: rates, signatures that are used once, connections.

pub(crate) mod connections;
pub(crate) mod places;
pub(crate) mod replay;
pub(crate) mod spool;

use std::{sync::OnceLock, time::Instant};

use signpost_kit::limits::RateTable;

use crate::request::quotas::RequestLimit;

/// The tables of all rate limits, which outlive a configuration. Each is created when it is first used.
#[derive(Debug, Default)]
pub struct RateTables([OnceLock<RateTable>; RequestLimit::RATES.len()]);

impl RateTables {
    /// The table of a rate limit.
    pub fn table(&self, limit: RequestLimit, now: Instant) -> &RateTable {
        // `RATES` are the first variants of the label, so their numbers are the indices.
        // Most gateways use few of the limits.
        self.0[limit as usize].get_or_init(|| RateTable::new(now))
    }

    /// The number of keys that have used tokens of a rate limit. Creates no table.
    pub(crate) fn keys_in_use(&self, limit: RequestLimit, now: Instant) -> usize {
        let table = self.0[limit as usize].get();
        table.map_or(0, |table| table.keys_in_use(now))
    }

    /// The tables that gateways can share.
    pub fn shared(&self, now: Instant) -> [&RateTable; RequestLimit::SHARED.len()] {
        RequestLimit::SHARED.map(|limit| self.table(limit, now))
    }
}
