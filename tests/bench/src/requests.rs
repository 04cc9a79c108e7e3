//! Requests, created before the load starts: as bytes of HTTP/1.1, or as heads and bodies for HTTP/2.

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use end_to_end::{
    clock::now_ms,
    signer::{self, Profile},
};
use rustls::ClientConfig;

use crate::{
    case::{Case, Transport},
    keys::{APPLICATIONS, Keys},
    load::Response,
    tls::Sessions,
};

/// Number of different requests that a load repeats, unless each may be sent only once.
const DIFFERENT: usize = 1000;

/// The path of signed forms.
const PATH: &str = "/orders";

/// The requests of one case, and their expected answers.
#[derive(Debug)]
pub struct Requests {
    prepared: Prepared,
    transport: Transport,
    /// Concurrent requests on each connection.
    streams: usize,
    /// Configuration of the load's side of TLS, if the case is over TLS.
    tls: Option<ClientConfig>,
    status: u16,
    length: Option<u64>,
    /// Whether each may be sent only once.
    is_once: bool,
}

#[derive(Debug)]
enum Prepared {
    Http1(Vec<Vec<u8>>),
    Http2(Vec<Http2Request>),
}

/// A request for HTTP/2.
#[derive(Clone, Debug)]
pub struct Http2Request {
    /// Method, target and headers.
    pub head: http::Request<()>,
    /// The body, which may be empty.
    pub body: Bytes,
}

impl Requests {
    /// Creates the requests of a case, signed now. If each may be sent only once, there are `count` of them.
    ///
    /// # Errors
    ///
    /// When the load's side of TLS cannot be configured.
    pub fn new(case: Case, count: u64, keys: &Keys) -> anyhow::Result<Self> {
        let is_once = case == Case::W6;
        let different = match case {
            Case::W2 | Case::W7 | Case::W11 | Case::W13 => DIFFERENT,
            Case::W3 => APPLICATIONS,
            Case::W6 => usize::try_from(count).unwrap_or(usize::MAX),
            Case::W1 | Case::W4 | Case::W5 | Case::W8 | Case::W9 | Case::W10 | Case::W12 => 2,
        };
        let transport = case.transport();
        let bytes = (0..different).map(|index| request(case, index, keys));
        let prepared = match transport {
            Transport::Http2 => {
                let translated = bytes.map(|request| Http2Request::from_http1(&request));
                Prepared::Http2(translated.collect::<Result<_, _>>()?)
            }
            _ => Prepared::Http1(bytes.collect()),
        };
        let tls = match transport {
            Transport::Http => None,
            Transport::Https => Some(keys.tls.client("http/1.1", Sessions::New)?),
            Transport::HttpsResumed => Some(keys.tls.client("http/1.1", Sessions::Resumed)?),
            Transport::Http2 => Some(keys.tls.client("h2", Sessions::New)?),
        };
        Ok(Self {
            prepared,
            transport,
            streams: case.streams(),
            tls,
            status: case.status(),
            length: (case == Case::W4).then_some(crate::contestant::BLOB),
            is_once,
        })
    }

    /// The protocols that they are sent with.
    pub const fn transport(&self) -> Transport {
        self.transport
    }

    /// Number of concurrent requests on each connection.
    pub const fn streams(&self) -> usize {
        self.streams
    }

    /// Configuration of the load's side of TLS, if they are sent over TLS.
    pub const fn tls(&self) -> Option<&ClientConfig> {
        self.tls.as_ref()
    }

    /// The request number `index`, from 0, as bytes of HTTP/1.1.
    ///
    /// # Errors
    ///
    /// When no unsent request is left, or they are for HTTP/2.
    pub fn at(&self, index: usize) -> anyhow::Result<&[u8]> {
        match &self.prepared {
            Prepared::Http1(all) => Ok(self.pick(all, index)?),
            Prepared::Http2(_) => bail!("the requests are for HTTP/2"),
        }
    }

    /// The request number `index`, from 0, for HTTP/2.
    ///
    /// # Errors
    ///
    /// When no unsent request is left, or they are for HTTP/1.1.
    pub fn http2_at(&self, index: usize) -> anyhow::Result<&Http2Request> {
        match &self.prepared {
            Prepared::Http1(_) => bail!("the requests are for HTTP/1.1"),
            Prepared::Http2(all) => self.pick(all, index),
        }
    }

    fn pick<'a, T>(&self, all: &'a [T], index: usize) -> anyhow::Result<&'a T> {
        let index = if self.is_once {
            index
        } else {
            index % all.len()
        };
        all.get(index).context("no unsent request is left")
    }

    /// How many can still be sent, from number `index` on.
    pub fn remaining_from(&self, index: usize) -> u64 {
        let count = match &self.prepared {
            Prepared::Http1(all) => all.len(),
            Prepared::Http2(all) => all.len(),
        };
        if self.is_once {
            count.saturating_sub(index) as u64
        } else {
            u64::MAX
        }
    }

    /// Checks a response.
    ///
    /// # Errors
    ///
    /// When it is not as expected.
    pub fn check(&self, response: &Response) -> anyhow::Result<()> {
        ensure!(
            response.status == self.status,
            "status {} instead of {}",
            response.status,
            self.status
        );
        let expected = self.length.unwrap_or(response.length);
        ensure!(
            response.length == expected,
            "{} bytes instead of {expected}",
            response.length
        );
        Ok(())
    }
}

/// Creates one request. Every second one is for version 2.
fn request(case: Case, index: usize, keys: &Keys) -> Vec<u8> {
    let version = if index.is_multiple_of(2) { "v1" } else { "v2" };
    let of_version = format!("Acme-X-Version: {version}\r\n");
    match case {
        Case::W1 | Case::W8 | Case::W10 => get("/user", &of_version),
        Case::W4 => get("/blob", &of_version),
        Case::W5 | Case::W9 | Case::W12 => {
            get("/user", &format!("{of_version}Connection: close\r\n"))
        }
        Case::W2 | Case::W6 | Case::W11 => post(
            &of_version,
            &Form::new(index, now_ms()).signed(keys.single.expose()),
        ),
        Case::W7 => post(
            &of_version,
            &Form::new(index, now_ms()).signed("a key that is not known"),
        ),
        Case::W13 => json(&of_version, index, keys.single.expose()),
        Case::W3 => {
            // Spread over the store: 7919 is coprime to the number of applications.
            let (ident, key) = &keys.many[index * 7919 % keys.many.len()];
            let headers = format!("{of_version}Acme-X-App: {ident}\r\n");
            post(&headers, &Form::new(index, now_ms()).signed(key.expose()))
        }
    }
}

impl Http2Request {
    /// Translates a request of this module, so that both protocols carry the same.
    ///
    /// # Errors
    ///
    /// When it is not a valid request.
    pub fn from_http1(request: &[u8]) -> anyhow::Result<Self> {
        let text = std::str::from_utf8(request)?;
        let (head, body) = text.split_once("\r\n\r\n").context("no head")?;
        let mut lines = head.split("\r\n");
        let mut start = lines.next().unwrap_or_default().split(' ');
        let method = start.next().context("no method")?;
        let target = start.next().context("no target")?;
        let mut builder = http::Request::builder().method(method);
        for line in lines {
            let (name, value) = line.split_once(": ").context("no header")?;
            // The authority takes the place of `Host`: RFC 9113, 8.3.1.
            builder = if name == "Host" {
                builder.uri(format!("https://{value}{target}"))
            } else {
                builder.header(name, value)
            };
        }
        Ok(Self {
            head: builder.version(http::Version::HTTP_2).body(())?,
            body: Bytes::copy_from_slice(body.as_bytes()),
        })
    }
}

/// Header lines of every request.
const USUAL: &str =
    "Host: api.example.com\r\nUser-Agent: bench/1.0\r\nAccept: application/json\r\n";

/// A GET with additional headers.
pub fn get(target: &str, headers: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\n{USUAL}{headers}\r\n").into_bytes()
}

/// A POST of a form, with additional headers.
pub fn post(headers: &str, form: &str) -> Vec<u8> {
    let length = form.len();
    format!(
        "POST {PATH} HTTP/1.1\r\n{USUAL}{headers}Content-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {length}\r\n\r\n{form}"
    )
    .into_bytes()
}

/// A POST of JSON of 1 KiB, signed in headers.
pub fn json(headers: &str, index: usize, key: &str) -> Vec<u8> {
    let start = format!("{{\"order\":{index},\"note\":\"");
    let body = format!("{start}{}\"}}", "x".repeat(1024 - start.len() - 2));
    let time = now_ms();
    let hash = signer::sha256_hex(body.as_bytes());
    let text = format!("POST\n{PATH}\n{time}\n{index}\n{hash}");
    let sign = signer::hmac_hex(key, text.as_bytes());
    format!(
        "POST {PATH} HTTP/1.1\r\n{USUAL}{headers}Acme-X-Time: {time}\r\nAcme-X-Sign: {sign}\r\nAcme-X-Nonce: {index}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A form of six parameters with usual names and lengths, including `time` and `sign`.
#[derive(Debug)]
pub struct Form(String);

impl Form {
    /// The five signed parameters. Forms with the same time differ by `index`.
    pub fn new(index: usize, time: i64) -> Self {
        // Spread over all digits, so that the nonces do not begin alike.
        let nonce = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(format!(
            "order=2026-{index:06}&amount=1999&currency=EUR&nonce={nonce:016x}&time={time}"
        ))
    }

    /// The form with its signature.
    pub fn signed(&self, key: &str) -> String {
        let request = signer::Request {
            method: "POST",
            path: PATH,
            query: "",
            body: &self.0,
        };
        let sign = signer::sign(&Profile::default(), key, request);
        format!("{}&sign={sign}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_the_same_over_http2() {
        let bytes = post("Acme-X-Version: v2\r\n", "order=1&sign=abc");
        let request = Http2Request::from_http1(&bytes).unwrap();
        assert_eq!(request.head.method(), "POST");
        assert_eq!(request.head.uri(), "https://api.example.com/orders");
        assert_eq!(request.body, "order=1&sign=abc");
        let headers: Vec<_> = request
            .head
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(
            headers,
            [
                ("user-agent", "bench/1.0"),
                ("accept", "application/json"),
                ("acme-x-version", "v2"),
                ("content-type", "application/x-www-form-urlencoded"),
                ("content-length", "16"),
            ]
        );
        assert!(Http2Request::from_http1(b"GET /\r\n").is_err());
    }
}
