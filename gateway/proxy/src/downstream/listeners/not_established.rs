//! Why a connection ended before its first request.

use std::io;

use super::proxy_protocol::ProxyHeaderError;
use crate::{limits::connections::RefusalCause, tls::UnusableSubject};

/// Why a connection ended before its first request.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotEstablished {
    #[error(transparent)]
    ProxyHeader(#[from] ProxyHeaderError),
    #[error("the TLS handshake failed: {0}")]
    Tls(#[from] io::Error),
    #[error(transparent)]
    Subject(#[from] UnusableSubject),
    #[error("the client offers no common HTTP version by ALPN")]
    NoProtocol,
    #[error("the handshake took too long")]
    TimedOut,
}

impl NotEstablished {
    /// The same for the metrics.
    pub(super) const fn as_refusal(&self) -> RefusalCause {
        match self {
            Self::ProxyHeader(_) => RefusalCause::ProxyHeader,
            Self::Tls(_) => RefusalCause::Tls,
            Self::Subject(_) => RefusalCause::CertificateSubject,
            Self::NoProtocol => RefusalCause::NoProtocol,
            Self::TimedOut => RefusalCause::Timeout,
        }
    }
}

/// Whether the peer left at once, as a balancer's check of a port does.
pub(super) fn is_probe(cause: &NotEstablished) -> bool {
    match cause {
        NotEstablished::Tls(cause)
        | NotEstablished::ProxyHeader(ProxyHeaderError::Ended(cause)) => {
            matches!(
                cause.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
            )
        }
        _ => false,
    }
}
