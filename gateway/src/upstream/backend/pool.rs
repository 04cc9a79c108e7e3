//! Idle connections to backends: one pool for each worker thread, without locks and without a task for each connection.
//!
//! A connection belongs to the thread whose runtime drives it. Requests use only the pool of their own thread, so
//! threads never wait for each other. A connection is given only to the endpoint that it was established for: the same
//! address with other TLS settings is another one.

use std::{
    cell::RefCell,
    collections::HashMap,
    future::poll_fn,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{
    io::ReadBuf,
    task::{unconstrained, yield_now},
    time::sleep,
};

use super::stream::BackendStream;
use crate::{tls::backend::Endpoint, wire::io::Stream};

/// Limit of idle connections for each thread. If it is reached, the oldest of the endpoint that has the most is closed.
const MAX_IDLE: usize = 1024;
/// How often a thread drops idle connections that the backend closed or that expired.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// Number of sweeps after which an idle connection expires: 90 s.
const MAX_SWEEPS: u64 = 18;

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

/// Takes this thread's most recent idle connection to `endpoint`.
///
/// Drops those that the runtime knows to be closed or readable.
#[must_use]
pub(crate) fn take(endpoint: &Endpoint) -> Option<BackendStream> {
    POOL.with_borrow_mut(|pool| pool.take(endpoint))
}

/// As [`take`], after the runtime has polled the kernel for closed connections. For requests that cannot be retried.
pub(crate) async fn take_checked(endpoint: &Endpoint) -> Option<BackendStream> {
    if !POOL.with_borrow(|pool| pool.idle.contains_key(endpoint)) {
        return None;
    }
    // The runtime polls the kernel for events before it resumes a task that yielded.
    yield_now().await;
    take(endpoint)
}

/// Returns a connection to this thread's pool. Its last response must have been read to its end.
pub(crate) fn put(endpoint: Endpoint, stream: BackendStream) {
    let needs_sweeper = POOL.with_borrow_mut(|pool| {
        pool.put(endpoint, stream);
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
            pool.sweep();
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
    idle: HashMap<Endpoint, Vec<Idle<S>>>,
    len: usize,
    /// The same as `len`, for other threads. Written with a plain store: only this thread does so.
    shown_len: Arc<AtomicUsize>,
    sweeps: u64,
    /// Whether a [`sweep`] task is running.
    is_swept: bool,
}

struct Idle<S> {
    stream: S,
    /// The pool's `sweeps` when the connection became idle.
    since: u64,
}

impl<S> Default for Pool<S> {
    fn default() -> Self {
        Self {
            idle: HashMap::new(),
            len: 0,
            shown_len: Arc::default(),
            sweeps: 0,
            is_swept: false,
        }
    }
}

impl<S: Stream> Pool<S> {
    /// An empty pool whose length [`idle_connections`] counts.
    fn shown() -> Self {
        let pool = Self::default();
        let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
        shown.retain(|one| one.strong_count() > 0);
        shown.push(Arc::downgrade(&pool.shown_len));
        pool
    }

    fn show_len(&self) {
        self.shown_len.store(self.len, Ordering::Relaxed);
    }

    fn take(&mut self, endpoint: &Endpoint) -> Option<S> {
        let idle = self.idle.get_mut(endpoint)?;
        let mut taken = None;
        while let Some(Idle { mut stream, .. }) = idle.pop() {
            self.len -= 1;
            if is_idle(&mut stream) {
                taken = Some(stream);
                break;
            }
        }
        self.show_len();
        taken
    }

    fn put(&mut self, endpoint: Endpoint, stream: S) {
        if self.len == MAX_IDLE {
            let most = self.idle.values_mut().max_by_key(|idle| idle.len());
            if let Some(idle) = most {
                idle.remove(0);
                self.len -= 1;
            }
        }
        let since = self.sweeps;
        let idle = self.idle.entry(endpoint).or_default();
        idle.push(Idle { stream, since });
        self.len += 1;
        self.show_len();
    }

    fn sweep(&mut self) {
        self.sweeps += 1;
        let sweeps = self.sweeps;
        self.idle.retain(|_, idle| {
            idle.retain_mut(|Idle { stream, since }| {
                sweeps - *since < MAX_SWEEPS && is_idle(stream)
            });
            !idle.is_empty()
        });
        self.len = self.idle.values().map(Vec::len).sum();
        self.show_len();
    }
}

/// Whether a connection is open and has no unread bytes.
fn is_idle(stream: &mut impl Stream) -> bool {
    let mut space = [0; 1];
    let read =
        poll_fn(|context| Pin::new(&mut *stream).poll_read(context, &mut ReadBuf::new(&mut space)));
    // Once a task has used up its budget, tokio reports every read as pending: a closed connection would look idle.
    let read = pin!(unconstrained(read)).poll(&mut Context::from_waker(Waker::noop()));
    matches!(read, Poll::Pending)
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

    /// A stream without events, and its number.
    fn silent(number: u8) -> Script {
        Script::new([Step::Wait, Step::Give(vec![number])])
    }

    #[test]
    fn the_last_returned_connection_is_taken_first() {
        let mut pool = Pool::default();
        for number in [1, 2] {
            pool.put(ONE, silent(number));
        }
        assert!(pool.take(&OTHER).is_none());
        for number in [2, 1] {
            assert_eq!(
                pool.take(&ONE).unwrap().remaining_reads(),
                [Step::Give(vec![number])]
            );
        }
        assert!(pool.take(&ONE).is_none());
        assert_eq!(pool.len, 0);
    }

    #[test]
    fn a_closed_or_readable_connection_is_not_taken() {
        let mut pool = Pool::default();
        pool.put(ONE, silent(7));
        for step in [
            Step::End,
            Step::FailRead,
            Step::Give(b"HTTP/1.1 200 OK\r\n".to_vec()),
        ] {
            pool.put(ONE, Script::new([step]));
        }
        assert_eq!(
            pool.take(&ONE).unwrap().remaining_reads(),
            [Step::Give(vec![7])]
        );
        assert_eq!(pool.len, 0);
    }

    #[test]
    fn idle_connections_expire() {
        let mut pool = Pool::default();
        let waits = || Script::new((0..99).map(|_| Step::Wait));
        pool.put(ONE, waits());
        for _ in 1..MAX_SWEEPS {
            pool.sweep();
        }
        pool.put(OTHER, waits());
        assert_eq!(pool.len, 2);
        pool.sweep();
        assert_eq!(pool.len, 1);
        assert_eq!(pool.shown_len.load(Ordering::Relaxed), 1);
        assert!(pool.take(&ONE).is_none() && pool.take(&OTHER).is_some());
        assert_eq!(pool.shown_len.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_sweep_drops_connections_that_the_backend_closed() {
        let mut pool = Pool::default();
        pool.put(ONE, Script::new([Step::End]));
        pool.put(ONE, silent(1));
        pool.sweep();
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
            put(endpoint.clone(), stream);
            assert_eq!(
                take_checked(&endpoint).await.is_some(),
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
        put(endpoint.clone(), stream);
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
            Poll::Ready(POOL.with_borrow_mut(|pool| pool.take(&endpoint)).is_some())
        });
        yield_now().await;
        assert!(!taken.await);
    }

    #[test]
    fn the_pool_is_limited_and_no_address_displaces_another() {
        let mut pool = Pool::default();
        for _ in 0..MAX_IDLE + 9 {
            pool.put(ONE, silent(0));
        }
        assert_eq!(pool.len, MAX_IDLE);
        pool.put(OTHER, silent(1));
        assert_eq!(pool.len, MAX_IDLE);
        assert!(pool.take(&OTHER).is_some());
    }
}
