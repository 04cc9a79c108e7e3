//! Flush of a bounded queue that a thread empties.

use std::{
    sync::mpsc::{SyncSender, sync_channel},
    thread,
    time::{Duration, Instant},
};

/// Interval of attempts to queue the marker.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Waits until the thread has handled what was queued before, for at most `timeout`; blocks meanwhile.
///
/// `queue` queues its argument as a marker, and returns `false` if the queue is full. The thread sends on the marker when
/// it reaches it.
pub fn flush(timeout: Duration, mut queue: impl FnMut(SyncSender<()>) -> bool) {
    let (marker, reached) = sync_channel(1);
    let deadline = Instant::now() + timeout;
    while !queue(marker.clone()) {
        if Instant::now() > deadline {
            return;
        }
        thread::sleep(RETRY_INTERVAL);
    }
    // If the thread has ended, nothing holds the marker.
    drop(marker);
    let _ = reached.recv_timeout(deadline.saturating_duration_since(Instant::now()));
}
