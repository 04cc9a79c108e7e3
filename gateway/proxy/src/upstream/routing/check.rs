//! Active health checks: a request with one timeout, through TLS if the address has it.

use http::uri::PathAndQuery;
use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::address::{Address, AddressState};
use crate::{
    config::{BackendName, HealthChecks},
    request::rejection::Rejection,
    tls::backend::Endpoint,
    upstream::backend::{
        backend_head::{BackendHead, ResponseScanner},
        exchange::MAX_INTERIM,
        failure::BackendFailure,
        relay::Body,
    },
    wire::io::Stream,
};

/// Limit of the response to a check, in bytes.
const MAX_RESPONSE: usize = 1024 * 1024;

/// Checks an address of backend `name` once. Only a change is logged. Returns whether the check passed.
pub(super) async fn check(name: &BackendName, checks: &HealthChecks, address: &Address) -> bool {
    let checked = probe(checks, &address.endpoint).await;
    let socket = address.socket();
    let health = &address.state.health;
    let has_passed = checked.is_ok();
    match checked {
        Ok(()) => {
            // A check reaches the address as a request does, so it also ends an ejection.
            address.state.restore(name, socket);
            if health.pass() {
                tracing::info!(
                    backend = %name, version = name.version(), backend.addr = %socket,
                    "the backend passes its checks again"
                );
            }
        }
        Err(why) => {
            if health.fail(checks.unhealthy_after) {
                tracing::warn!(
                    backend = %name, version = name.version(), backend.addr = %socket, why,
                    "the backend fails its checks and is unhealthy"
                );
            }
        }
    }
    has_passed
}

/// Tries to connect to an address that requests found unreachable and that nothing checks. A success restores it.
pub(crate) async fn reconnect(
    name: &BackendName,
    endpoint: &Endpoint,
    state: &AddressState,
    limit: Duration,
) {
    let connecting = async {
        // A failure changes nothing: the address is known to be unreachable, and the log has it.
        let stream = TcpStream::connect(endpoint.address).await.ok()?;
        match &endpoint.tls {
            Some(tls) => tls.handshake(stream).await.ok().map(drop),
            None => Some(()),
        }
    };
    if let Ok(Some(())) = timeout(limit, connecting).await {
        state.restore(name, endpoint.address);
    }
}

/// Checks an endpoint once. An error says why the check failed.
pub async fn probe(checks: &HealthChecks, endpoint: &Endpoint) -> Result<(), String> {
    let checked = timeout(checks.timeout, send(&checks.path, endpoint)).await;
    checked.unwrap_or_else(|_| Err("timed out".to_owned()))
}

/// Sends one check, and reads the response to its end: one that hangs half-way is no sign of health. An error says why the
/// check failed.
async fn send(path: &PathAndQuery, endpoint: &Endpoint) -> Result<(), String> {
    let stream = TcpStream::connect(endpoint.address).await;
    let stream = stream.map_err(|error| error.to_string())?;
    match &endpoint.tls {
        Some(tls) => request(path, tls.handshake(stream).await?).await,
        None => request(path, stream).await,
    }
}

async fn request(path: &PathAndQuery, mut stream: impl Stream) -> Result<(), String> {
    // A connection of its own: an idle one would not show whether the address still accepts connections.
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: signpost\r\nConnection: close\r\n\r\n"
    );
    let exchanged = async {
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        read_response(&mut stream).await
    };
    match exchanged.await {
        Ok(200) => Ok(()),
        Ok(status) => Err(format!("answered {status}")),
        Err(BackendFailure::Ended { why }) => Err(why),
        Err(BackendFailure::Malformed(why)) => Err(format!("malformed response: {why}")),
        Err(other) => Err(Rejection::from(other).to_string()),
    }
}

/// Reads a response, and returns its status.
async fn read_response(stream: &mut impl Stream) -> Result<u16, BackendFailure> {
    let (mut received, mut total) = (Vec::new(), 0);
    let head = read_head(stream, &mut received).await?;
    let (mut body, mut decoded) = (Body::new(head.body), Vec::new());
    while !body.take(&received, &mut decoded)?.is_last {
        total += received.len();
        if total > MAX_RESPONSE {
            return Err(BackendFailure::Malformed("its body is too large"));
        }
        received.clear();
        if stream.read_buf(&mut received).await? == 0 {
            return match body {
                Body::UntilClose => Ok(head.status),
                _ => Err(BackendFailure::ended("closed within the response's body")),
            };
        }
    }
    Ok(head.status)
}

/// Reads the head of a response. Skips interim responses. `received` has what arrived after the head.
async fn read_head(
    stream: &mut impl Stream,
    received: &mut Vec<u8>,
) -> Result<BackendHead, BackendFailure> {
    for _ in 0..=MAX_INTERIM {
        let mut scanner = ResponseScanner::default();
        let length = loop {
            // First: the read of an interim response may have brought what follows it, too.
            if let Some(length) = scanner.scan(received)? {
                break length;
            }
            if stream.read_buf(received).await? == 0 {
                return Err(BackendFailure::ended("closed without a response"));
            }
        };
        let head = BackendHead::read(&received[..length])?;
        received.drain(..length);
        if !head.is_interim()? {
            return Ok(head);
        }
    }
    Err(BackendFailure::Malformed("too many interim responses"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::scripted::{Script, Step};

    async fn status(response: &str) -> Result<u16, BackendFailure> {
        let steps = [Step::Give(response.into()), Step::End];
        read_response(&mut Script::new(steps)).await
    }

    #[tokio::test]
    async fn a_response_is_read_to_its_end() {
        for (response, expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200),
            ("HTTP/1.0 200\r\n\r\nok", 200),
            ("HTTP/1.1 204 No Content\r\n\r\n", 204),
            (
                "HTTP/1.1 503 x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
                503,
            ),
            (
                "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 x\r\n\r\nHTTP/1.1 200 OK\r\n\r\nok",
                200,
            ),
        ] {
            assert_eq!(status(response).await, Ok(expected), "{response}");
        }
        for response in [
            "",
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/2.0 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok",
            "HTTP/1.1 103 Early Hints\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        ] {
            assert!(status(response).await.is_err(), "{response}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(MAX_RESPONSE + 1));
        assert!(status(&endless).await.is_err());
        let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(MAX_INTERIM + 1);
        assert!(
            status(&format!("{interim}HTTP/1.1 204 x\r\n\r\n"))
                .await
                .is_err()
        );
    }
}
