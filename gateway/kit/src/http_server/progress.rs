//! How far a connection has come with its request, and when that has taken too long.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::HttpTimeouts;

/// Shared by the stream, the service and the answer's body of one connection, which all run in its one task.
pub(super) struct Progress {
    timeouts: Box<dyn Fn() -> HttpTimeouts + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    /// Runs while the other end takes nothing of an answer.
    send_deadline: Option<Instant>,
    saw_end: bool,
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A head's first byte.
    Idle { until: Instant },
    /// The rest of a head.
    Head { until: Instant },
    /// The handler, and its answer's body.
    Serving,
}

impl Progress {
    /// A new connection, within the timeouts of each moment: its first byte may take as long as a head.
    pub(super) fn new(timeouts: impl Fn() -> HttpTimeouts + Send + Sync + 'static) -> Self {
        let until = Instant::now() + timeouts().head;
        Self {
            timeouts: Box::new(timeouts),
            state: Mutex::new(State {
                stage: Stage::Idle { until },
                send_deadline: None,
                saw_end: false,
            }),
        }
    }

    pub(super) fn stage(&self) -> Stage {
        self.state().stage
    }

    /// Whether the other end has closed its side.
    pub(super) fn saw_end(&self) -> bool {
        self.state().saw_end
    }

    /// When the connection has to be ended, unless it gets on.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let state = self.state();
        let of_stage = match state.stage {
            Stage::Idle { until } | Stage::Head { until } => Some(until),
            Stage::Serving => None,
        };
        [of_stage, state.send_deadline].into_iter().flatten().min()
    }

    /// Bytes came, or with none the end.
    pub(super) fn read(&self, length: usize) {
        let mut state = self.state();
        if length == 0 {
            state.saw_end = true;
        } else if let Stage::Idle { .. } = state.stage {
            let until = Instant::now() + (self.timeouts)().head;
            state.stage = Stage::Head { until };
        }
    }

    /// A head is whole.
    pub(super) fn begin_request(&self) {
        self.state().stage = Stage::Serving;
    }

    /// An answer is handed over whole.
    pub(super) fn end_request(&self) {
        let mut state = self.state();
        if state.stage == Stage::Serving {
            let until = Instant::now() + (self.timeouts)().idle;
            state.stage = Stage::Idle { until };
        }
    }

    /// A write got on, or is stalled.
    pub(super) fn write(&self, is_stalled: bool) {
        let mut state = self.state();
        if !is_stalled {
            state.send_deadline = None;
        } else if state.send_deadline.is_none() {
            state.send_deadline = Some(Instant::now() + (self.timeouts)().send);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
