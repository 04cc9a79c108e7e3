//! Requests as commands of curl and PowerShell.

use url::form_urlencoded::byte_serialize;

use super::{
    FORM, ParsePastedError, Pasted, unread,
    words::{Shell, Word, words},
};

/// What an option of curl is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Curl {
    Method,
    Header,
    /// The value of this header, behind this text.
    HeaderOf(&'static str, &'static str),
    /// Data, or a file's if it begins with `@`.
    Data,
    RawData,
    EncodedData,
    Get,
    Head,
    Upload,
    Multipart,
    Address,
    Json,
    /// It has a value, and changes nothing of the request that is examined.
    Other,
    /// It has none.
    Flag,
}

/// The options of curl: the letters and the words of each use.
const OPTIONS: [(Curl, &str, &str); 17] = [
    (Curl::Method, "X", "request"),
    (Curl::Header, "H", "header"),
    (Curl::HeaderOf("User-Agent", ""), "A", "user-agent"),
    (Curl::HeaderOf("Cookie", ""), "b", "cookie"),
    (Curl::HeaderOf("Referer", ""), "e", "referer"),
    (Curl::HeaderOf("Authorization", "Basic "), "u", "user"),
    (
        Curl::HeaderOf("Authorization", "Bearer "),
        "",
        "oauth2-bearer",
    ),
    (Curl::Data, "d", "data data-ascii data-binary"),
    (Curl::RawData, "", "data-raw"),
    (Curl::EncodedData, "", "data-urlencode"),
    (Curl::Get, "G", "get"),
    (Curl::Head, "I", "head"),
    (Curl::Upload, "T", "upload-file"),
    (Curl::Multipart, "F", "form form-string"),
    (Curl::Address, "", "url"),
    (Curl::Json, "", "json"),
    (
        Curl::Other,
        "cCDEmoPQrtUwxyYz",
        "cacert capath cert cert-type ciphers connect-timeout connect-to cookie-jar dump-header interface keepalive-time key key-type \
         limit-rate max-redirs max-time noproxy output output-dir proxy proxy-user range resolve retry retry-delay retry-max-time \
         speed-limit speed-time stderr tls-max trace trace-ascii unix-socket write-out",
    ),
];
/// Options of curl without a value, which change nothing of the request.
const FLAGS: (&str, &str) = (
    "0fgikLnNOsSv46#Z",
    "buffer compressed disable fail fail-with-body globoff http1.1 http2 http2-prior-knowledge http3 include insecure ipv4 ipv6 \
     keepalive location netrc no-buffer parallel path-as-is progress-bar progress-meter proto-default remote-name \
     retry-connrefused retry-all-errors sessionid show-error silent ssl-reqd tcp-nodelay tlsv1 tlsv1.2 tlsv1.3 verbose",
);

impl Curl {
    fn of(letter: char) -> Option<Self> {
        let mut options = OPTIONS
            .iter()
            .filter(|(_, letters, _)| letters.contains(letter));
        let flag = FLAGS.0.contains(letter).then_some(Self::Flag);
        options.next().map(|(option, ..)| *option).or(flag)
    }

    fn named(word: &str) -> Option<Self> {
        let has = |words: &str, word| words.split(' ').any(|known| known == word);
        let mut options = OPTIONS.iter().filter(|(.., words)| has(words, word));
        let flag = has(FLAGS.1, word.strip_prefix("no-").unwrap_or(word)).then_some(Self::Flag);
        options.next().map(|(option, ..)| *option).or(flag)
    }

    const fn has_value(self) -> bool {
        !matches!(self, Self::Flag | Self::Get | Self::Head)
    }
}

/// The text behind the name of a program, which may stand behind a prompt.
fn after_name<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut places = text.match_indices(name).map(|(at, _)| text.split_at(at));
    places.find_map(|(before, command)| {
        let before = before.trim_end();
        let rest = &command[name.len()..];
        let rest = rest.strip_prefix(".exe").unwrap_or(rest);
        let is_first = before.is_empty() || before.ends_with(['$', '#', '>', '%', '❯']);
        (is_first && rest.starts_with(char::is_whitespace)).then_some(rest)
    })
}

/// A command of curl, for bash or for Windows' cmd; `None` if it is none.
pub(super) fn curl(text: &str) -> Option<Result<Pasted, ParsePastedError>> {
    let text = after_name(text, "curl")?;
    // What `-v` prints behind the command.
    let is_printed = |line: &&str| {
        ["* ", "> ", "< ", "{ [", "} ["]
            .iter()
            .any(|mark| line.starts_with(mark))
    };
    let lines: Vec<_> = text.lines().take_while(|line| !is_printed(line)).collect();
    let mut command = lines.join("\n");
    let mut shell = Shell::Bash;
    if command.contains("^\n") || command.contains("^\"") {
        shell = Shell::Cmd;
        let mut letters = command.chars();
        let mut plain = String::new();
        while let Some(letter) = letters.next() {
            plain.extend(if letter == '^' {
                letters.next()
            } else {
                Some(letter)
            });
        }
        command = plain;
    }
    Some(call_of(&command, shell).and_then(Call::finish))
}

fn call_of(command: &str, shell: Shell) -> Result<Call, ParsePastedError> {
    let mut call = Call::default();
    let words = words(command, shell, &mut call.noticed)?;
    let mut words = words.into_iter().filter_map(|word| match word {
        Word::Text(text) => Some(text),
        Word::Sign(_) => None,
    });
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            let (name, attached) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let option = Curl::named(name).ok_or_else(|| unread(&word))?;
            let value = match attached {
                None if option.has_value() => words.next().ok_or_else(|| unread(&word))?,
                attached => attached.unwrap_or_default(),
            };
            call.apply(option, &word, &value)?;
        } else if let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            for (at, letter) in letters.char_indices() {
                let name = format!("-{letter}");
                let option = Curl::of(letter).ok_or_else(|| unread(&name))?;
                let attached = &letters[at + letter.len_utf8()..];
                let value = match attached {
                    _ if !option.has_value() => String::new(),
                    "" => words.next().ok_or_else(|| unread(&name))?,
                    attached => attached.to_owned(),
                };
                call.apply(option, &name, &value)?;
                if option.has_value() {
                    break;
                }
            }
        } else if call.address.is_empty() {
            call.address = word;
        } else {
            call.noticed.push(("doctor_unread", word));
        }
    }
    Ok(call)
}

/// What a command sends.
#[derive(Default)]
struct Call {
    address: String,
    method: Option<String>,
    headers: Vec<(String, String)>,
    data: Vec<String>,
    is_get: bool,
    content_type: Option<&'static str>,
    noticed: Vec<super::Noticed>,
}

impl Call {
    fn apply(&mut self, option: Curl, name: &str, value: &str) -> Result<(), ParsePastedError> {
        let is_file = match option {
            Curl::Data | Curl::Json | Curl::Header => value.starts_with('@'),
            Curl::EncodedData => value
                .split('=')
                .next()
                .is_some_and(|name| name.contains('@')),
            _ => false,
        };
        if is_file {
            // Its content is not known here.
            return Err(unread(format!("{name} {value}")));
        }
        match option {
            Curl::Method => self.method = Some(value.to_owned()),
            // curl sends none without a value.
            Curl::Header => self
                .headers
                .extend(value.split_once(':').and_then(|(name, value)| {
                    let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
                    (!value.is_empty()).then_some((name, value))
                })),
            Curl::HeaderOf(name, before) => {
                self.headers
                    .push((name.to_owned(), format!("{before}{value}")));
            }
            Curl::Data | Curl::RawData => self.data.push(value.to_owned()),
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

    fn finish(mut self) -> Result<Pasted, ParsePastedError> {
        let has_data = !self.data.is_empty() && !self.is_get;
        let mut body = self.data.join("&");
        if self.is_get && !body.is_empty() {
            let joint = if self.address.contains('?') { '&' } else { '?' };
            self.address = format!("{}{joint}{body}", self.address);
            body.clear();
        }
        let is_type = |(name, _): &(String, _)| name.eq_ignore_ascii_case("content-type");
        if has_data && !self.headers.iter().any(is_type) {
            let content_type = self.content_type.unwrap_or(FORM).to_owned();
            self.headers.push(("Content-Type".to_owned(), content_type));
        }
        let usual = if has_data { "POST" } else { "GET" };
        let method = self.method.as_deref().unwrap_or(usual);
        let pasted = Pasted::made(method, &self.address, &self.headers, &body)?;
        let noticed = self.noticed;
        Ok(Pasted { noticed, ..pasted })
    }
}

/// A command of PowerShell, as browsers copy it; `None` if it is none.
pub(super) fn powershell(text: &str) -> Option<Result<Pasted, ParsePastedError>> {
    let names = ["Invoke-WebRequest", "Invoke-RestMethod"];
    let (at, name) = names
        .iter()
        .find_map(|name| Some((text.find(name)?, name)))?;
    let mut call = Call::default();
    // What browsers copy in front of it.
    let lines = text[..at].lines().filter(|line| !line.trim().is_empty());
    let others = lines.filter(|line| !line.starts_with("$session") && !line.starts_with("PS "));
    call.noticed
        .extend(others.map(|line| ("doctor_unread", line.to_owned())));
    let words = words(
        &text[at + name.len()..],
        Shell::PowerShell,
        &mut call.noticed,
    );
    Some(
        words
            .and_then(|words| call.apply_powershell(words))
            .and_then(Call::finish),
    )
}

impl Call {
    fn apply_powershell(mut self, words: Vec<Word>) -> Result<Self, ParsePastedError> {
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let option = match word {
                Word::Sign(';' | '|') => break,
                Word::Sign(sign) => return Err(unread(sign)),
                Word::Text(word) => word,
            };
            let header =
                |name: &str, value: Option<String>| (name.to_owned(), value.unwrap_or_default());
            let mut value = || value_of(&mut words);
            match &*option.to_ascii_lowercase() {
                "-usebasicparsing" => {}
                "-websession" => drop(value()),
                "-uri" => self.address = value().pop().unwrap_or_default(),
                "-method" => self.method = value().pop(),
                "-contenttype" => self.headers.push(header("Content-Type", value().pop())),
                "-useragent" => self.headers.push(header("User-Agent", value().pop())),
                "-body" => self.data.extend(value().pop()),
                "-headers" => {
                    for pair in value().chunks(2) {
                        self.headers.push(header(&pair[0], pair.get(1).cloned()));
                    }
                }
                other if other.starts_with('-') => return Err(unread(option)),
                _ => self.address = option,
            }
        }
        // Unlike curl, it sends a body with a method that is not named, too.
        self.method.get_or_insert_with(|| "GET".to_owned());
        Ok(self)
    }
}

/// A value of PowerShell: a word, or the words in brackets.
fn value_of(words: &mut impl Iterator<Item = Word>) -> Vec<String> {
    let (mut texts, mut depth) = (Vec::new(), 0);
    for word in words {
        match word {
            Word::Sign('@') => continue,
            Word::Sign('{' | '(' | '[') => depth += 1,
            Word::Sign('}' | ')' | ']') => depth -= 1,
            Word::Sign(_) => {}
            Word::Text(text) => texts.push(text),
        }
        if depth == 0 {
            break;
        }
    }
    texts
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
