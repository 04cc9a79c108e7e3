//! Reads a request that a person has pasted: as it is sent, as a command of curl, or as an address.

use url::form_urlencoded::byte_serialize;

use signpost_protocol::header::HeaderNames;
use signpost_proxy::{Headers, NameAndValue};

/// The type of a body that curl sends with `--data`.
const FORM: &str = "application/x-www-form-urlencoded";

/// Options of curl with a value, beyond those that change the request: it is left out.
const OTHER_SHORT: &str = "AbcCDeEKmoPQrtuUwxyYz";
const OTHER_LONG: [&str; 25] = [
    "cacert",
    "cert",
    "config",
    "connect-timeout",
    "connect-to",
    "cookie",
    "cookie-jar",
    "dump-header",
    "form",
    "interface",
    "key",
    "limit-rate",
    "max-redirs",
    "max-time",
    "output",
    "proxy",
    "range",
    "referer",
    "resolve",
    "retry",
    "retry-delay",
    "unix-socket",
    "user",
    "user-agent",
    "write-out",
];

/// A request as it was pasted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pasted {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The form.
    pub body: String,
}

/// It is none of what can be pasted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a request as it is sent, beginning with its request line; a curl command whose data is in it; or a URL"
)]
pub struct ParsePastedError;

impl Headers for Pasted {
    fn each(&self) -> impl Iterator<Item = NameAndValue<'_>> {
        let fields = self.headers.iter();
        fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()))
    }
}

impl std::str::FromStr for Pasted {
    type Err = ParsePastedError;

    fn from_str(text: &str) -> Result<Self, ParsePastedError> {
        let text = text.trim_start();
        let first = text.lines().next().unwrap_or_default().trim_end();
        let mut words = first.split_whitespace();
        match (words.next(), words.next()) {
            (Some("curl"), _) => curl(text),
            // A method alone is no address.
            (Some(address), None) => Ok(Self {
                method: "GET".to_owned(),
                target: target_of(address).ok_or(ParsePastedError)?,
                ..Self::default()
            }),
            (Some(method), Some(target)) => match (words.next(), words.next()) {
                (None, _) => raw(method, target, text),
                (Some(version), None) if version.starts_with("HTTP/") => raw(method, target, text),
                // A space in the target, for example.
                _ => Err(ParsePastedError),
            },
            (None, _) => Err(ParsePastedError),
        }
    }
}

impl Pasted {
    /// The value of the first header with this name.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let header = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.as_str())
    }

    /// Names the application, unless the request does.
    pub fn name_app(&mut self, names: &HeaderNames, app: String) {
        if self.header(names.app.as_str()).is_none() {
            self.headers.push((names.spelled(&names.app), app));
        }
    }

    fn add_field(&mut self, field: &str) {
        // curl sends none without a value.
        if let Some((name, value)) = field.split_once(':')
            && !value.trim().is_empty()
        {
            let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
            self.headers.push((name, value));
        }
    }
}

/// Path and query of an address, or of what is already a target; without the fragment, which no client sends.
fn target_of(address: &str) -> Option<String> {
    let address = address.split('#').next().unwrap_or_default();
    if address.starts_with('/') {
        return Some(address.to_owned());
    }
    let rest = address
        .strip_prefix("https://")
        .or_else(|| address.strip_prefix("http://"))?;
    let start = rest.find(['/', '?']).unwrap_or(rest.len());
    let target = &rest[start..];
    Some(match target.starts_with('/') {
        true => target.to_owned(),
        false => format!("/{target}"),
    })
}

/// A request as it is sent; its lines may end without CR.
fn raw(method: &str, target: &str, text: &str) -> Result<Pasted, ParsePastedError> {
    if !method.bytes().all(|letter| letter.is_ascii_uppercase()) {
        return Err(ParsePastedError);
    }
    let mut pasted = Pasted {
        method: method.to_owned(),
        target: target_of(target).ok_or(ParsePastedError)?,
        ..Pasted::default()
    };
    let mut rest = text.split_once('\n').map_or("", |(_, rest)| rest);
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = after;
        if line.trim_end().is_empty() {
            break;
        }
        pasted.add_field(line);
    }
    // An editor, or a mark of the end, adds line ends, which a form has not.
    pasted.body = rest.trim_end_matches(['\r', '\n']).to_owned();
    Ok(pasted)
}

/// A command of curl.
fn curl(text: &str) -> Result<Pasted, ParsePastedError> {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    // What a shell reads in its own way, this does not.
    if joined.contains(" $'") {
        return Err(ParsePastedError);
    }
    let words = shlex::split(&joined).ok_or(ParsePastedError)?;
    // From here on the line is the shell's: a pipe, a file, another command.
    let is_end =
        |word: &String| ["|", ";", "&", "&&", "||", ">", ">>", "2>"].contains(&word.as_str());
    let mut words = words.into_iter().skip(1).take_while(|word| !is_end(word));
    let mut call = Call::default();
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            let (name, attached) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let option = long_option(name);
            let value = match (attached, option) {
                (Some(value), _) => value,
                (None, Curl::Flag | Curl::Get | Curl::Head) => String::new(),
                (None, _) => words.next().unwrap_or_default(),
            };
            call.apply(option, &value)?;
        } else if let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            for (at, letter) in letters.char_indices() {
                let option = short_option(letter);
                if matches!(option, Curl::Flag | Curl::Get | Curl::Head) {
                    call.apply(option, "")?;
                    continue;
                }
                let attached = &letters[at + letter.len_utf8()..];
                let value = match attached {
                    "" => words.next().unwrap_or_default(),
                    attached => attached.to_owned(),
                };
                call.apply(option, &value)?;
                break;
            }
        } else if call.address.is_empty() || !call.address.contains("://") && word.contains("://") {
            call.address = word;
        }
    }
    call.finish()
}

/// What an option of curl is for.
#[derive(Clone, Copy)]
enum Curl {
    Method,
    Header,
    Data,
    EncodedData,
    Get,
    Head,
    Upload,
    Multipart,
    Address,
    Json,
    /// It has a value, and does not matter here.
    Other,
    /// It has none.
    Flag,
}

fn long_option(name: &str) -> Curl {
    match name {
        "request" => Curl::Method,
        "header" => Curl::Header,
        "data" | "data-ascii" | "data-binary" | "data-raw" => Curl::Data,
        "data-urlencode" => Curl::EncodedData,
        "get" => Curl::Get,
        "head" => Curl::Head,
        "upload-file" => Curl::Upload,
        "form" | "form-string" => Curl::Multipart,
        "url" => Curl::Address,
        "json" => Curl::Json,
        name if OTHER_LONG.contains(&name) => Curl::Other,
        _ => Curl::Flag,
    }
}

fn short_option(letter: char) -> Curl {
    match letter {
        'X' => Curl::Method,
        'H' => Curl::Header,
        'd' => Curl::Data,
        'G' => Curl::Get,
        'I' => Curl::Head,
        'T' => Curl::Upload,
        'F' => Curl::Multipart,
        letter if OTHER_SHORT.contains(letter) => Curl::Other,
        _ => Curl::Flag,
    }
}

/// What a command of curl sends.
#[derive(Default)]
struct Call {
    pasted: Pasted,
    address: String,
    method: Option<String>,
    data: Vec<String>,
    is_get: bool,
    content_type: Option<&'static str>,
}

impl Call {
    fn apply(&mut self, option: Curl, value: &str) -> Result<(), ParsePastedError> {
        match option {
            Curl::Method => self.method = Some(value.to_owned()),
            Curl::Header => self.pasted.add_field(value),
            // Its content is in a file, of which nothing is known here.
            Curl::Data | Curl::Json if value.starts_with('@') => return Err(ParsePastedError),
            Curl::EncodedData
                if value
                    .split('=')
                    .next()
                    .is_some_and(|name| name.contains('@')) =>
            {
                return Err(ParsePastedError);
            }
            Curl::Data => self.data.push(value.to_owned()),
            Curl::Json => {
                self.data.push(value.to_owned());
                self.content_type = Some("application/json");
            }
            Curl::EncodedData => self.data.push(encoded(value)),
            Curl::Get => self.is_get = true,
            Curl::Head => self.method = Some("HEAD".to_owned()),
            Curl::Upload => self.method = Some("PUT".to_owned()),
            Curl::Multipart => {
                self.data.push(value.to_owned());
                self.content_type = Some("multipart/form-data");
            }
            Curl::Address => self.address = value.to_owned(),
            Curl::Other | Curl::Flag => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Pasted, ParsePastedError> {
        let mut pasted = self.pasted;
        pasted.target = target_of_curl(&self.address).ok_or(ParsePastedError)?;
        let has_data = !self.data.is_empty();
        let data = self.data.join("&");
        if self.is_get && !data.is_empty() {
            let joint = if pasted.target.contains('?') {
                '&'
            } else {
                '?'
            };
            pasted.target.push(joint);
            pasted.target.push_str(&data);
        } else {
            pasted.body = data;
        }
        let method = if has_data && !self.is_get {
            "POST"
        } else {
            "GET"
        };
        pasted.method = self.method.unwrap_or_else(|| method.to_owned());
        if !pasted.body.is_empty() && pasted.header("content-type").is_none() {
            let content_type = self.content_type.unwrap_or(FORM);
            pasted
                .headers
                .push(("Content-Type".to_owned(), content_type.to_owned()));
        }
        Ok(pasted)
    }
}

/// Path and query of the address in a command: its scheme may be missing, and its start may be a variable.
fn target_of_curl(address: &str) -> Option<String> {
    match target_of(address) {
        None if address.contains("://") || address.is_empty() => None,
        None => target_of(&format!("http://{address}")),
        target => target,
    }
}

/// A value of `--data-urlencode`: of `name=content`, only the content is encoded, as curl does it.
fn encoded(value: &str) -> String {
    let encode = |text: &str| {
        let encoded: String = byte_serialize(text.as_bytes()).collect();
        // curl leaves the unreserved characters of RFC 3986; the form encoding of the URL standard has `*` in place of
        // `~`.
        encoded.replace('*', "%2A").replace("%7E", "~")
    };
    match value.split_once('=') {
        Some(("", content)) => encode(content),
        Some((name, content)) => format!("{name}={}", encode(content)),
        None => encode(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pasted(method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Pasted {
        let headers = headers.iter();
        Pasted {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: headers
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            body: body.to_owned(),
        }
    }

    #[test]
    fn a_request_is_read_in_each_form_that_people_have_it_in() {
        let form = ("Content-Type", FORM);
        for (text, expected) in [
            (
                "GET /user?time=1&sign=a HTTP/1.1\r\nHost: api.example\r\nAcme-X-App: shop\r\n\r\n",
                pasted(
                    "GET",
                    "/user?time=1&sign=a",
                    &[("Host", "api.example"), ("Acme-X-App", "shop")],
                    "",
                ),
            ),
            (
                "POST /events HTTP/2\nContent-Type: text/plain\n\na=1&b=2\n\n",
                pasted(
                    "POST",
                    "/events",
                    &[("Content-Type", "text/plain")],
                    "a=1&b=2",
                ),
            ),
            (
                "https://api.example/user?a=1#top",
                pasted("GET", "/user?a=1", &[], ""),
            ),
            ("http://api.example?a=1", pasted("GET", "/?a=1", &[], "")),
            ("/user", pasted("GET", "/user", &[], "")),
            (
                "curl -sS 'https://api.example/user?a=1&b=%20' \\\n  -H 'Acme-X-App: shop' --compressed",
                pasted("GET", "/user?a=1&b=%20", &[("Acme-X-App", "shop")], ""),
            ),
            (
                "curl https://api.example/e -d a=1 --data-raw 'b=2' -m5 -o /dev/null",
                pasted("POST", "/e", &[form], "a=1&b=2"),
            ),
            (
                "curl -G https://api.example/e?x=1 --data-urlencode 'q=a b&c'",
                pasted("GET", "/e?x=1&q=a+b%26c", &[], ""),
            ),
            (
                "curl \"$GATEWAY\"'/user?a=1' -H 'Acme-X-App: shop' -H 'Accept:' | jq .",
                pasted("GET", "/user?a=1", &[("Acme-X-App", "shop")], ""),
            ),
            (
                "curl localhost:8080/e --noproxy localhost -d ''",
                pasted("POST", "/e", &[], ""),
            ),
            ("curl -I api.example", pasted("HEAD", "/", &[], "")),
            (
                "curl https://api.example/e --data-urlencode 'q=~*'",
                pasted("POST", "/e", &[form], "q=~%2A"),
            ),
            (
                "curl -XPUT --url=https://api.example/e --insecure --json '{}'",
                pasted("PUT", "/e", &[("Content-Type", "application/json")], "{}"),
            ),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_request_is_rejected() {
        for text in [
            "",
            "  \n",
            "hello",
            "hello world",
            "ftp://api.example/",
            "curl",
            "curl 'https://api.example/",
            "curl https://api.example/ -d @file",
            "GET api.example HTTP/1.1",
            "GET /a b HTTP/1.1",
            "curl https://api.example/ -d $'a\\u0021'",
            "curl https://api.example/ --data-urlencode name@file",
        ] {
            assert_eq!(text.parse::<Pasted>(), Err(ParsePastedError), "{text}");
        }
    }
}
