//! `signpost health`: asks the running gateway whether it can serve. What a container's health check runs, since
//! nothing else that could ask needs to be there.

use std::{
    io::{Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context;

use super::say;

/// Longer than `/readyz` waits for the store: its answer says more than silence.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than any answer of `/readyz`.
const MOST_BYTES: u64 = 64 * 1024;

/// Prints what `/readyz` of the management listener answers; success is 200.
pub(super) fn run(management: SocketAddr) -> anyhow::Result<ExitCode> {
    let address = from_here(management);
    let answer = ask(address).with_context(|| format!("http://{address}/readyz"))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    say(body.trim_end());
    Ok(if is_ok(head) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Who listens on every address is asked on loopback.
fn from_here(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        one => one,
    };
    SocketAddr::new(ip, listen.port())
}

fn ask(address: SocketAddr) -> anyhow::Result<String> {
    let mut connection =
        TcpStream::connect_timeout(&address, PATIENCE).context("nobody listens")?;
    connection.set_read_timeout(Some(PATIENCE))?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes())?;
    let mut answer = String::new();
    connection
        .take(MOST_BYTES)
        .read_to_string(&mut answer)
        .context("no answer")?;
    Ok(answer)
}

fn is_ok(head: &str) -> bool {
    head.split(' ').nth(1) == Some("200")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_everywhere_is_asked_on_loopback() {
        for (listen, asked) in [
            ("0.0.0.0:8081", "127.0.0.1:8081"),
            ("[::]:8081", "[::1]:8081"),
            ("127.0.0.2:8081", "127.0.0.2:8081"),
        ] {
            assert_eq!(from_here(listen.parse().unwrap()).to_string(), asked);
        }
    }

    #[test]
    fn only_200_is_healthy() {
        assert!(is_ok("HTTP/1.1 200 OK\r\nContent-Length: 6"));
        for head in ["HTTP/1.1 503 Service Unavailable", "HTTP/1.1", "", "200"] {
            assert!(!is_ok(head), "{head}");
        }
    }
}
