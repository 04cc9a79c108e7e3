//! The cases: bytes that two readers might parse differently.

use std::fmt;

use end_to_end::raw_connection::request;

/// A connection's bytes, and the requests in them that may arrive: method, target and body.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) contains: Vec<(&'static str, String, Vec<u8>)>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}",
            self.name,
            self.bytes[..self.bytes.len().min(300)].escape_ascii()
        )
    }
}

const FORM: &str = "Content-Type: application/x-www-form-urlencoded";
const SMUGGLED: &[u8] = b"GET /smuggled HTTP/1.1\r\nHost: gateway.example\r\n\r\n";

/// A signed form, and the requests that contain it.
pub(crate) struct Material {
    pub(crate) form: Vec<u8>,
}

impl Material {
    /// The POST that the form belongs to, with other framing lines and another body.
    fn post(&self, framing: &[&str], body: &[u8]) -> Vec<u8> {
        let mut lines = vec![FORM];
        lines.extend(framing);
        request("POST", "/x", &lines, body)
    }

    /// A chunked body: the form in one valid chunk.
    fn chunked(&self) -> Vec<u8> {
        let mut body = format!("{:x}\r\n", self.form.len()).into_bytes();
        body.extend_from_slice(&self.form);
        body.extend_from_slice(b"\r\n0\r\n\r\n");
        body
    }

    fn length(&self) -> String {
        format!("Content-Length: {}", self.form.len())
    }

    /// The form, followed by other bytes.
    fn form_and(&self, behind: &[u8]) -> Vec<u8> {
        [&self.form, behind].concat()
    }

    fn outer(&self) -> (&'static str, String, Vec<u8>) {
        ("POST", "/x".to_owned(), self.form.clone())
    }
}

#[rustfmt::skip] // A table: one case a line.
pub(crate) fn cases(material: &Material) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut case = |name, bytes: Vec<u8>, contains| {
        cases.push(Case {
            name,
            bytes,
            contains,
        })
    };
    let none = Vec::new;
    let outer = || vec![material.outer()];
    let plain = |target: &str| vec![("GET", target.to_owned(), Vec::new())];
    let length = material.length();
    let chunked = material.chunked();
    let chunked_and_more = [&chunked[..], SMUGGLED].concat();

    // Content-Length beside Transfer-Encoding, in both orders.
    let zero_chunk_first = [b"0\r\n\r\n", SMUGGLED].concat();
    let cl = format!("Content-Length: {}", zero_chunk_first.len());
    case("CL.TE", material.post(&[&cl, "Transfer-Encoding: chunked"], &zero_chunk_first), none());
    case("TE.CL", material.post(&["Transfer-Encoding: chunked", "Content-Length: 4"], &chunked_and_more), none());
    case("TE.CL 0", material.post(&["Transfer-Encoding: chunked", "Content-Length: 0"], &chunked_and_more), none());
    case("CL.TE, TE in capitals", material.post(&[&cl, "TRANSFER-ENCODING: CHUNKED"], &zero_chunk_first), none());

    // Spellings of Transfer-Encoding that only some readers accept.
    for te in [
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: identity, chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: chunked;q=1",
        "Transfer-Encoding:\x0bchunked",
        "Transfer-Encoding: chunked\x0b",
        "Transfer-Encoding: \x0cchunked",
        "Transfer-Encoding: chu\tnked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding:",
        "Transfer-Encoding : chunked",
        " Transfer-Encoding: chunked",
        "X: y\n Transfer-Encoding: chunked",
        "X: y\r\n Transfer-Encoding: chunked",
        "X: y\nTransfer-Encoding: chunked",
        "X: y\rTransfer-Encoding: chunked",
        "Transfer\u{2010}Encoding: chunked",
        "Transfer-Encoding\0: chunked",
        "Transfer-Encoding: chunked\0",
    ] {
        case("TE variant, alone", material.post(&[te], &chunked_and_more), none());
        case("TE variant beside CL", material.post(&[te, &cl], &zero_chunk_first), none());
    }
    case("underscore beside CL", material.post(&["Transfer_Encoding: chunked", &length], &material.form_and(b"")), outer());
    case("two TE lines", material.post(&["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], &chunked_and_more), none());
    case("two TE lines, one identity", material.post(&["Transfer-Encoding: identity", "Transfer-Encoding: chunked"], &chunked_and_more), none());

    // Content-Length.
    case("two equal lengths", material.post(&[&length, &length], &material.form_and(SMUGGLED)), none());
    case("two lengths", material.post(&["Content-Length: 0", &length], &material.form_and(SMUGGLED)), none());
    for value in [
        "+5",
        "-5",
        "5, 5",
        "5,6",
        "0x5",
        "5 5",
        "5.0",
        "",
        "five",
        "٥",
        "18446744073709551621",
        "5\u{b}",
        "\u{a0}5",
    ] {
        let line = format!("Content-Length: {value}");
        case("length variant", material.post(&[&line], &material.form_and(SMUGGLED)), none());
    }
    let padded = format!("Content-Length: 000{}", material.form.len());
    case("length with zeros in front", material.post(&[&padded], &material.form), outer());
    case("length, space before the colon", material.post(&[&length.replace(':', " :")], &material.form_and(SMUGGLED)), none());
    case("length folded", material.post(&[&length.replace(": ", ":\r\n ")], &material.form_and(SMUGGLED)), none());
    let short = format!("Content-Length: {}", material.form.len() - 1);
    case("length one short", material.post(&[&short], &material.form_and(SMUGGLED)), none());

    // Chunks.
    let chunks = |body: &[u8]| material.post(&["Transfer-Encoding: chunked"], body);
    let size = format!("{:x}", material.form.len());
    let with_size = |size: &str, end: &str| {
        let mut body = format!("{size}\r\n").into_bytes();
        body.extend_from_slice(&material.form);
        body.extend_from_slice(format!("\r\n0{end}").as_bytes());
        body.extend_from_slice(SMUGGLED);
        body
    };
    for wrong in ["0x", "+", "-", " ", "\t", "_"] {
        case("chunk size with a prefix", chunks(&with_size(&format!("{wrong}{size}"), "\r\n\r\n")), none());
    }
    for wrong in [" ;", "\n", "g", ",", "\r", ";a\nb", ";\0"] {
        case("chunk size with a suffix", chunks(&with_size(&format!("{size}{wrong}"), "\r\n\r\n")), none());
    }
    case("chunk size too large for any integer", chunks(&with_size("ffffffffffffffff1", "\r\n\r\n")), none());
    case("chunk size that wraps", chunks(&with_size(&format!("100000000000000{size}"), "\r\n\r\n")), none());
    case("chunk size in lone line feeds", chunks(&[size.as_bytes(), b"\n", &material.form, b"\n0\n\n", SMUGGLED].concat()), none());
    case("chunk without its end", chunks(&[size.as_bytes(), b"\r\n", &material.form, b"0\r\n\r\n", SMUGGLED].concat()), none());
    case("chunk with another end", chunks(&[size.as_bytes(), b"\r\n", &material.form, b"XX0\r\n\r\n", SMUGGLED].concat()), none());
    // RFC 9112 section 7.1.1: an extension is to be ignored; it ends at the gateway.
    let extended = [
        size.as_bytes(),
        b";a=b\r\n",
        &material.form,
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    case("chunk extension", chunks(&extended), outer());
    let trailing = [
        size.as_bytes(),
        b"\r\n",
        &material.form,
        b"\r\n0\r\nX-Trailer: 1\r\n\r\n",
    ]
    .concat();
    case("trailer", chunks(&trailing), outer());
    let evil = [size.as_bytes(), b"\r\n", &material.form, b"\r\n0\r\nContent-Length: 100\r\nTransfer-Encoding: chunked\r\nX-Gateway-App-Id: 1\r\n\r\n"].concat();
    case("framing as trailers", chunks(&evil), outer());

    // Lines.
    case("bare line feeds", b"GET /x HTTP/1.1\nHost: gateway.example\n\nGET /smuggled HTTP/1.1\nHost: g\n\n".to_vec(), none());
    case("one bare line feed", b"GET /x HTTP/1.1\r\nHost: gateway.example\nX: y\r\n\r\n".to_vec(), none());
    case("bare carriage return", b"GET /x HTTP/1.1\r\nHost: gateway.example\r\nX: y\rZ: 1\r\n\r\n".to_vec(), none());
    case("empty line of line feeds", [b"GET /x HTTP/1.1\r\nHost: gateway.example\r\n\n", SMUGGLED].concat(), none());
    case("folded line", request("GET", "/x", &["X: y\r\n z"], b""), none());
    case("folded first line", b"GET /x HTTP/1.1\r\n Host: gateway.example\r\n\r\n".to_vec(), none());
    case("folded by a tab", request("GET", "/x", &["X: y\r\n\tz"], b""), none());
    case("space before the colon", request("GET", "/x", &["X : y"], b""), none());
    case("tab before the colon", request("GET", "/x", &["X\t: y"], b""), none());
    case("no colon", request("GET", "/x", &["X"], b""), none());
    case("no name", request("GET", "/x", &[": y"], b""), none());
    case("name with a space", request("GET", "/x", &["X Y: z"], b""), none());
    case("NUL in a value", request("GET", "/x", &["X: a\0b"], b""), none());
    case("NUL in a name", request("GET", "/x", &["X\0Y: z"], b""), none());
    case("NUL in the target", request("GET", "/x\0y", &[], b""), none());
    case("control byte in a value", request("GET", "/x", &["X: a\x01b"], b""), none());
    case("delete byte in a value", request("GET", "/x", &["X: a\x7fb"], b""), none());

    // Request lines.
    case("absolute form", request("GET", "http://gateway.example/smuggled", &[], b""), none());
    case("absolute form of another", request("GET", "http://other.example/smuggled", &[], b""), none());
    case("authority form", request("CONNECT", "other.example:80", &[], SMUGGLED), none());
    case("asterisk form", request("OPTIONS", "*", &[], b""), none());
    case("two spaces", b"GET  /x HTTP/1.1\r\nHost: g\r\n\r\n".to_vec(), none());
    case("tabs for spaces", b"GET\t/x\tHTTP/1.1\r\nHost: g\r\n\r\n".to_vec(), none());
    case("space in the target", b"GET /x y HTTP/1.1\r\nHost: g\r\n\r\n".to_vec(), none());
    case("no version", [b"GET /x\r\n", SMUGGLED].concat(), none());
    case("version 1.2", b"GET /x HTTP/1.2\r\nHost: g\r\n\r\n".to_vec(), none());
    case("version 2.0", b"GET /x HTTP/2.0\r\nHost: g\r\n\r\n".to_vec(), none());
    case("version in lower case", b"GET /x http/1.1\r\nHost: g\r\n\r\n".to_vec(), none());
    case("version 01.1", b"GET /x HTTP/01.1\r\nHost: g\r\n\r\n".to_vec(), none());
    case("preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), none());
    case("a request in the target", b"GET /x HTTP/1.1\r\nHost: g\r\n\r\n HTTP/1.1\r\nHost: g\r\n\r\n".to_vec(), plain("/x"));
    case("escaped line ends in the target", request("GET", "/x%0d%0aX:%20y", &[], b""), plain("/x%0d%0aX:%20y"));

    // Host.
    case("no Host", b"GET /x HTTP/1.1\r\n\r\n".to_vec(), none());
    case("two Hosts", request("GET", "/x", &["Host: gateway.example"], b""), none());
    case("two different Hosts", request("GET", "/x", &["Host: other.example"], b""), none());
    case("empty Host", b"GET /x HTTP/1.1\r\nHost: \r\n\r\n".to_vec(), none());
    case("Host with a path", b"GET /x HTTP/1.1\r\nHost: g/y\r\n\r\n".to_vec(), none());
    case("Host with user info", b"GET /x HTTP/1.1\r\nHost: u@g\r\n\r\n".to_vec(), none());
    case("Host with a space", b"GET /x HTTP/1.1\r\nHost: g h\r\n\r\n".to_vec(), none());

    // Requests after a rejected body, or after one that ends elsewhere.
    case("pipelined behind a rejected type", [&request("POST", "/x", &["Content-Type: text/plain", &format!("Content-Length: {}", SMUGGLED.len())], SMUGGLED)[..], SMUGGLED].concat(), plain("/smuggled"));
    case("inside a rejected GET body", request("GET", "/x", &[&format!("Content-Length: {}", SMUGGLED.len())], SMUGGLED), none());
    case("inside a rejected chunked GET body", request("GET", "/x", &["Transfer-Encoding: chunked"], &[format!("{:x}\r\n", SMUGGLED.len()).as_bytes(), SMUGGLED, b"\r\n0\r\n\r\n"].concat()), none());
    case("inside a body too large", material.post(&["Content-Length: 70000"], &SMUGGLED.repeat(20)), none());
    case("inside a body of a wrong method", request("PUT", "/x", &[&format!("Content-Length: {}", SMUGGLED.len())], SMUGGLED), none());
    case("inside a body without a signature", request("POST", "/x", &[FORM, &format!("Content-Length: {}", SMUGGLED.len())], SMUGGLED), none());
    case("inside a body of a malformed target", request("POST", "/x%", &[FORM, &format!("Content-Length: {}", SMUGGLED.len())], SMUGGLED), none());
    case("Upgrade with bytes behind", [&request("GET", "/x", &["Connection: Upgrade", "Upgrade: websocket"], b"")[..], b"\x81\x05hello", SMUGGLED].concat(), plain("/x"));
    case("Upgrade h2c with bytes behind", [&request("GET", "/x", &["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"], b"")[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"].concat(), plain("/x"));
    case("Expect with the body at once", material.post(&["Expect: 100-continue", &length], &material.form), outer());
    case("Expect of something else", material.post(&["Expect: 200-ok", &length], &material.form_and(b"")), outer());
    case("HTTP/1.0 with chunks", [b"POST /x HTTP/1.0\r\nHost: g\r\nTransfer-Encoding: chunked\r\n", FORM.as_bytes(), b"\r\n\r\n", &chunked_and_more].concat(), none());
    case("HTTP/1.0 with keep-alive", [b"GET /x HTTP/1.0\r\nHost: g\r\nConnection: keep-alive\r\n\r\n", SMUGGLED].concat(), plain("/x"));
    case("Connection: close with more behind", [&request("GET", "/x", &["Connection: close"], b"")[..], SMUGGLED].concat(), plain("/x"));
    case("Connection names the length", [&material.post(&["Connection: Content-Length", &length], &material.form)[..]].concat(), outer());
    case("Connection names the coding", chunks(&chunked).into_iter().collect(), outer());
    case("a GET of length 0 with bytes behind", request("GET", "/x", &["Content-Length: 0"], b"GET"), plain("/x"));
    case("a POST without a length", request("POST", "/x", &[FORM], b"GET"), vec![("POST", "/x".to_owned(), Vec::new())]);

    // Requests that a strict reading contains pass, one after another.
    let two = [
        &request("GET", "/x", &[], b"")[..],
        &request("GET", "/y", &["Connection: close"], b""),
    ]
    .concat();
    case("two requests in one piece", two, vec![("GET", "/x".to_owned(), Vec::new()), ("GET", "/y".to_owned(), Vec::new())]);
    let after_chunks = [
        &chunks(&chunked)[..],
        &request("GET", "/y", &["Connection: close"], b""),
    ]
    .concat();
    case("a request behind chunks", after_chunks, vec![material.outer(), ("GET", "/y".to_owned(), Vec::new())]);
    cases
}
