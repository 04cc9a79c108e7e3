//! Free ports of the loopback address.

use std::{
    env,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

/// First port. The range is below the system's ephemeral ports, so that no outgoing connection of another test
/// can take the port before the program binds it.
const FIRST: u32 = 11_000;
const COUNT: u32 = 20_000;

/// More than any test needs.
const PORTS_OF_A_SLOT: u32 = 300;

/// An unused loopback address. No other call in this process returns it soon.
///
/// # Panics
///
/// When all 20,000 ports are in use.
#[must_use]
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let offset = first_step();
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

/// Processes that run at the same time start far apart: nextest gives each a slot of its own, and the run another place.
fn first_step() -> u32 {
    let number = |name| env::var(name).ok()?.parse::<u32>().ok();
    match (
        number("NEXTEST_TEST_GLOBAL_SLOT"),
        env::var("NEXTEST_RUN_ID"),
    ) {
        (Some(slot), Ok(run)) => {
            let run = run.bytes().fold(0, |sum: u32, byte| {
                sum.wrapping_mul(31).wrapping_add(byte.into())
            });
            (run % COUNT) + slot * PORTS_OF_A_SLOT
        }
        _ => process::id().wrapping_mul(7919),
    }
}
