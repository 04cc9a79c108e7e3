//! Idle connections to backends: one pool per worker thread, without a lock, and without a task per connection.
//!
//! A connection belongs to the thread whose runtime drives it. A worker thread's requests take connections from that
//! thread's pool and return them to it. So threads never wait for each other.

use std::{
    cell::RefCell,
    collections::HashMap,
    future::poll_fn,
    net::SocketAddr,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::Duration,
};

use pingora::protocols::Stream as BoxedStream;
use tokio::{
    io::ReadBuf,
    task::{unconstrained, yield_now},
    time::sleep,
};

use crate::io::Stream;

/// Limit of idle connections per thread. If it is reached, the address with the most loses its oldest.
const MAX_IDLE: usize = 1024;
/// Interval at which a thread drops idle connections that were closed or have expired.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// Sweeps after which an idle connection expires: 90 s.
const MAX_SWEEPS: u64 = 18;

thread_local! {
    static POOL: RefCell<Pool<BoxedStream>> = RefCell::default();
}

/// The idle connection to `address` that was returned last on this thread. Connections that the runtime has noticed to be
/// closed or readable are dropped.
#[must_use]
pub(crate) fn take(address: SocketAddr) -> Option<BoxedStream> {
    POOL.with_borrow_mut(|pool| pool.take(address))
}

/// As [`take`], after the runtime has learned what the kernel knows. For requests that cannot be retried.
pub(crate) async fn take_checked(address: SocketAddr) -> Option<BoxedStream> {
    if !POOL.with_borrow(|pool| pool.idle.contains_key(&address)) {
        return None;
    }
    // The runtime polls the kernel for events before it resumes a task that yielded.
    yield_now().await;
    take(address)
}

/// Returns a connection of this thread whose last answer was read to its end.
pub(crate) fn put(address: SocketAddr, stream: BoxedStream) {
    let needs_sweeper = POOL.with_borrow_mut(|pool| {
        pool.put(address, stream);
        !std::mem::replace(&mut pool.is_swept, true)
    });
    if needs_sweeper {
        tokio::spawn(sweep());
    }
}

/// Closes expired connections, as long as the pool has any.
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
    idle: HashMap<SocketAddr, Vec<Idle<S>>>,
    len: usize,
    sweeps: u64,
    /// Whether a task sweeps it.
    is_swept: bool,
}

struct Idle<S> {
    stream: S,
    /// The number of sweeps when it became idle.
    since: u64,
}

impl<S> Default for Pool<S> {
    fn default() -> Self {
        Self {
            idle: HashMap::new(),
            len: 0,
            sweeps: 0,
            is_swept: false,
        }
    }
}

impl<S: Stream> Pool<S> {
    fn take(&mut self, address: SocketAddr) -> Option<S> {
        let idle = self.idle.get_mut(&address)?;
        while let Some(Idle { mut stream, .. }) = idle.pop() {
            self.len -= 1;
            if is_idle(&mut stream) {
                return Some(stream);
            }
        }
        None
    }

    fn put(&mut self, address: SocketAddr, stream: S) {
        if self.len == MAX_IDLE {
            let most = self.idle.values_mut().max_by_key(|idle| idle.len());
            if let Some(idle) = most {
                idle.remove(0);
                self.len -= 1;
            }
        }
        let since = self.sweeps;
        let idle = self.idle.entry(address).or_default();
        idle.push(Idle { stream, since });
        self.len += 1;
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
    }
}

/// Whether a connection is open and healthy, without unsolicited bytes.
fn is_idle(stream: &mut impl Stream) -> bool {
    let mut space = [0; 1];
    let read =
        poll_fn(|context| Pin::new(&mut *stream).poll_read(context, &mut ReadBuf::new(&mut space)));
    // A task that has used up its budget would find every connection idle.
    let read = pin!(unconstrained(read)).poll(&mut Context::from_waker(Waker::noop()));
    matches!(read, Poll::Pending)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tokio::{io::AsyncRead, task::coop::has_budget_remaining};

    use super::*;
    use crate::scripted::{Script, Step};

    const ONE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);
    const OTHER: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 2);

    /// A stream on which nothing happens, and its number.
    fn silent(number: u8) -> Script {
        Script::new([Step::Wait, Step::Give(vec![number])])
    }

    #[test]
    fn the_connection_that_was_returned_last_is_taken_first() {
        let mut pool = Pool::default();
        for number in [1, 2] {
            pool.put(ONE, silent(number));
        }
        assert!(pool.take(OTHER).is_none());
        for number in [2, 1] {
            assert_eq!(pool.take(ONE).unwrap().left(), [Step::Give(vec![number])]);
        }
        assert!(pool.take(ONE).is_none());
        assert_eq!(pool.len, 0);
    }

    #[test]
    fn a_connection_that_was_closed_or_speaks_unasked_is_not_taken() {
        let mut pool = Pool::default();
        pool.put(ONE, silent(7));
        for step in [
            Step::End,
            Step::FailRead,
            Step::Give(b"HTTP/1.1 200 OK\r\n".to_vec()),
        ] {
            pool.put(ONE, Script::new([step]));
        }
        assert_eq!(pool.take(ONE).unwrap().left(), [Step::Give(vec![7])]);
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
        assert!(pool.take(ONE).is_none() && pool.take(OTHER).is_some());
    }

    #[test]
    fn a_sweep_closes_what_the_backend_closed() {
        let mut pool = Pool::default();
        pool.put(ONE, Script::new([Step::End]));
        pool.put(ONE, silent(1));
        pool.sweep();
        assert_eq!(pool.len, 1);
    }

    #[tokio::test]
    async fn what_the_runtime_has_not_noticed_it_notices_before_a_checked_one_is_taken() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connector = crate::backend::connector::Connector::new(Duration::from_secs(9));
        for fault in ["none", "closed", "speaks"] {
            let stream = connector.connect(address).await.unwrap();
            let (mut other_end, _) = listener.accept().unwrap();
            match fault {
                "closed" => drop(other_end),
                "speaks" => other_end.write_all(b"HTTP/1.1 200 OK\r\n").unwrap(),
                _ => {}
            }
            // No await in between: the runtime has had no occasion to notice.
            put(address, stream);
            assert_eq!(
                take_checked(address).await.is_some(),
                fault == "none",
                "{fault}"
            );
        }
    }

    #[tokio::test]
    async fn a_task_without_budget_still_sees_that_a_connection_was_closed() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connector = crate::backend::connector::Connector::new(Duration::from_secs(9));
        let stream = connector.connect(address).await.unwrap();
        let mut silent = connector.connect(address).await.unwrap();
        let (ended, _silent) = (listener.accept().unwrap(), listener.accept().unwrap());
        put(address, stream);
        drop(ended);
        let taken = poll_fn(|context| {
            let mut space = [0; 1];
            while has_budget_remaining() {
                let mut buffer = ReadBuf::new(&mut space);
                let read = Pin::new(&mut silent).poll_read(context, &mut buffer);
                assert!(read.is_pending());
                // A read that finds nothing gives its share of the budget back; this does not.
                let _ = pin!(tokio::task::coop::consume_budget()).poll(context);
            }
            Poll::Ready(POOL.with_borrow_mut(|pool| pool.take(address)).is_some())
        });
        yield_now().await;
        assert!(!taken.await);
    }

    #[test]
    fn no_more_are_kept_than_that_and_one_address_keeps_no_other_out() {
        let mut pool = Pool::default();
        for _ in 0..MAX_IDLE + 9 {
            pool.put(ONE, silent(0));
        }
        assert_eq!(pool.len, MAX_IDLE);
        pool.put(OTHER, silent(1));
        assert_eq!(pool.len, MAX_IDLE);
        assert!(pool.take(OTHER).is_some());
    }
}
