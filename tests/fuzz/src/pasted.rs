//! Requests that people paste for Sign Doctor: any text, and each valid request in the forms in which people have it.

use serde_json::{Map, Value, json};
use signpost_management::doctor::paste::Pasted;

use crate::naive::head::{self as naive, Framing, Limits};

const LIMITS: Limits = Limits {
    bytes: 64 * 1024,
    fields: 100,
    query: 64 * 1024,
};

/// Reads any text. If it is a request, writes it as people paste it, and compares what is read of that.
///
/// # Panics
///
/// When two results differ.
pub fn pasted(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    assert_eq!(text.parse::<Pasted>(), text.parse(), "read twice");
    let Some(request) = Request::of(input) else {
        return false;
    };
    let sent = request.sent();
    assert_read(&text, &text);
    assert_read(&sent, &sent);
    for written in request
        .lines()
        .into_iter()
        .chain(request.curl())
        .chain([request.har()])
    {
        assert_read(&written, &sent);
    }
    if let Some(fetch) = request.fetch() {
        assert_eq!(sorted(&read(&fetch)), sorted(&sent), "{fetch}");
    }
    true
}

fn read(text: &str) -> String {
    let pasted: Pasted = text
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    pasted.text
}

fn assert_read(text: &str, expected: &str) {
    assert_eq!(read(text), expected, "{text}");
}

/// The lines of the head, whose order is lost, and the body.
fn sorted(sent: &str) -> (Vec<&str>, &str) {
    let (head, body) = sent.split_once("\r\n\r\n").expect("the head is complete");
    let mut lines: Vec<_> = head.lines().collect();
    lines.sort_unstable();
    (lines, body)
}

/// A request with a body of known length.
struct Request<'a> {
    method: &'a str,
    url: String,
    target: &'a str,
    headers: Vec<(&'a str, &'a str)>,
    body: &'a str,
}

impl<'a> Request<'a> {
    fn of(input: &'a [u8]) -> Option<Self> {
        let head = naive::read(input, &LIMITS).ok()??;
        let text = |bytes: &'a [u8]| std::str::from_utf8(bytes).ok();
        let (method, body) = (text(head.method)?, text(&input[head.length..])?);
        let is_framed = match head.framing {
            Framing::None => body.is_empty(),
            Framing::Length(length) => length == body.len() as u64,
            Framing::Chunked => false,
        };
        let is_word = method.bytes().all(|letter| letter.is_ascii_alphabetic());
        if head.is_http_1_0 || !is_framed || !is_word || method == "curl" {
            return None;
        }
        let target = text(head.request_line)?.split(' ').nth(1)?;
        let header = |field: &(&'a [u8], &'a [u8])| Some((text(field.0)?, text(field.1)?));
        Some(Self {
            method,
            url: format!("http://{}{target}", text(head.host)?),
            target,
            headers: head.fields.iter().map(header).collect::<Option<_>>()?,
            body,
        })
    }

    fn each<T, C: FromIterator<T>>(&self, header: impl Fn(&str, &str) -> T) -> C {
        let headers = self.headers.iter();
        headers.map(|(name, value)| header(name, value)).collect()
    }

    /// As it is sent.
    fn sent(&self) -> String {
        let lines: String = self.each(|name, value| format!("{name}: {value}\r\n"));
        let line = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        [&line, &lines, "\r\n", self.body].concat()
    }

    /// As an editor saves it, and as `curl -v` prints its head.
    fn lines(&self) -> Vec<String> {
        let lines = self.sent().replace("\r\n", "\n");
        let sent: String = lines.lines().map(|line| format!("> {line}\n")).collect();
        let has_command = lines.contains("curl") || lines.contains("Invoke-");
        // Neither keeps blanks at the end of the head.
        let has_value = !lines.contains(": \n\n");
        let is_kept = has_value && !self.body.contains(['\r', '\n']);
        let sent = (self.body.is_empty() && has_value && !has_command).then_some(sent);
        sent.into_iter().chain(is_kept.then_some(lines)).collect()
    }

    /// Whether a program sends these headers only.
    fn has_type(&self) -> bool {
        let mut names = self.headers.iter().map(|(name, _)| name);
        self.body.is_empty() || names.any(|name| name.eq_ignore_ascii_case("content-type"))
    }

    /// As commands of curl for bash, in each kind of quotes that can have it.
    fn curl(&self) -> Vec<String> {
        let has =
            |letter| self.sent().replace("\r\n", "").contains(letter) || self.body.contains(letter);
        let single: fn(&str) -> String = |text| format!("'{}'", text.replace('\'', r"'\''"));
        let quotes = [
            // Line ends are those of the clipboard.
            (!has('\r') && !has('\0')).then_some(single),
            // `^` is also how a command for Windows is told from one for bash.
            (!has('\r') && !has('\0') && !has('^')).then_some(double as fn(&str) -> String),
            (!has('\0')).then_some(ansi),
        ];
        let quotes = quotes.into_iter().flatten().filter(|_| self.has_type());
        quotes.map(|quote| self.quoted(quote)).collect()
    }

    fn quoted(&self, quote: fn(&str) -> String) -> String {
        let mut command = format!("curl {} -X {}", quote(&self.url), self.method);
        for (name, value) in &self.headers {
            let joint = if value.is_empty() { ";" } else { ": " };
            command += " \\\n  -H ";
            command += &quote(&format!("{name}{joint}{value}"));
        }
        if !self.body.is_empty() {
            command += &format!(" \\\n  --data-raw {}", quote(self.body));
        }
        command
    }

    /// As browsers copy it for a script. A name that is there twice cannot be written.
    fn fetch(&self) -> Option<String> {
        let headers: Map<_, _> = self.each(|name, value| (name.to_owned(), value.into()));
        let is_whole = self.has_type() && headers.len() == self.headers.len();
        let body = (!self.body.is_empty()).then_some(self.body);
        let options = json!({"headers": headers, "body": body, "method": self.method});
        is_whole.then(|| format!("await fetch({}, {options:#});", json!(self.url)))
    }

    fn har(&self) -> String {
        let headers: Vec<Value> = self.each(|name, value| json!({"name": name, "value": value}));
        let mut request = json!({"method": self.method, "url": self.url, "headers": headers});
        if !self.body.is_empty() {
            request["postData"] = json!({"mimeType": "text/plain", "text": self.body});
        }
        json!({"log": {"entries": [{"request": request}]}}).to_string()
    }
}

fn double(text: &str) -> String {
    let escape = |text: String, letter| text.replace(letter, &format!("\\{letter}"));
    format!("\"{}\"", "\\\"$`".chars().fold(text.to_owned(), escape))
}

fn ansi(text: &str) -> String {
    let escaped = |letter| match letter {
        '\\' | '\'' => format!("\\{letter}"),
        '!' | '\0'..='\x1f' => format!("\\u{:04x}", u32::from(letter)),
        _ => letter.to_string(),
    };
    format!("$'{}'", text.chars().map(escaped).collect::<String>())
}
