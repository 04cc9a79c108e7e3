//! An application's requests, as bytes.

use std::fmt;

use end_to_end::{
    clock::now_ms,
    signer::{self, Profile},
};

/// Header lines of every request.
const USUAL: &str =
    "Host: api.example.com\r\nUser-Agent: capacity/1.0\r\nAccept: application/json\r\n";

/// An application with its key, which `Debug` omits.
#[derive(Clone)]
pub struct Caller {
    /// Its ident, in multi-application mode.
    pub app: Option<String>,
    /// Its key.
    pub key: String,
}

impl Caller {
    /// A signed POST of a form. `pairs` are encoded already; each line of `headers` ends in CRLF.
    pub fn post(&self, path: &str, pairs: &str, headers: &str) -> Vec<u8> {
        let between = if pairs.is_empty() { "" } else { "&" };
        let mut form = format!("{pairs}{between}time={}", now_ms());
        let request = signer::Request {
            method: "POST",
            path,
            query: "",
            body: &form,
        };
        let sign = signer::sign(&Profile::default(), &self.key, request);
        form += "&sign=";
        form += &sign;
        let app = self.app.as_ref();
        let app = app.map(|ident| format!("Acme-X-App: {ident}\r\n"));
        let app = app.unwrap_or_default();
        unsigned_post(path, &form, &format!("{app}{headers}"))
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Caller({:?})", self.app)
    }
}

/// An unsigned POST of a form.
pub fn unsigned_post(path: &str, form: &str, headers: &str) -> Vec<u8> {
    let length = form.len();
    format!(
        "POST {path} HTTP/1.1\r\n{USUAL}{headers}Content-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {length}\r\n\r\n{form}"
    )
    .into_bytes()
}

/// A browser's GET.
pub fn get(target: &str, cookie: &str) -> Vec<u8> {
    let cookie = match cookie {
        "" => String::new(),
        cookie => format!("Cookie: {cookie}\r\n"),
    };
    format!(
        "GET {target} HTTP/1.1\r\nHost: api.example.com\r\nUser-Agent: capacity/1.0\r\nAccept: text/html\r\n\
         Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n{cookie}\r\n"
    )
    .into_bytes()
}
