//! Limits attempts with a wrong token, by their client's network. A right token always passes, also from a network that has
//! sent too many wrong ones. The console limits sign-ins by the login service so, too.

use std::{net::IpAddr, time::Instant};

use signpost_kit::{
    limits::{Exceeded, Rate, RateTable},
    log::once_a_minute::OnceAMinute,
};
use tokio::sync::Semaphore;

/// The number of the only rule.
const RULE: u64 = 0;
/// Wrong tokens a second.
const PER_SECOND: u32 = 1;
/// Wrong tokens at once.
const BURST: u32 = 10;

/// The failures of all clients, in fixed memory.
pub(crate) struct Failures {
    table: RateTable,
    rate: Rate,
    /// Tokens of clients over the limit are looked up one at a time, so that a flood costs the store little.
    queue: Semaphore,
    /// Lines about them.
    logged: OnceAMinute,
    /// What they say.
    what: &'static str,
}

/// Why there is no token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure<E> {
    /// It is wrong.
    Wrong,
    /// It is wrong, as were too many before.
    Limited(Exceeded),
    /// It could not be looked up.
    NotFound(E),
}

impl Failures {
    /// No failures yet. `what` is what the log says of them.
    pub(crate) fn new(now: Instant, what: &'static str) -> Self {
        Self {
            table: RateTable::new(now),
            rate: Rate::new(PER_SECOND, BURST).expect("neither is 0"),
            queue: Semaphore::new(1),
            logged: OnceAMinute::new(),
            what,
        }
    }

    /// What `lookup` finds for a client; `None` of it is a failure.
    pub(crate) async fn count<T, E>(
        &self,
        client: IpAddr,
        now: Instant,
        lookup: impl Future<Output = Result<Option<T>, E>>,
    ) -> Result<T, Failure<E>> {
        // Counted at once, so that concurrent attempts are no way around the limit.
        let counted = self.table.count_client(RULE, client, self.rate, now);
        let _turn = match counted {
            Ok(_) => None,
            Err(_) => self.queue.acquire().await.ok(),
        };
        let found = lookup.await;
        if counted.is_ok() && !matches!(found, Ok(None)) {
            self.table.give_back_client(RULE, client, self.rate);
        }
        if matches!(found, Ok(None))
            && let Some(times) = self.logged.count(now)
        {
            tracing::warn!(%client, times, "{}; the last one by this client", self.what);
        }
        match (found, counted) {
            (Ok(Some(found)), _) => Ok(found),
            (Ok(None), Ok(_)) => Err(Failure::Wrong),
            (Ok(None), Err(exceeded)) => Err(Failure::Limited(exceeded)),
            (Err(error), _) => Err(Failure::NotFound(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, ready},
        time::Duration,
    };

    use tokio::time::timeout;

    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    type Found = Result<Option<u8>, ()>;

    #[tokio::test]
    async fn too_many_wrong_tokens_are_limited_and_a_right_one_always_passes() {
        let now = Instant::now();
        let failures = Failures::new(now, "");
        let count = async |client: IpAddr, found: Found, now| {
            failures.count(client, now, ready(found)).await
        };
        for _ in 0..20 {
            assert_eq!(count(CLIENT, Ok(Some(1)), now).await, Ok(1));
            assert_eq!(
                count(CLIENT, Err(()), now).await,
                Err(Failure::NotFound(()))
            );
        }
        for _ in 0..BURST {
            assert_eq!(count(CLIENT, Ok(None), now).await, Err(Failure::Wrong));
        }
        for _ in 0..3 {
            let limited = count(CLIENT, Ok(None), now).await;
            assert!(matches!(limited, Err(Failure::Limited(_))), "{limited:?}");
            assert_eq!(count(CLIENT, Ok(Some(1)), now).await, Ok(1));
        }
        let other = IpAddr::from([192, 0, 2, 2]);
        assert_eq!(count(other, Ok(None), now).await, Err(Failure::Wrong));
        let later = now + Duration::from_secs(1);
        assert_eq!(count(CLIENT, Ok(None), later).await, Err(Failure::Wrong));
        let limited = count(CLIENT, Ok(None), later).await;
        assert!(matches!(limited, Err(Failure::Limited(_))), "{limited:?}");
    }

    #[tokio::test]
    async fn a_flood_is_looked_up_one_at_a_time_and_delays_no_other_client() {
        let now = Instant::now();
        let failures = Failures::new(now, "");
        for _ in 0..BURST {
            let wrong: Found = Ok(None);
            failures.count(CLIENT, now, ready(wrong)).await.unwrap_err();
        }
        let short = Duration::from_millis(20);
        let first = failures.count(CLIENT, now, pending::<Found>());
        let first = timeout(Duration::from_secs(60), first);
        let then = async {
            let second = failures.count(CLIENT, now, async { panic!("looked up") as Found });
            timeout(short, second).await.unwrap_err();
            let other = IpAddr::from([192, 0, 2, 2]);
            let found: Found = Ok(Some(1));
            assert_eq!(failures.count(other, now, ready(found)).await, Ok(1));
        };
        tokio::select! {
            biased;
            _ = first => panic!("it has no end"),
            () = then => {}
        }
    }
}
