//! Free ports of the loopback address.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

/// First port. The range is below the system's ephemeral ports, so that no outgoing connection of another test
/// can take the port before the program binds it.
const FIRST: u32 = 11_000;
const COUNT: u32 = 20_000;

/// An unused loopback address. No other call in this process returns it soon.
///
/// # Panics
///
/// When all 20,000 ports are in use.
#[must_use]
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Processes that run at the same time start far apart.
    let offset = process::id().wrapping_mul(7919);
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(offset);
        let port = u16::try_from(FIRST + step % COUNT).expect("the range ends below 65536");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
    panic!("no free port between {FIRST} and {}", FIRST + COUNT);
}
