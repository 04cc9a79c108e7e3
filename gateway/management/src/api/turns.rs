//! The turns of calls: how many run at once, in all and with one token, and how soon the next one does.

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit},
    time::{Instant, sleep, timeout},
};

use super::{ApiError, problem::Code};

/// Calls that run at once: half of what a SQLite store does at once, so that the other half is left for requests of clients.
const CALLS: usize = 2;
/// Of them with one token, so that its other calls wait for each other and not in front of other operators.
const CALLS_OF_TOKEN: usize = 1;
/// A token's next call waits this many times as long as the last one took. So a script that calls in a loop takes at most a
/// quarter of a processor's time, and less where workers need it: then its calls take longer.
const PAUSES: u32 = 3;
/// Limit of that wait.
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// How long a call waits for its turn.
pub(super) const TURN_TIMEOUT: Duration = Duration::from_secs(10);
/// Tokens whose turns are known. Of more, those that called last.
const MAX_TOKENS: u64 = 1000;

/// The turns of calls: of all calls, and of each token's.
pub(super) struct Turns {
    all: Semaphore,
    of_tokens: Cache<i64, Arc<Semaphore>>,
}

/// A call runs until this is dropped.
pub(super) struct Turn<'t> {
    of_token: Option<OwnedSemaphorePermit>,
    _of_all: SemaphorePermit<'t>,
    begun: Instant,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let pause = (self.begun.elapsed() * PAUSES).min(MAX_PAUSE);
        let of_token = self.of_token.take();
        tokio::spawn(async move {
            sleep(pause).await;
            drop(of_token);
        });
    }
}

impl Turns {
    /// No call runs.
    pub(super) fn new() -> Self {
        Self {
            all: Semaphore::new(CALLS),
            of_tokens: Cache::new(MAX_TOKENS),
        }
    }

    /// Waits until a call with this token may run.
    pub(super) async fn take(&self, token: i64) -> Result<Turn<'_>, ApiError> {
        let turn = timeout(TURN_TIMEOUT, self.of_stream(token)).await;
        turn.ok()
            .flatten()
            .ok_or_else(|| ApiError::from(Code::RateLimited).retry_after(TURN_TIMEOUT))
    }

    /// The same, without a limit of the wait: for each piece of what goes on after its call.
    pub(super) async fn of_stream(&self, token: i64) -> Option<Turn<'_>> {
        let own = || Arc::new(Semaphore::new(CALLS_OF_TOKEN));
        let of_token = self.of_tokens.get_with(token, own);
        let of_token = of_token.acquire_owned().await.ok()?;
        let of_all = self.all.acquire().await.ok()?;
        Some(Turn {
            of_token: Some(of_token),
            _of_all: of_all,
            begun: Instant::now(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn calls_of_one_token_do_not_wait_in_front_of_anothers() {
        let turns = Arc::new(Turns::new());
        let first = turns.take(1).await.unwrap();
        // Many more with the same token wait for it.
        for _ in 0..100 {
            let turns = Arc::clone(&turns);
            tokio::spawn(async move { turns.take(1).await.map(drop) });
        }
        tokio::task::yield_now().await;
        let other = turns.take(2).await.unwrap();
        drop(first);
        drop(other);
        let began = Instant::now();
        turns.take(2).await.unwrap();
        assert!(began.elapsed() < TURN_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_call_of_a_token_waits_by_how_long_the_last_one_took() {
        let turns = Turns::new();
        for (took, pause) in [(0, 0), (10, 30), (100, 300), (5000, 1000)] {
            let turn = turns.take(1).await.unwrap();
            sleep(Duration::from_millis(took)).await;
            drop(turn);
            let ended = Instant::now();
            drop(turns.take(2).await.unwrap());
            assert_eq!(ended.elapsed(), Duration::ZERO, "another token");
            turns.take(1).await.unwrap();
            let waited = ended.elapsed();
            let expected = Duration::from_millis(pause);
            assert!(
                waited >= expected && waited < expected + Duration::from_millis(5),
                "{waited:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_pieces_of_many_streams_of_a_token_take_a_quarter_of_the_time() {
        let turns = Arc::new(Turns::new());
        let (streams, pieces, piece) = (60, 5, Duration::from_millis(10));
        let began = Instant::now();
        let streams: tokio::task::JoinSet<_> = (0..streams)
            .map(|_| {
                let turns = Arc::clone(&turns);
                async move {
                    for _ in 0..pieces {
                        let turn = turns.of_stream(1).await;
                        sleep(piece).await;
                        drop(turn);
                    }
                }
            })
            .collect();
        let busy = piece * pieces * u32::try_from(streams.len()).unwrap();
        streams.join_all().await;
        // There is none after the last piece.
        assert!(began.elapsed() + PAUSES * piece >= 4 * busy);
        // Another token's turn is soon.
        let began = Instant::now();
        drop(turns.of_stream(2).await);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_gets_no_turn_in_time_is_rejected() {
        let turns = Turns::new();
        let _turns = (turns.take(1).await.unwrap(), turns.take(2).await.unwrap());
        let began = Instant::now();
        assert!(turns.take(3).await.is_err());
        assert!(began.elapsed() >= TURN_TIMEOUT);
    }
}
