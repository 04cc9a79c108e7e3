//! Decides whether a failed request is retried, and where. CONTRACT 5.
//!
//! | failure | GET, HEAD, PUT, DELETE | POST, PATCH |
//! | --- | --- | --- |
//! | no connection could be established | another address | another address |
//! | closed, reset or timed out before any byte of a response | another address | no retry |
//! | an idle connection was closed, and there is no other address | once, same address, new connection | no retry |
//! | after the first byte of a response; malformed; the client disconnected | no retry | no retry |

use super::failure::BackendFailure;

/// A failed attempt; with the failure, it decides on the retry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    /// Whether the request may safely be sent twice.
    pub is_idempotent: bool,
    /// Whether its connection came from the pool.
    pub is_reused: bool,
    /// Whether any byte of a response has arrived.
    pub has_response: bool,
    /// Whether another address is available.
    pub has_another: bool,
    /// Whether it was already retried on the same address.
    pub was_repeated: bool,
}

/// Where a failed request is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// It is not retried.
    No,
    /// On another address.
    OtherAddress,
    /// On the same address, by a new connection: if one idle connection was closed, the others may be, too.
    SameAddress,
}

/// Decides where a request is retried after a failed attempt.
#[must_use]
pub(crate) fn retry(failure: &BackendFailure, attempt: Attempt) -> Retry {
    let Attempt {
        is_idempotent,
        is_reused,
        has_response,
        has_another,
        was_repeated,
    } = attempt;
    let may_be_repeated = is_idempotent && !has_response;
    match failure {
        // No byte was sent, so this holds for a POST, too.
        BackendFailure::NotConnected { .. } if has_another => Retry::OtherAddress,
        // Also after an idle connection was closed: the address may be about to go down, so another one comes first.
        BackendFailure::Ended { .. } | BackendFailure::TimedOut
            if may_be_repeated && has_another =>
        {
            Retry::OtherAddress
        }
        // A backend may close an idle connection just as a request is sent (RFC 9112 section 9.3.1). A timeout is no
        // sign of that, and a new connection that is closed, too, shows that the backend is at fault.
        BackendFailure::Ended { .. } if may_be_repeated && is_reused && !was_repeated => {
            Retry::SameAddress
        }
        _ => Retry::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A GET on an idle connection; nothing arrived, and there is no other address.
    const GET: Attempt = Attempt {
        is_idempotent: true,
        is_reused: true,
        has_response: false,
        has_another: false,
        was_repeated: false,
    };
    const POST: Attempt = Attempt {
        is_idempotent: false,
        ..GET
    };

    fn another(attempt: Attempt) -> Attempt {
        Attempt {
            has_another: true,
            ..attempt
        }
    }

    fn not_connected() -> BackendFailure {
        BackendFailure::NotConnected {
            is_backend_fault: true,
            is_tls: false,
            why: "refused".to_owned(),
        }
    }

    #[test]
    fn without_a_connection_any_request_is_retried_on_another_address() {
        let failure = not_connected();
        for attempt in [GET, POST] {
            assert_eq!(retry(&failure, another(attempt)), Retry::OtherAddress);
            assert_eq!(retry(&failure, attempt), Retry::No);
        }
    }

    #[test]
    fn a_get_is_retried_on_another_address_until_its_response_begins() {
        let answered = Attempt {
            has_response: true,
            ..another(GET)
        };
        for failure in [BackendFailure::ended("reset"), BackendFailure::TimedOut] {
            assert_eq!(retry(&failure, another(GET)), Retry::OtherAddress);
            for attempt in [answered, another(POST)] {
                assert_eq!(retry(&failure, attempt), Retry::No, "{attempt:?}");
            }
        }
    }

    #[test]
    fn a_get_on_a_closed_idle_connection_is_retried_once() {
        let closed = BackendFailure::ended("closed");
        assert_eq!(retry(&closed, GET), Retry::SameAddress);
        let on_new = Attempt {
            is_reused: false,
            ..GET
        };
        let repeated = Attempt {
            was_repeated: true,
            ..GET
        };
        let answered = Attempt {
            has_response: true,
            ..GET
        };
        for attempt in [on_new, repeated, answered, POST] {
            assert_eq!(retry(&closed, attempt), Retry::No, "{attempt:?}");
        }
        // A timeout does not mean that the connection was closed.
        assert_eq!(retry(&BackendFailure::TimedOut, GET), Retry::No);
    }

    #[test]
    fn nothing_else_is_retried() {
        for failure in [
            BackendFailure::Malformed("x"),
            BackendFailure::ClientDisconnected,
        ] {
            for attempt in [another(GET), another(POST)] {
                assert_eq!(retry(&failure, attempt), Retry::No, "{failure:?}");
            }
        }
    }
}
