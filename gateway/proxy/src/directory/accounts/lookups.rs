//! Limits of the lookups that strangers can cause: each random credential is a lookup in the store.
//!
//! Lookups may use half of the store's connections, so that applications are found under a flood of credentials. They
//! wait in lanes, a lane for the clients' networks with the same hash (stochastic fair queueing): a network that floods
//! fills its own lane, and few of its lookups precede the lookups of other lanes.

use std::{
    array,
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use signpost_kit::limits::Network;
use signpost_store::StoreError;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// Number of lanes. Networks share one by chance, which nobody can foresee: the hash is keyed.
const LANES: usize = 256;

/// Limit of the lookups of one lane that run, or are next.
const MAX_IN_LANE: usize = 4;

/// Timeout of the wait for a turn. A lookup then fails as if the store were unavailable.
pub(super) const TURN_TIMEOUT: Duration = Duration::from_secs(2);

/// The lanes, and the turns of all lookups.
pub(super) struct Lookups {
    turns: Arc<Semaphore>,
    lanes: [Arc<Semaphore>; LANES],
    hasher: RandomState,
}

/// The right to run one lookup. It belongs to the lookup, not to its caller, who may leave earlier.
#[derive(Debug)]
pub(super) struct Turn {
    _turn: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
}

impl Lookups {
    /// Allows half of the store's concurrent calls, at least one.
    pub(super) fn new(max_calls: usize) -> Self {
        Self {
            turns: Arc::new(Semaphore::new((max_calls / 2).max(1))),
            lanes: array::from_fn(|_| Arc::new(Semaphore::new(MAX_IN_LANE))),
            hasher: RandomState::new(),
        }
    }

    /// Waits for the turn of a client's lookup.
    ///
    /// # Errors
    ///
    /// The timeout has passed.
    pub(super) async fn turn(&self, client: IpAddr) -> Result<Turn, StoreError> {
        let turn = async {
            // The lane first: a lookup that waits in a full lane must not hold a turn that other lanes could use.
            // Semaphores are fair, so at most four lookups of a lane are in the queue for turns.
            let place = Arc::clone(self.lane(client)).acquire_owned().await;
            let turn = Arc::clone(&self.turns).acquire_owned().await;
            place.and_then(|place| {
                turn.map(|turn| Turn {
                    _turn: turn,
                    _place: place,
                })
            })
        };
        match timeout(TURN_TIMEOUT, turn).await {
            Ok(turn) => turn.map_err(|_| StoreError::Interrupted),
            Err(_) => Err(StoreError::Busy),
        }
    }

    fn lane(&self, client: IpAddr) -> &Arc<Semaphore> {
        let hash = self.hasher.hash_one(Network::from_client(client));
        let lane = usize::try_from(hash % LANES as u64).unwrap_or_default();
        &self.lanes[lane]
    }
}
