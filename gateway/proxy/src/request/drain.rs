//! The phase of a shutdown, and the number of requests in flight.

use std::{
    future::poll_fn,
    ops::Deref,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use signpost_kit::server::shutdown::{Phase, SETTLE_TIME};
use tokio::sync::Notify;

use crate::request::rejection::Rejection;

/// An HTTP/1.1 connection that serves a request, in [`Drain::in_flight`].
// No carry gets from one half to the other: file descriptors end long before 2^32 connections.
const SERVING: u64 = 1 << 32;
/// Anything else in flight.
const OTHER: u64 = 1;

/// Counts requests in flight, and holds the phase of the shutdown.
#[derive(Debug)]
pub struct Drain {
    /// Two numbers of 32 bits: HTTP/1.1 connections that serve a request, which the metrics show apart, and all else. So
    /// a request costs one addition for both the stop and the metrics.
    in_flight: AtomicU64,
    none_left: Notify,
    phase: AtomicU8,
    /// How long idle connections stay open once listeners are closed, in milliseconds.
    idle_delay: AtomicU64,
    closing: Notify,
}

/// Counts as in flight until it is dropped.
#[derive(Debug)]
pub struct Guard<D: Deref<Target = Drain>, const WHAT: u64>(D);

/// A request in flight.
pub(crate) type InFlight<'d> = Guard<&'d Drain, OTHER>;

/// An HTTP/1.1 connection that serves a request. It is in flight, too.
pub(crate) type Serving<'d> = Guard<&'d Drain, SERVING>;

/// A connection that has not sent its first request yet. A stop waits for it: its client may have sent the request already.
/// Also a listener that accepts connections, a call of the management API, and the command `upgrade`.
pub type Beginning = Guard<Arc<Drain>, OTHER>;

impl Drain {
    /// Creates a state without requests, in the phase `Serving`.
    #[must_use]
    pub fn new() -> Self {
        Self {
            in_flight: AtomicU64::new(0),
            none_left: Notify::new(),
            phase: AtomicU8::new(Phase::Serving as u8),
            idle_delay: AtomicU64::new(0),
            closing: Notify::new(),
        }
    }

    /// Counts a request until the guard is dropped.
    pub(crate) fn begin(&self) -> InFlight<'_> {
        self.in_flight.fetch_add(OTHER, Ordering::SeqCst);
        Guard(self)
    }

    /// Counts an HTTP/1.1 connection that serves a request until the guard is dropped.
    pub(crate) fn begin_serving(&self) -> Serving<'_> {
        self.in_flight.fetch_add(SERVING, Ordering::SeqCst);
        Guard(self)
    }

    /// Counts a new connection like a request, until the guard is dropped.
    pub fn begin_connection(self: &Arc<Self>) -> Beginning {
        self.in_flight.fetch_add(OTHER, Ordering::SeqCst);
        Guard(Arc::clone(self))
    }

    /// The number of requests in flight.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        let both = self.in_flight.load(Ordering::SeqCst);
        both / SERVING + both % SERVING
    }

    /// The number of HTTP/1.1 connections that serve a request.
    #[must_use]
    pub(crate) fn serving(&self) -> u64 {
        self.in_flight.load(Ordering::SeqCst) / SERVING
    }

    /// Whether a shutdown has begun: the gateway is no longer ready, and connections are closed after their response.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.has_reached(Phase::Draining)
    }

    /// Whether listeners and, after [`Self::idle_delay`], idle connections are closed.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.has_reached(Phase::Closing)
    }

    /// Ready with `work`, a part of a request in flight, or once the grace period is almost over. `work` must be woken by
    /// [`Timer::poll_in_flight`](crate::wire::io::Timer::poll_in_flight) while it waits.
    ///
    /// # Errors
    ///
    /// Those of `work`, and [`Rejection::GatewayStopping`].
    pub(crate) fn cut_off<T, E: From<Rejection>>(
        &self,
        mut work: Pin<&mut impl Future<Output = Result<T, E>>>,
    ) -> impl Future<Output = Result<T, E>> {
        poll_fn(move |context| match work.as_mut().poll(context) {
            // Only while the work waits: a response that is ready is better than a 504. No waker is registered for the
            // phase, since that takes a lock of all threads; the request's own timers poll this often enough.
            Poll::Pending if self.has_reached(Phase::GivingUp) => {
                Poll::Ready(Err(Rejection::GatewayStopping.into()))
            }
            polled => polled,
        })
    }

    /// Waits for the closing phase.
    pub async fn closing(&self) {
        // Created before the phase is read, so that it does not miss a change in between.
        let closing = self.closing.notified();
        if !self.is_closing() {
            closing.await;
        }
    }

    /// How long an idle connection stays open from the closing phase on. A request that arrives by then is served.
    pub fn idle_delay(&self) -> Duration {
        let delay = Duration::from_millis(self.idle_delay.load(Ordering::Relaxed));
        // Just accepted connections may still send their first request.
        delay.max(SETTLE_TIME)
    }

    /// Enters the closing phase, in which idle connections stay open for `idle_delay`.
    pub fn close(&self, idle_delay: Duration) {
        let millis = u64::try_from(idle_delay.as_millis()).unwrap_or(u64::MAX);
        // Before the phase, whose store publishes this one: who sees the closing phase reads the right delay.
        self.idle_delay.store(millis, Ordering::Relaxed);
        self.enter(Phase::Closing);
    }

    /// Enters a phase of the shutdown, unless it is past it.
    pub fn enter(&self, phase: Phase) {
        // Never backwards: a signal may begin a stop while a handed-over process already closes.
        self.phase.fetch_max(phase as u8, Ordering::SeqCst);
        if phase >= Phase::Closing {
            self.closing.notify_waiters();
        }
    }

    /// Waits until no request is in flight.
    pub async fn finished(&self) {
        let none_left = self.none_left.notified();
        tokio::pin!(none_left);
        // Registered before the count is read, so that it does not miss the end of the last request in between.
        none_left.as_mut().enable();
        if self.in_flight() > 0 {
            none_left.await;
        }
    }

    fn end(&self, what: u64) {
        // `SeqCst` here, in `enter` and in `finished`: either this reads the phase of the stop, or the stop reads the
        // count without this request. With weaker orders both could miss each other, and the stop would last the whole
        // grace period.
        let was_last = self.in_flight.fetch_sub(what, Ordering::SeqCst) == what;
        if was_last && self.is_draining() {
            self.none_left.notify_waiters();
        }
    }

    fn has_reached(&self, phase: Phase) -> bool {
        self.phase.load(Ordering::SeqCst) >= phase as u8
    }
}

impl Default for Drain {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: Deref<Target = Drain>, const WHAT: u64> Drop for Guard<D, WHAT> {
    fn drop(&mut self) {
        self.0.end(WHAT);
    }
}

/// Notifies one connection, for its whole life, of the closing phase.
///
/// All waits of a connection are in the same task. The task is registered once, and each wait only reads the phase: a
/// lock that all threads share is taken once per connection instead of once per request.
pub(crate) struct ClosingWatch<'d> {
    drain: &'d Drain,
    closing: Pin<&'d mut (dyn Future<Output = ()> + Send)>,
    is_registered: bool,
}

impl<'d> ClosingWatch<'d> {
    /// Watches `drain`; `closing` is the future of its [`Drain::closing`].
    pub(crate) fn new(
        drain: &'d Drain,
        closing: Pin<&'d mut (dyn Future<Output = ()> + Send)>,
    ) -> Self {
        Self {
            drain,
            closing,
            is_registered: false,
        }
    }

    /// What it watches.
    pub(crate) const fn drain(&self) -> &'d Drain {
        self.drain
    }

    /// Ready with the [`Drain::idle_delay`] in the closing phase. Must always be polled by the same task.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Duration> {
        if !self.is_registered {
            // Polled once: the waker of the task stays registered, and a future that was ready must not be polled
            // again.
            self.is_registered = true;
            let closing = self.closing.as_mut().poll(context);
            return closing.map(|()| self.drain.idle_delay());
        }
        if self.drain.is_closing() {
            Poll::Ready(self.drain.idle_delay())
        } else {
            Poll::Pending
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, pin::pin, sync::Arc};

    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::wire::io::Timer;

    #[tokio::test]
    async fn the_end_waits_for_requests_in_flight() {
        let drain = Drain::new();
        drain.enter(Phase::Closing);
        let one = drain.begin();
        let other = drain.begin();
        let serving = drain.begin_serving();
        assert_eq!((drain.in_flight(), drain.serving()), (3, 1));
        drop(one);
        let mut end = pin!(drain.finished());
        assert!(is_pending(end.as_mut()).await);
        drop(other);
        assert_eq!((drain.in_flight(), drain.serving()), (1, 1));
        assert!(is_pending(end.as_mut()).await);
        drop(serving);
        end.await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_in_flight_is_cut_off_once_a_stop_gives_up() {
        let (drain, mut timer) = (Drain::new(), Timer::default());
        let deadline = Instant::now() + Duration::from_secs(3600);
        let mut waiting = pin!(poll_fn(|context| {
            let expired = timer.poll_in_flight(context, deadline);
            expired.map(|()| Ok::<_, Rejection>(()))
        }));
        drain.close(Duration::ZERO);
        let cut_off = drain.cut_off(waiting.as_mut());
        assert!(timeout(Duration::from_secs(60), cut_off).await.is_err());
        drain.enter(Phase::GivingUp);
        let start = Instant::now();
        let ended = drain.cut_off(waiting.as_mut()).await;
        assert!(matches!(ended, Err(Rejection::GatewayStopping)));
        assert!(start.elapsed() < Duration::from_secs(1));
        // What is ready is not cut off.
        let ready = pin!(async { Ok::<_, Rejection>(1) });
        assert_eq!(drain.cut_off(ready).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_watch_that_was_polled_before_ends_with_the_closing_phase_and_not_before() {
        let drain = Arc::new(Drain::new());
        let watched = Arc::clone(&drain);
        let watching = tokio::spawn(async move {
            let closing = pin!(watched.closing());
            let mut watch = ClosingWatch::new(&watched, closing);
            // Like the requests of one connection, which wait one after the other.
            for _ in 0..3 {
                let first = poll_fn(|context| Poll::Ready(watch.poll(context))).await;
                assert!(first.is_pending());
            }
            poll_fn(|context| watch.poll(context)).await;
            watched.is_closing()
        });
        drain.enter(Phase::Draining);
        // Long enough for the task to end, if it did so too early.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!watching.is_finished());
        drain.enter(Phase::Closing);
        let ended = timeout(Duration::from_secs(60), watching).await;
        assert!(ended.unwrap().unwrap());
    }

    #[tokio::test]
    async fn a_watch_that_begins_during_the_closing_phase_ends_at_once() {
        let drain = Drain::new();
        drain.enter(Phase::Closing);
        let closing = pin!(drain.closing());
        let mut watch = ClosingWatch::new(&drain, closing);
        poll_fn(|context| watch.poll(context)).await;
    }

    async fn is_pending(mut future: Pin<&mut impl Future<Output = ()>>) -> bool {
        poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await
    }
}
