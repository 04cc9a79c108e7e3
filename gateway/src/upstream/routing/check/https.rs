//! The health check of an address with TLS. pingora's own check cannot use the settings of a version.

use std::net::SocketAddr;

use http::uri::PathAndQuery;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::HOST;
use crate::tls::backend::TlsPeer;

/// Length of `HTTP/1.1 200`, all that matters of a response.
const STATUS_END: usize = b"HTTP/1.1 200".len();

/// Requests `path` at `address`. The caller limits the time of the whole check.
///
/// # Errors
///
/// No connection, a failed handshake, or another status than 200. The text says why.
pub(super) async fn check(
    address: SocketAddr,
    tls: &TlsPeer,
    path: &PathAndQuery,
) -> Result<(), String> {
    let stream = TcpStream::connect(address).await.map_err(text)?;
    let mut stream = tls.handshake(stream).await?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: signpost\r\nConnection: close\r\n\r\n"
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
