//! Active health checks: a request with one timeout, through TLS if the address has it.

use http::uri::PathAndQuery;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::address::Address;
use crate::config::{BackendName, HealthChecks};

/// Length of `HTTP/1.1 200`, all that matters of a response.
const STATUS_END: usize = b"HTTP/1.1 200".len();

/// Checks an address of backend `name` once. Only a change is logged. Returns whether the check passed.
pub(super) async fn check(name: &BackendName, checks: &HealthChecks, address: &Address) -> bool {
    let checked = timeout(checks.timeout, send(&checks.path, address)).await;
    let checked = checked.unwrap_or_else(|_| Err("timed out".to_owned()));
    let socket = address.socket();
    let health = &address.state.health;
    let has_passed = checked.is_ok();
    match checked {
        Ok(()) => {
            address.restore(name);
            if health.pass() {
                tracing::info!(
                    backend = %name, version = %name.version, backend.addr = %socket,
                    "the backend passes its checks again"
                );
            }
        }
        Err(why) => {
            if health.fail(checks.unhealthy_after) {
                tracing::warn!(
                    backend = %name, version = %name.version, backend.addr = %socket, why,
                    "the backend fails its checks and is unhealthy"
                );
            }
        }
    }
    has_passed
}

/// Sends one check. An error says why it failed.
async fn send(path: &PathAndQuery, address: &Address) -> Result<(), String> {
    let stream = TcpStream::connect(address.socket()).await.map_err(text)?;
    match &address.endpoint.tls {
        Some(tls) => request(path, tls.handshake(stream).await?).await,
        None => request(path, stream).await,
    }
}

async fn request(
    path: &PathAndQuery,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
) -> Result<(), String> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: signpost\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.map_err(text)?;
    stream.flush().await.map_err(text)?;
    let mut status = [0; STATUS_END + 1];
    stream.read_exact(&mut status).await.map_err(text)?;
    judge(status)
}

/// Whether a response that begins with these bytes has the status 200.
fn judge(beginning: [u8; STATUS_END + 1]) -> Result<(), String> {
    let (status, end) = (&beginning[9..STATUS_END], beginning[STATUS_END]);
    let is_http = matches!(&beginning[..9], b"HTTP/1.1 " | b"HTTP/1.0 ")
        && status.iter().all(u8::is_ascii_digit)
        && matches!(end, b' ' | b'\r');
    match status {
        _ if !is_http => Err("its response is not HTTP/1".to_owned()),
        b"200" => Ok(()),
        _ => Err(format!("answered {}", status.escape_ascii())),
    }
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_200_passes() {
        for (beginning, expected) in [
            (b"HTTP/1.1 200 ", Ok(())),
            (b"HTTP/1.0 200\r", Ok(())),
            (b"HTTP/1.1 204 ", Err("answered 204")),
            (b"HTTP/1.1 503\r", Err("answered 503")),
            (b"HTTP/1.1 2000", Err("its response is not HTTP/1")),
            (b"HTTP/2.0 200 ", Err("its response is not HTTP/1")),
            (b"SSH-2.0-OpenS", Err("its response is not HTTP/1")),
        ] {
            assert_eq!(judge(*beginning), expected.map_err(str::to_owned));
        }
    }
}
