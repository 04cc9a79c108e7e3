//! Reads a form body whole, and takes parameters out of target and body. CONTRACT 2.
//!
//! Nothing unverified is forwarded, so the body is here in full before anything is decided on it. pingora
//! keeps it meanwhile, and sends it to the backend as it came.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use gateway_protocol::param::{Params, ParamsError};
use pingora::{Error, proxy::Session};

use super::admit::Admitted;
use crate::{
    config::Limits,
    downstream::{chunked::MalformedChunks, head::Framing},
    rejection::Rejection,
    request::Target,
};

/// Reads the body of a request that was admitted, within `patience` for all of it.
///
/// # Errors
///
/// Too slow, too large, malformed chunks, or a client that went away.
pub async fn read_body(
    session: &mut Session,
    admitted: &Admitted,
    limits: &Limits,
    patience: Duration,
) -> Result<Bytes, Rejection> {
    if admitted.framing == Framing::None {
        return Ok(Bytes::new());
    }
    // pingora sends upstream again what it kept from here on, up to 64 KiB: no more is ever read.
    session.as_mut().enable_retry_buffering();
    if admitted.expects_continue {
        session
            .write_continue_response()
            .await
            .map_err(|error| rejection_of(&error))?;
    }
    tokio::time::timeout(patience, collect(session, limits.body))
        .await
        .unwrap_or(Err(Rejection::RequestTimeout { limit: patience }))
}

async fn collect(session: &mut Session, limit: usize) -> Result<Bytes, Rejection> {
    // Most forms come in one piece, which is then not copied.
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(piece) = session
        .read_request_body()
        .await
        .map_err(|error| rejection_of(&error))?
    {
        if first.len().max(all.len()) + piece.len() > limit {
            return Err(Rejection::BodyTooLarge { limit });
        }
        if first.is_empty() {
            first = piece;
        } else {
            if all.is_empty() {
                all.extend_from_slice(&first);
            }
            all.extend_from_slice(&piece);
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

fn rejection_of(error: &Error) -> Rejection {
    let cause = error.root_cause().downcast_ref::<std::io::Error>();
    let inner = cause.and_then(std::io::Error::get_ref);
    if inner.is_some_and(|inner| inner.is::<MalformedChunks>()) {
        Rejection::NotHttp("malformed chunks")
    } else {
        Rejection::ClientGone
    }
}

/// The parameters of target and body.
///
/// # Errors
///
/// Malformed, or too many.
pub fn read_params<'a>(
    target: Target<'a>,
    body: &'a [u8],
    limits: &Limits,
) -> Result<Params<'a>, Rejection> {
    Params::parse(target.query.as_bytes(), body, limits.params).map_err(|error| match error {
        ParamsError::Malformed => Rejection::ParamsMalformed,
        ParamsError::TooMany => Rejection::ParamsTooMany {
            limit: limits.params,
        },
    })
}
