//! Asks a running program whether it can serve: what `signpost health` and `login-v1 --health` do, for containers in
//! which nothing else that could ask needs to be there.

use std::{
    io::{Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

use anyhow::Context;

use crate::reload::control::{self, Verb};

/// Longer than `/readyz` waits for the store: its answer says more than silence.
const PATIENCE: Duration = Duration::from_secs(10);
/// The program says at once where it answers, unless it is reloading.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(2);
/// More than any answer of `/readyz`.
const MOST_BYTES: u64 = 64 * 1024;

/// What `/readyz` of a program answers.
#[derive(Debug)]
pub struct Health {
    /// Whether it can serve.
    pub is_ready: bool,
    /// The answer's body.
    pub words: String,
}

/// Asks the program that runs with `file`. It knows where it answers, even if the file says something else by now. If it does
/// not say, `from_file` does.
///
/// # Errors
///
/// As [`ask`], or `from_file` fails.
pub fn ask_program(
    file: &Path,
    from_file: impl FnOnce() -> anyhow::Result<SocketAddr>,
) -> anyhow::Result<Health> {
    let known = control::ask_within(file, Verb::HealthAddress, ADDRESS_TIMEOUT);
    let known = known.ok().and_then(|answer| answer.text.parse().ok());
    ask(match known {
        Some(address) => address,
        None => from_file()?,
    })
}

/// Asks the program that listens at an address.
///
/// # Errors
///
/// Nobody listens there, or there is no answer.
pub fn ask(listen: SocketAddr) -> anyhow::Result<Health> {
    let address = from_here(listen);
    let answer = answer(address).with_context(|| format!("http://{address}/readyz"))?;
    Ok(Health::from_answer(&answer))
}

impl Health {
    fn from_answer(answer: &str) -> Self {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
        Self {
            is_ready: head.split(' ').nth(1) == Some("200"),
            words: body.trim_end().to_owned(),
        }
    }
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

fn answer(address: SocketAddr) -> anyhow::Result<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_everywhere_is_asked_on_loopback() {
        for (listen, asked) in [
            ("0.0.0.0:7001", "127.0.0.1:7001"),
            ("[::]:7001", "[::1]:7001"),
            ("127.0.0.2:8081", "127.0.0.2:8081"),
        ] {
            assert_eq!(from_here(listen.parse().unwrap()).to_string(), asked);
        }
    }

    #[test]
    fn only_200_is_ready() {
        let ready = Health::from_answer("HTTP/1.1 200 OK\r\n\r\n{\"status\":\"ready\"}");
        assert!(ready.is_ready && ready.words == "{\"status\":\"ready\"}");
        assert!(Health::from_answer("HTTP/1.1 200 OK\r\nContent-Length: 6").is_ready);
        for answer in [
            "HTTP/1.1 503 Service Unavailable\r\n\r\n{}",
            "HTTP/1.1",
            "",
            "200",
        ] {
            assert!(!Health::from_answer(answer).is_ready, "{answer}");
        }
    }
}
