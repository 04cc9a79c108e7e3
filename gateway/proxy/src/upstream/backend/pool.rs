//! Idle connections to backends: one pool for each worker thread, without locks and without a task for each connection.
//!
//! A connection belongs to the thread whose runtime drives it. Requests use only the pool of their own thread, so
//! threads never wait for each other. A connection is given only to the endpoint that it was established for: the same
//! address with other TLS settings is another one. Backends at one endpoint share connections, each within its own limit of
//! idle time.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    future::poll_fn,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use tokio::{
    io::ReadBuf,
    task::{unconstrained, yield_now},
    time::sleep,
};

use super::stream::BackendStream;
use crate::{
    tls::backend::{Endpoint, EndpointId},
    wire::io::Stream,
};

/// Limit of idle connections for each thread. If it is reached, the oldest of the endpoint that has the most is closed.
const MAX_IDLE: usize = 1024;
/// How often a thread drops idle connections that the backend closed or that expired.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

thread_local! {
    static POOL: RefCell<Pool<BackendStream>> = RefCell::new(Pool::shown());
}

/// The lengths of all threads' pools, for the metrics. Locked when a thread uses its pool for the first time, and when
/// the metrics are scraped.
static SHOWN: Mutex<Vec<Weak<AtomicUsize>>> = Mutex::new(Vec::new());

/// The number of idle connections in the pools of all threads.
#[must_use]
pub(crate) fn idle_connections() -> usize {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let lengths = shown.iter().filter_map(Weak::upgrade);
    lengths.map(|length| length.load(Ordering::Relaxed)).sum()
}

/// Takes this thread's most recent idle connection to `endpoint`, if it was idle for less than this time.
///
/// Drops those that the runtime knows to be closed or readable.
#[must_use]
pub(crate) fn take(endpoint: &Endpoint, idle_seconds: u16) -> Option<BackendStream> {
    POOL.with_borrow_mut(|pool| pool.take(endpoint, idle_seconds, Instant::now()))
}

/// As [`take`], after the runtime has polled the kernel for closed connections. For requests that cannot be retried.
pub(crate) async fn take_checked(endpoint: &Endpoint, idle_seconds: u16) -> Option<BackendStream> {
    // To yield costs a turn of the runtime: not if there is nothing to check.
    if !POOL.with_borrow(|pool| pool.idle.contains_key(&endpoint.id())) {
        return None;
    }
    // The runtime polls the kernel for events before it resumes a task that yielded.
    yield_now().await;
    take(endpoint, idle_seconds)
}

/// Returns a connection to this thread's pool, to be closed once it was idle for this time. Its last response must have been
/// read to its end.
pub(crate) fn put(endpoint: Endpoint, stream: BackendStream, idle_seconds: u16) {
    let idle = Idle {
        stream,
        since: Instant::now(),
        idle_seconds,
    };
    // One task for each pool, and only while the pool has connections: an idle thread is not woken.
    let needs_sweeper = POOL.with_borrow_mut(|pool| {
        pool.put(endpoint, idle);
        !std::mem::replace(&mut pool.is_swept, true)
    });
    if needs_sweeper {
        tokio::spawn(sweep());
    }
}

/// Sweeps the pool regularly, until it is empty.
async fn sweep() {
    loop {
        sleep(SWEEP_INTERVAL).await;
        let is_empty = POOL.with_borrow_mut(|pool| {
            pool.sweep(Instant::now());
            // In the same borrow as the count: a connection that returns after this task has ended starts another one.
            pool.is_swept = pool.len > 0;
            pool.len == 0
        });
        if is_empty {
            return;
        }
    }
}

/// The idle connections of one thread.
struct Pool<S> {
    idle: BTreeMap<EndpointId, Vec<Idle<S>>>,
    len: usize,
    /// The same as `len`, for other threads. Written with a plain store: only this thread does so.
    shown_len: Arc<AtomicUsize>,
    /// Whether a [`sweep`] task is running.
    is_swept: bool,
}

struct Idle<S> {
    stream: S,
    /// When the connection became idle.
    since: Instant,
    /// The limit of the backend that used it last.
    idle_seconds: u16,
}

impl<S> Default for Pool<S> {
    fn default() -> Self {
        Self {
            idle: BTreeMap::new(),
            len: 0,
            shown_len: Arc::default(),
            is_swept: false,
        }
    }
}

impl<S: Stream> Pool<S> {
    /// An empty pool whose length [`idle_connections`] counts.
    fn shown() -> Self {
        let pool = Self::default();
        let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
        // Threads end with their runtime, for example in tests.
        shown.retain(|length| length.strong_count() > 0);
        shown.push(Arc::downgrade(&pool.shown_len));
        pool
    }

    fn show_len(&self) {
        // Only this thread changes it; the others read it for the metrics.
        self.shown_len.store(self.len, Ordering::Relaxed);
    }

    fn take(&mut self, endpoint: &Endpoint, idle_seconds: u16, now: Instant) -> Option<S> {
        // A list that becomes empty stays until the next sweep: its connection usually comes back.
        let idle = self.idle.get_mut(&endpoint.id())?;
        let mut taken = None;
        // The newest first: after a burst, the others reach their limit of idle time, and the pool shrinks.
        while let Some(mut newest) = idle.pop() {
            self.len -= 1;
            if newest.is_usable(idle_seconds, now) {
                taken = Some(newest.stream);
                break;
            }
        }
        self.show_len();
        taken
    }

    fn put(&mut self, endpoint: Endpoint, idle: Idle<S>) {
        if self.len == MAX_IDLE {
            // Its oldest connection, so that a busy backend does not displace the connections of the others.
            let most = self.idle.values_mut().max_by_key(|idle| idle.len());
            if let Some(most) = most {
                most.remove(0);
                self.len -= 1;
            }
        }
        self.idle.entry(endpoint.id()).or_default().push(idle);
        self.len += 1;
        self.show_len();
    }

    fn sweep(&mut self, now: Instant) {
        self.idle.retain(|_, idle| {
            idle.retain_mut(|idle| idle.is_usable(idle.idle_seconds, now));
            !idle.is_empty()
        });
        self.len = self.idle.values().map(Vec::len).sum();
        self.show_len();
    }
}

impl<S: Stream> Idle<S> {
    /// Whether it was idle for less than its own limit and this one, and is open and without unread bytes.
    fn is_usable(&mut self, idle_seconds: u16, now: Instant) -> bool {
        // Backends that share an endpoint may have different limits: the gateway must close the connection before the
        // backend does, so the stricter one applies.
        let limit = Duration::from_secs(self.idle_seconds.min(idle_seconds).into());
        now.saturating_duration_since(self.since) < limit && is_idle(&mut self.stream)
    }
}

/// Whether a connection is open and has no unread bytes.
fn is_idle(stream: &mut impl Stream) -> bool {
    let mut space = [0; 1];
    let polled =
        poll_fn(|context| Pin::new(&mut *stream).poll_read(context, &mut ReadBuf::new(&mut space)));
    // Once a task has used up its budget, tokio reports every read as pending: a closed connection would look idle.
    let polled = pin!(unconstrained(polled)).poll(&mut Context::from_waker(Waker::noop()));
    // Readable means closed, or a response that no request has asked for: the next request would take it for its own.
    matches!(polled, Poll::Pending)
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        net::{IpAddr, Ipv4Addr, SocketAddr},
    };

    use tokio::{io::AsyncRead, task::coop::has_budget_remaining};

    use super::*;
    use crate::request::scripted::{Script, Step};

    const ONE: Endpoint = Endpoint::plain(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1));
    const OTHER: Endpoint = Endpoint::plain(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 2));

    const LIMIT: u16 = 90;
    const LIMIT_DURATION: Duration = Duration::from_secs(90);

    /// A connection that became idle at `since`.
    fn idle(stream: Script, since: Instant) -> Idle<Script> {
        Idle {
            stream,
            since,
            idle_seconds: LIMIT,
        }
    }

    /// A stream without events, and its number.
    fn silent(number: u8) -> Script {
        Script::new([Step::Wait, Step::Give(vec![number])])
    }

    #[test]
    fn the_last_returned_connection_is_taken_first() {
        let (mut pool, now) = (Pool::default(), Instant::now());
        for number in [1, 2] {
            pool.put(ONE, idle(silent(number), now));
        }
        assert!(pool.take(&OTHER, LIMIT, now).is_none());
        for number in [2, 1] {
            assert_eq!(
                pool.take(&ONE, LIMIT, now).unwrap().remaining_reads(),
                [Step::Give(vec![number])]
            );
        }
        assert!(pool.take(&ONE, LIMIT, now).is_none());
        assert_eq!(pool.len, 0);
    }

    #[test]
    fn a_closed_or_readable_connection_is_not_taken() {
        let (mut pool, now) = (Pool::default(), Instant::now());
        pool.put(ONE, idle(silent(7), now));
        for step in [
            Step::End,
            Step::FailRead,
            Step::Give(b"HTTP/1.1 200 OK\r\n".to_vec()),
        ] {
            pool.put(ONE, idle(Script::new([step]), now));
        }
        assert_eq!(
            pool.take(&ONE, LIMIT, now).unwrap().remaining_reads(),
            [Step::Give(vec![7])]
        );
        assert_eq!(pool.len, 0);
    }

    #[test]
    fn idle_connections_expire() {
        let (mut pool, now) = (Pool::default(), Instant::now());
        pool.put(ONE, idle(silent(1), now));
        let waits = Script::new((0..9).map(|_| Step::Wait));
        pool.put(OTHER, idle(waits, now + Duration::from_secs(1)));
        pool.sweep(now + LIMIT_DURATION);
        assert_eq!(pool.len, 1);
        assert_eq!(pool.shown_len.load(Ordering::Relaxed), 1);
        assert!(pool.take(&ONE, LIMIT, now + LIMIT_DURATION).is_none());
        assert!(pool.take(&OTHER, LIMIT, now + LIMIT_DURATION).is_some());
        assert_eq!(pool.shown_len.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn an_expired_connection_is_not_taken_before_the_sweep() {
        let (mut pool, now) = (Pool::default(), Instant::now());
        let later = now + Duration::from_secs(1);
        // The lower limit counts: of the backend that used the connection, or of the backend that takes it.
        for (idle_seconds, limit, is_taken) in [(90, 90, true), (90, 1, false), (1, 90, false)] {
            let one = Idle {
                idle_seconds,
                ..idle(silent(0), now)
            };
            pool.put(ONE, one);
            assert_eq!(pool.take(&ONE, limit, later).is_some(), is_taken);
            assert_eq!(pool.len, 0);
        }
    }

    #[test]
    fn a_sweep_drops_connections_that_the_backend_closed() {
        let (mut pool, now) = (Pool::default(), Instant::now());
        pool.put(ONE, idle(Script::new([Step::End]), now));
        pool.put(ONE, idle(silent(1), now));
        pool.sweep(now);
        assert_eq!(pool.len, 1);
    }

    #[tokio::test]
    async fn a_checked_take_notices_recent_closes_and_bytes() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::plain(listener.local_addr().unwrap());
        let connector = crate::upstream::backend::connector::Connector::new(Duration::from_secs(9));
        for fault in ["none", "closed", "speaks"] {
            let stream = connector.connect(&endpoint).await.unwrap();
            let (mut other_end, _) = listener.accept().unwrap();
            match fault {
                "closed" => drop(other_end),
                "speaks" => other_end.write_all(b"HTTP/1.1 200 OK\r\n").unwrap(),
                _ => {}
            }
            // No await in between: the runtime has not polled the kernel yet.
            put(endpoint.clone(), stream, LIMIT);
            assert_eq!(
                take_checked(&endpoint, LIMIT).await.is_some(),
                fault == "none",
                "{fault}"
            );
        }
    }

    #[tokio::test]
    async fn a_task_without_budget_still_notices_a_closed_connection() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::plain(listener.local_addr().unwrap());
        let connector = crate::upstream::backend::connector::Connector::new(Duration::from_secs(9));
        let stream = connector.connect(&endpoint).await.unwrap();
        let mut silent = connector.connect(&endpoint).await.unwrap();
        let (ended, _silent) = (listener.accept().unwrap(), listener.accept().unwrap());
        put(endpoint.clone(), stream, LIMIT);
        drop(ended);
        let taken = poll_fn(|context| {
            let mut space = [0; 1];
            while has_budget_remaining() {
                let mut buffer = ReadBuf::new(&mut space);
                let read = Pin::new(&mut silent).poll_read(context, &mut buffer);
                assert!(read.is_pending());
                // A pending read returns its share of the budget; this does not.
                let _ = pin!(tokio::task::coop::consume_budget()).poll(context);
            }
            Poll::Ready(
                POOL.with_borrow_mut(|pool| pool.take(&endpoint, LIMIT, Instant::now()))
                    .is_some(),
            )
        });
        yield_now().await;
        assert!(!taken.await);
    }

    #[test]
    fn the_pool_is_limited_and_no_address_displaces_another() {
        let (mut pool, now) = (Pool::default(), Instant::now());
        for _ in 0..MAX_IDLE + 9 {
            pool.put(ONE, idle(silent(0), now));
        }
        assert_eq!(pool.len, MAX_IDLE);
        pool.put(OTHER, idle(silent(1), now));
        assert_eq!(pool.len, MAX_IDLE);
        assert!(pool.take(&OTHER, LIMIT, now).is_some());
    }
}
