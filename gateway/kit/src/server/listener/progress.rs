//! The state of a connection's current request, and its deadlines.

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{HttpTimeouts, UntilSent, places::Place};

/// Shared by the stream, the service and the response body of one connection, which all run in the same task.
pub(super) struct Progress {
    timeouts: Box<dyn Fn() -> HttpTimeouts + Send + Sync>,
    pub(super) place: Place,
    pub(super) state: Mutex<ProgressState>,
}

#[derive(Debug)]
pub(super) struct ProgressState {
    pub(super) stage: Stage,
    /// Set while the client takes no bytes of a response.
    send_deadline: Option<Instant>,
    /// The client has closed its side.
    pub(super) saw_end: bool,
    /// A request has begun.
    pub(super) has_begun: bool,
    /// What the last response holds until it was sent.
    pub(super) held: Option<UntilSent>,
}

/// What the connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The first byte of a head.
    Idle { until: Instant },
    /// The rest of a head.
    Head { until: Instant },
    /// The handler and its response body.
    Serving,
}

impl Progress {
    /// A new connection: the head timeout applies to its first byte. `timeouts` is called at each use.
    pub(super) fn new(
        timeouts: impl Fn() -> HttpTimeouts + Send + Sync + 'static,
        place: Place,
    ) -> Self {
        let until = Instant::now() + timeouts().head;
        Self {
            timeouts: Box::new(timeouts),
            place,
            state: Mutex::new(ProgressState {
                stage: Stage::Idle { until },
                send_deadline: None,
                saw_end: false,
                has_begun: false,
                held: None,
            }),
        }
    }

    /// When the connection must be closed unless it makes progress.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let state = self.state.lock();
        let of_stage = match state.stage {
            Stage::Idle { until } | Stage::Head { until } => Some(until),
            Stage::Serving => None,
        };
        [of_stage, state.send_deadline].into_iter().flatten().min()
    }

    /// Records a read; a length of 0 is the end of the stream.
    pub(super) fn read(&self, length: usize) {
        let mut state = self.state.lock();
        if length == 0 {
            state.saw_end = true;
        // Within a request nothing changes: the handler has a timeout for the body.
        } else if let Stage::Idle { .. } = state.stage {
            let until = Instant::now() + (self.timeouts)().head;
            state.stage = Stage::Head { until };
        }
    }

    /// What the connection waits for, and whether a first request has begun.
    pub(super) fn stage(&self) -> (Stage, bool) {
        let state = self.state.lock();
        (state.stage, state.has_begun)
    }

    /// Drops what the last response holds, if all of it was written.
    pub(super) fn release_sent(&self) {
        let mut state = self.state.lock();
        // Without a stalled write or flush, hyper has handed every byte to the system.
        if state.stage != Stage::Serving && state.send_deadline.is_none() {
            state.held = None;
        }
    }

    /// Records that a head is complete.
    pub(super) fn begin_request(&self) {
        let mut state = self.state.lock();
        state.stage = Stage::Serving;
        state.has_begun = true;
        self.place.withdraw();
    }

    /// Records that a response is complete.
    pub(super) fn end_request(&self) {
        let mut state = self.state.lock();
        if state.stage == Stage::Serving {
            let until = Instant::now() + (self.timeouts)().idle;
            state.stage = Stage::Idle { until };
            self.place.offer();
        }
    }

    /// Records a write that made progress or stalled.
    pub(super) fn write(&self, is_stalled: bool) {
        let mut state = self.state.lock();
        if !is_stalled {
            state.send_deadline = None;
        // From the first stall on: one that follows another has made no progress in between.
        } else if state.send_deadline.is_none() {
            state.send_deadline = Some(Instant::now() + (self.timeouts)().send);
        }
    }
}
