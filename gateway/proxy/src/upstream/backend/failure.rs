//! Failures between the gateway and a backend, by cause.

use std::io;

use super::backend_head::MalformedResponse;
use crate::{request::rejection::Rejection, upstream::routing::status::BackendEvent};

/// Why a request got no response or an incomplete one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendFailure {
    /// No connection could be established. Nothing was sent.
    NotConnected {
        /// Whether the backend refused it or did not respond; otherwise the cause is on this machine.
        is_backend_fault: bool,
        /// Whether it was the TLS handshake that failed.
        is_tls: bool,
        /// The cause, as the system reports it. It contains nothing of the request.
        why: String,
    },
    /// The connection was closed or reset.
    Ended {
        /// The cause, as the system reports it. It contains nothing of the request.
        why: String,
    },
    /// A timeout passed while the request was sent or the response was read.
    TimedOut,
    /// The response is malformed, or two parsers could read it differently.
    Malformed(&'static str),
    /// The client disconnected.
    ClientDisconnected,
}

impl BackendFailure {
    /// Creates [`Self::Ended`]: the connection ended before the response did.
    #[must_use]
    pub fn ended(why: &str) -> Self {
        Self::Ended {
            why: why.to_owned(),
        }
    }

    /// The cause, for the metrics; `None` if it was the client.
    #[must_use]
    pub const fn cause(&self) -> Option<BackendEvent> {
        Some(match self {
            Self::NotConnected { is_tls: true, .. } => BackendEvent::Tls,
            Self::NotConnected { .. } => BackendEvent::Connect,
            Self::Ended { .. } => BackendEvent::Reset,
            Self::TimedOut => BackendEvent::Timeout,
            Self::Malformed(_) => BackendEvent::Malformed,
            // A client that leaves says nothing about the backend.
            Self::ClientDisconnected => return None,
        })
    }
}

impl From<MalformedResponse> for BackendFailure {
    fn from(MalformedResponse(why): MalformedResponse) -> Self {
        Self::Malformed(why)
    }
}

impl From<io::Error> for BackendFailure {
    fn from(error: io::Error) -> Self {
        Self::Ended {
            why: error.to_string(),
        }
    }
}

impl From<BackendFailure> for Rejection {
    fn from(failure: BackendFailure) -> Self {
        match failure {
            BackendFailure::NotConnected { why, .. } | BackendFailure::Ended { why } => {
                Self::BackendUnreachable { why }
            }
            BackendFailure::TimedOut => Self::BackendTimeout,
            BackendFailure::Malformed(why) => Self::BackendUnreachable {
                why: format!("malformed response: {why}"),
            },
            BackendFailure::ClientDisconnected => Self::ClientDisconnected,
        }
    }
}
