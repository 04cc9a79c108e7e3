//! A batch: what is written to the store at once.

use std::{collections::BTreeMap, net::IpAddr};

use signpost_kit::clock::Timestamp;
use signpost_protocol::{app::AppIdent, version::Version};

use super::{Counts, Day, NO_APPLICATION, OTHER_APPLICATIONS};
use crate::{config::OTHER_PATHS, observe::metrics::labels::ClassCounts, request::Method};

/// Limit of a batch's keys, half of it for unsigned requests: some megabytes. A batch grows beyond one interval while the store is unavailable. Requests
/// of further applications are counted together, so that the totals stay exact.
pub(super) const MAX_BATCH_KEYS: usize = 16_384;

/// Counts and clients, ordered by key: gateways that lock rows in the same order do not wait for each other in a
/// circle.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    pub counts: BTreeMap<RowKey, Counts>,
    pub clients: BTreeMap<ClientKey, LastClient>,
    pub paths: BTreeMap<PathKey, PathCounts>,
}

/// What requests of a path have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PathKey {
    /// The day of the requests.
    pub day: Day,
    /// The version that they went to.
    pub version: Version,
    /// Their application.
    pub application: i64,
    /// Whether another version's backend served them.
    pub is_bridged: bool,
    /// Their method.
    pub method: Method,
    /// Their pattern.
    pub pattern: Box<str>,
}

/// The requests of a path.
#[derive(Clone, Debug)]
pub(super) struct PathCounts {
    /// By status class.
    pub by_class: ClassCounts,
    /// When the batch was closed that the last one is in.
    pub last_seen: Timestamp,
}

/// What counts have in common, but for their source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowKey {
    /// The day of the requests.
    pub day: Day,
    /// The version that they went to.
    pub version: Version,
    /// Their application.
    pub application: i64,
    /// Whether they were signed. Anyone can send unsigned ones in an application's name.
    pub is_signed: bool,
}

/// Version, application, and whether the request was signed.
pub(super) type ClientKey = (Version, i64, bool);

/// The client of one of the last requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LastClient {
    /// The application's ident, which is shown also after the application was deleted.
    pub ident: Option<AppIdent>,
    /// When the batch was closed that the request is in.
    pub last_seen: Timestamp,
    /// The client's address; `None` for callbacks and for applications that are counted together.
    pub address: Option<IpAddr>,
    /// Printable ASCII; empty if there was none.
    pub user_agent: String,
}

impl Batch {
    /// Adds requests.
    pub(super) fn add(&mut self, mut key: RowKey, counts: &Counts, mut client: LastClient) {
        let is_new = !self.counts.contains_key(&key);
        let max = if key.is_signed {
            MAX_BATCH_KEYS
        } else {
            MAX_BATCH_KEYS / 2
        };
        if is_new && self.counts.len() >= max && key.application != NO_APPLICATION {
            key.application = OTHER_APPLICATIONS;
        }
        if key.application == OTHER_APPLICATIONS {
            client.ident = None;
            client.address = None;
            client.user_agent.clear();
        }
        let place = (key.version.clone(), key.application, key.is_signed);
        match self.clients.get_mut(&place) {
            // Threads are drained one after the other at one time: any of them saw a last request.
            Some(known) if known.last_seen > client.last_seen => {}
            Some(known) => *known = client,
            None => drop(self.clients.insert(place, client)),
        }
        let sums = self.counts.entry(key).or_default();
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum = sum.saturating_add(*count);
        }
    }

    /// Adds requests of a path. Beyond the bound, patterns are not told apart, and then applications.
    pub(super) fn add_path(&mut self, mut key: PathKey, is_signed: bool, counts: PathCounts) {
        let max = MAX_BATCH_KEYS / if is_signed { 1 } else { 2 };
        if self.paths.len() >= max && !self.paths.contains_key(&key) {
            key.pattern = OTHER_PATHS.into();
            if !self.paths.contains_key(&key) && key.application != NO_APPLICATION {
                key.application = OTHER_APPLICATIONS;
            }
        }
        let sums = self.paths.entry(key).or_insert(PathCounts {
            by_class: ClassCounts::default(),
            last_seen: counts.last_seen,
        });
        sums.last_seen = sums.last_seen.max(counts.last_seen);
        for (sum, count) in sums.by_class.iter_mut().zip(counts.by_class) {
            *sum = sum.saturating_add(count);
        }
    }

    /// The number of requests.
    pub(super) fn requests(&self) -> u64 {
        self.counts.values().flatten().sum()
    }
}
