//! What pingora's errors amount to.

use std::ops::Deref;

use pingora::{Error, ErrorSource, ErrorType};

use crate::{rejection::Rejection, upstream::in_short};

/// Why a request failed, out of pingora's error.
pub(super) enum Reason<'e> {
    /// A rejection of ours, that the error carries.
    Carried(&'e Rejection),
    /// What an error of pingora's own amounts to.
    Made(Rejection),
}

impl<'e> Reason<'e> {
    pub(super) fn of(error: &'e Error) -> Self {
        // However often the error was wrapped on its way.
        match error.root_cause().downcast_ref() {
            Some(carried) => Self::Carried(carried),
            None => Self::Made(rejection_of(error)),
        }
    }
}

impl Deref for Reason<'_> {
    type Target = Rejection;

    fn deref(&self) -> &Rejection {
        match self {
            Self::Carried(rejection) => rejection,
            Self::Made(rejection) => rejection,
        }
    }
}

/// The rejection that an error of pingora's own amounts to.
fn rejection_of(error: &Error) -> Rejection {
    match (error.esource(), error.etype()) {
        (ErrorSource::Downstream, _) => Rejection::ClientGone,
        (_, ErrorType::ReadTimedout | ErrorType::WriteTimedout) => Rejection::BackendTimeout,
        (ErrorSource::Upstream, ErrorType::ReadError | ErrorType::WriteError)
            if is_stalled(error) =>
        {
            Rejection::BackendTimeout
        }
        // A client's head was checked before, so what is no HTTP is the backend's.
        (ErrorSource::Upstream, _)
        | (_, ErrorType::ConnectTimedout | ErrorType::InvalidHTTPHeader) => {
            let why = in_short(error);
            Rejection::BackendUnreachable { why }
        }
        // Only the kind: the context may hold a request's target.
        (_, kind) => Rejection::Internal(kind.as_str().to_owned().into()),
    }
}

impl From<Rejection> for Box<Error> {
    fn from(rejection: Rejection) -> Self {
        let status = rejection.code().map_or(400, |code| code.status().as_u16());
        Error::because(ErrorType::HTTPStatus(status), "rejected", rejection)
    }
}

/// Whether the other end refused a connection, or did not answer: not that this machine has none to give.
pub(super) const fn is_theirs(kind: &ErrorType) -> bool {
    matches!(
        kind,
        ErrorType::ConnectTimedout
            | ErrorType::ConnectRefused
            | ErrorType::ConnectNoRoute
            | ErrorType::ConnectError
    )
}

/// Whether a connection to a backend broke, or was silent for too long.
pub(super) fn broke(error: &Error) -> bool {
    *error.esource() != ErrorSource::Downstream
        && matches!(
            error.etype(),
            ErrorType::ConnectionClosed
                | ErrorType::ReadError
                | ErrorType::WriteError
                | ErrorType::ReadTimedout
                | ErrorType::WriteTimedout
        )
}

/// Whether a kept connection to a backend had ended, rather than been silent.
pub(super) fn had_ended(error: &Error) -> bool {
    let is_silence = matches!(
        error.etype(),
        ErrorType::ReadTimedout | ErrorType::WriteTimedout
    );
    broke(error) && !is_silence && !is_stalled(error)
}

/// Whether the connection took nothing for too long.
fn is_stalled(error: &Error) -> bool {
    let cause = error.root_cause().downcast_ref::<std::io::Error>();
    cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::TimedOut)
}
