//! Requests as bytes, created before the load starts.

use anyhow::{Context, ensure};
use end_to_end::{
    clock::now_ms,
    signer::{self, Profile},
};

use crate::{
    case::Case,
    keys::{APPLICATIONS, Keys},
    load::Answer,
};

/// Number of different requests that a load repeats, unless each may be sent only once.
const DIFFERENT: usize = 1000;

/// The path of signed forms.
const PATH: &str = "/orders";

/// The requests of one case, and their expected answers.
#[derive(Debug)]
pub struct Requests {
    bytes: Vec<Vec<u8>>,
    status: u16,
    length: Option<u64>,
    /// Whether each may be sent only once.
    is_once: bool,
}

impl Requests {
    /// Creates the requests of a case, signed now. If each may be sent only once, there are `count` of them.
    pub fn new(case: Case, count: u64, keys: &Keys) -> Self {
        let is_once = case == Case::W6;
        let different = match case {
            Case::W1 | Case::W4 | Case::W5 => 2,
            Case::W2 | Case::W7 => DIFFERENT,
            Case::W3 => APPLICATIONS,
            Case::W6 => usize::try_from(count).unwrap_or(usize::MAX),
        };
        Self {
            bytes: (0..different)
                .map(|index| request(case, index, keys))
                .collect(),
            status: case.status(),
            length: (case == Case::W4).then_some(crate::contestant::BLOB),
            is_once,
        }
    }

    /// The request number `index`, from 0.
    ///
    /// # Errors
    ///
    /// When no unsent request is left.
    pub fn at(&self, index: usize) -> anyhow::Result<&[u8]> {
        let index = if self.is_once {
            index
        } else {
            index % self.bytes.len()
        };
        let request = self.bytes.get(index);
        request
            .map(Vec::as_slice)
            .context("no unsent request is left")
    }

    /// How many can still be sent, from number `index` on.
    pub fn remaining_from(&self, index: usize) -> u64 {
        if self.is_once {
            self.bytes.len().saturating_sub(index) as u64
        } else {
            u64::MAX
        }
    }

    /// Checks an answer.
    ///
    /// # Errors
    ///
    /// When it is not as expected.
    pub fn check(&self, answer: &Answer) -> anyhow::Result<()> {
        ensure!(
            answer.status == self.status,
            "status {} instead of {}",
            answer.status,
            self.status
        );
        let expected = self.length.unwrap_or(answer.length);
        ensure!(
            answer.length == expected,
            "{} bytes instead of {expected}",
            answer.length
        );
        Ok(())
    }
}

/// Creates one request. Every second one is for version 2.
fn request(case: Case, index: usize, keys: &Keys) -> Vec<u8> {
    let version = if index.is_multiple_of(2) { "v1" } else { "v2" };
    let of_version = format!("Acme-X-Version: {version}\r\n");
    match case {
        Case::W1 => get("/user", &of_version),
        Case::W4 => get("/blob", &of_version),
        Case::W5 => get("/user", &format!("{of_version}Connection: close\r\n")),
        Case::W2 | Case::W6 => post(
            &of_version,
            &Form::new(index, now_ms()).signed(keys.single.expose()),
        ),
        Case::W7 => post(
            &of_version,
            &Form::new(index, now_ms()).signed("a key that is not known"),
        ),
        Case::W3 => {
            // Spread over the store: 7919 is coprime to the number of applications.
            let (ident, key) = &keys.many[index * 7919 % keys.many.len()];
            let headers = format!("{of_version}Acme-X-App: {ident}\r\n");
            post(&headers, &Form::new(index, now_ms()).signed(key.expose()))
        }
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
