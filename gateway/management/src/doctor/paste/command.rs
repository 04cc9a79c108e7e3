//! Requests as commands of curl and PowerShell.

use std::{iter::Peekable, str::Chars};

use url::form_urlencoded::byte_serialize;

use super::{Noticed, ParsePastedError, Pasted, unread};

/// The type of a body that curl and PowerShell send if they are told none.
const FORM: &str = "application/x-www-form-urlencoded";
/// Those of other options.
const JSON: &str = "application/json";
const MULTIPART: &str = "multipart/form-data";
/// The letters of curl's options, each with its word.
const LETTERS: &str = "Xrequest Hheader Auser-agent bcookie ereferer uuser ddata Gget Ihead Tupload-file Fform ooutput mmax-time \
    Dcacert Ecert ccookie-jar rrange wwrite-out xproxy Uproxy-user Yspeed-limit yspeed-time Ddump-header ssilent Sshow-error \
    kinsecure Llocation vverbose iinclude ffail ggloboff Nno-buffer 4ipv4 6ipv6 nnetrc Oremote-name #progress-bar 0http1.0";
/// Words of options with a value, which changes nothing of the request that is examined.
const VALUES: &str = "cacert capath cert ciphers connect-timeout connect-to cookie-jar dump-header interface key limit-rate \
    max-redirs max-time noproxy output proxy proxy-user range resolve retry retry-delay speed-limit speed-time stderr trace \
    trace-ascii unix-socket write-out";
/// Words of options without one.
const FLAGS: &str = "buffer compressed fail fail-with-body globoff http1.1 http2 http2-prior-knowledge http3 include insecure \
    ipv4 ipv6 keepalive location netrc no-buffer path-as-is progress-bar progress-meter remote-name retry-all-errors show-error \
    silent tlsv1.2 tlsv1.3 verbose get head";
/// The options of PowerShell, each with the word of curl's.
const POWERSHELL: [(&str, &str); 8] = [
    ("-uri", "url"),
    ("-method", "request"),
    ("-contenttype", "content-type"),
    ("-useragent", "user-agent"),
    ("-body", "data-raw"),
    ("-headers", "headers"),
    ("-websession", "output"),
    ("-usebasicparsing", "url"),
];

/// A command of curl, for bash or for Windows' cmd; `None` if it is none.
pub(super) fn curl(text: &str) -> Option<Result<Pasted, ParsePastedError>> {
    let mut places = text.match_indices("curl").map(|(at, _)| text.split_at(at));
    let text = places.find_map(|(before, command)| {
        let (before, command) = (before.trim_end(), &command["curl".len()..]);
        let command = command.strip_prefix(".exe").unwrap_or(command);
        let is_first = before.is_empty() || before.ends_with(['$', '#', '>', '%', '❯']);
        (is_first && command.starts_with(char::is_whitespace)).then_some(command)
    })?;
    let command = text.replace("\r\n", "\n");
    // Behind a quote of bash, `^` stands for itself.
    let start = command.split('\'').next().unwrap_or_default();
    let is_cmd = start.contains("^\n") || start.contains("^\"");
    let (command, shell) = match is_cmd {
        true => {
            let command = command.replace("^\n", " ").replace("^^", "\0");
            (command.replace('^', "").replace('\0', "^"), Shell::Cmd)
        }
        false => (command, Shell::Bash),
    };
    Some(Call::of_curl(&command, shell).and_then(Call::finish))
}

/// A command of PowerShell, as browsers copy it; `None` if it is none.
pub(super) fn powershell(text: &str) -> Option<Result<Pasted, ParsePastedError>> {
    let text = text.replace('\r', "");
    let names = ["Invoke-WebRequest ", "Invoke-RestMethod "];
    let (before, command) = names.iter().find_map(|name| text.split_once(name))?;
    Some(Call::of_powershell(before, command).and_then(Call::finish))
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
    noticed: Vec<Noticed>,
}

impl Call {
    fn of_curl(command: &str, shell: Shell) -> Result<Self, ParsePastedError> {
        let mut call = Self::default();
        let words = words(command, shell, &mut call.noticed)?;
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            if word.len() < 2 || !word.starts_with('-') {
                call.apply("url", word)?;
                continue;
            }
            let (mut letters, mut long) = (&word[1..], word.strip_prefix("--"));
            if long.is_some() {
                letters = "";
            }
            while let Some(option) = long.take().or_else(|| word_of(&mut letters)) {
                let (name, attached) = match option.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (option, None),
                };
                if has(FLAGS, name.strip_prefix("no-").unwrap_or(name)) {
                    call.apply(name, String::new())?;
                    continue;
                }
                let attached = attached.or((!letters.is_empty()).then(|| letters.to_owned()));
                letters = "";
                let value = attached
                    .or_else(|| words.next())
                    .ok_or_else(|| unread(&word))?;
                call.apply(name, value)?;
            }
        }
        Ok(call)
    }

    fn of_powershell(before: &str, command: &str) -> Result<Self, ParsePastedError> {
        let mut call = Self::default();
        // A preface of browsers, or a prompt.
        for line in before.lines().filter(|line| !line.starts_with("$session")) {
            let other = (!line.trim_end().ends_with('>')).then(|| line.to_owned());
            call.noticed
                .extend(other.map(|line| ("doctor_unread", line)));
        }
        let words = words(command, Shell::Power, &mut call.noticed)?;
        let (mut name, mut header) = ("url", None);
        for word in words {
            if word.starts_with('-') && name != "data-raw" {
                let option = word.to_ascii_lowercase();
                let known = POWERSHELL.iter().find(|(known, _)| *known == option);
                name = known.ok_or_else(|| unread(&word))?.1;
                continue;
            }
            match (name, header.take()) {
                ("headers", None) => header = Some(word),
                ("headers", Some(name)) => call.headers.push((name, word)),
                // `([System.Text.Encoding]::UTF8.GetBytes("…"))`
                ("data-raw", _) if word.contains("System.Text.") || word.starts_with("::") => {}
                _ => {
                    call.apply(name, word)?;
                    name = "url";
                }
            }
        }
        // Unlike curl, it sends a body with a method that is not named, too.
        call.method.get_or_insert_with(|| "GET".to_owned());
        Ok(call)
    }

    /// Takes an option by its word, with its value.
    fn apply(&mut self, name: &str, value: String) -> Result<(), ParsePastedError> {
        let before = value.split('=').next().unwrap_or_default();
        let is_encoded = name == "data-urlencode" && before.contains('@');
        let is_file = ["data", "data-ascii", "data-binary", "json", "header"].contains(&name);
        if is_encoded || is_file && value.starts_with('@') {
            // Its content is not known here.
            return Err(unread(format!("--{name} {value}")));
        }
        let mut header = |name: &str, value| self.headers.push((name.to_owned(), value));
        match name {
            "url" if self.address.is_empty() => self.address = value,
            "url" => self.noticed.push(("doctor_unread", value)),
            "request" => self.method = Some(value),
            // curl sends one without a value only if it is written `Name;`.
            "header" => match (value.split_once(':'), value.strip_suffix(';')) {
                (None, Some(name)) => header(name.trim(), String::new()),
                (Some((name, value)), _) if !value.trim_ascii().is_empty() => {
                    header(name.trim(), value.trim_ascii().to_owned());
                }
                _ => {}
            },
            "user-agent" | "cookie" | "referer" | "content-type" => header(name, value),
            "user" => header("Authorization", format!("Basic {value}")),
            "oauth2-bearer" => header("Authorization", format!("Bearer {value}")),
            "data" | "data-ascii" | "data-binary" | "data-raw" => self.data.push(value),
            "data-urlencode" => self.data.push(encoded(&value)),
            "json" | "form" | "form-string" => {
                let is_json = name == "json";
                self.content_type = Some(if is_json { JSON } else { MULTIPART });
                self.data.push(value);
            }
            "get" => self.is_get = true,
            "head" => self.method = Some("HEAD".to_owned()),
            "upload-file" => self.method = Some("PUT".to_owned()),
            _ if has(VALUES, name) || has(FLAGS, name.strip_prefix("no-").unwrap_or(name)) => {}
            _ => return Err(unread(format!("--{name}"))),
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
        Ok(Pasted {
            noticed: self.noticed,
            ..pasted
        })
    }
}

fn has(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}

/// The word of the first letter of these, which is taken away. A letter that is none stands for itself.
fn word_of<'w>(letters: &mut &'w str) -> Option<&'w str> {
    let letter = letters.chars().next()?;
    let (first, rest) = letters.split_at(letter.len_utf8());
    *letters = rest;
    let word = LETTERS
        .split_whitespace()
        .find_map(|word| word.strip_prefix(letter));
    Some(word.unwrap_or(first))
}

/// The shell that a command is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shell {
    /// bash, and others like it.
    Bash,
    /// Windows' cmd, without its `^`: what a program's runtime reads then.
    Cmd,
    /// PowerShell.
    Power,
}

type Letters<'t> = Peekable<Chars<'t>>;

/// The words of a command, as its shell reads them. It ends before a pipe; in bash and cmd, also before a file or another command.
fn words(
    text: &str,
    shell: Shell,
    noticed: &mut Vec<Noticed>,
) -> Result<Vec<String>, ParsePastedError> {
    let (ends, spaces, escape) = match shell {
        Shell::Power => ("|", "@{}()[]=;,", '`'),
        Shell::Bash | Shell::Cmd => ("|;&<>", "", '\\'),
    };
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next()
        && (quote.is_some() || !is_before_output(letter, &mut letters, shell))
    {
        if quote.is_none() && (letter.is_whitespace() || spaces.contains(letter)) {
            words.extend(word.take());
            continue;
        }
        let is_escape = letter == escape && matches!(quote, None | Some('"'));
        // The command goes on in the next line.
        if is_escape && letters.next_if_eq(&'\n').is_some() {
            continue;
        }
        if quote.is_none() && ends.contains(letter) {
            let rest = format!("{letter}{}", letters.collect::<String>());
            noticed.push(("doctor_unread", rest));
            break;
        }
        let word = word.get_or_insert_default();
        match (quote, letter) {
            (None, '$') if shell == Shell::Bash && letters.next_if_eq(&'\'').is_some() => {
                quote = Some('$')
            }
            (None, '"' | '\'') if (shell, letter) != (Shell::Cmd, '\'') => quote = Some(letter),
            (Some('$'), '\'') => quote = None,
            (Some('$'), '\\') => word.push(ansi(&mut letters)?),
            // In other shells, a doubled one stands for itself.
            (Some('"' | '\''), _) if quote == Some(letter) => {
                match shell != Shell::Bash && letters.next_if_eq(&letter).is_some() {
                    true => word.push(letter),
                    false => quote = None,
                }
            }
            (None | Some('"'), '$') => word.push(expanded(&mut letters, shell, noticed)?),
            _ if is_escape => word.extend(escaped(&mut letters, quote, shell)),
            _ => word.push(letter),
        }
    }
    words.extend(word);
    let open = quote.map(|quote| Err(unread(format!("{quote} without its end"))));
    open.unwrap_or(Ok(words))
}

/// Whether a line ends here, and the next one is of what `curl -v` prints.
fn is_before_output(letter: char, letters: &mut Letters<'_>, shell: Shell) -> bool {
    let is_printed = |next: &char| "*><{}".contains(*next);
    letter == '\n' && shell != Shell::Power && letters.peek().is_some_and(is_printed)
}

/// What a `$` stands for: itself, if it is of a variable, whose value is not known.
fn expanded(
    letters: &mut Letters<'_>,
    shell: Shell,
    noticed: &mut Vec<Noticed>,
) -> Result<char, ParsePastedError> {
    if shell == Shell::Power && letters.peek() == Some(&'(') {
        let rest: String = letters.clone().take("([char]1114111)".len()).collect();
        let number = rest
            .strip_prefix("([char]")
            .and_then(|rest| rest.split_once(')'));
        let (number, letter) = number
            .and_then(|(number, _)| Some((number, number.parse().ok()?)))
            .ok_or_else(|| unread(&*rest))?;
        letters
            .by_ref()
            .take("([char])".len() + number.len())
            .for_each(drop);
        return char::from_u32(letter).ok_or_else(|| unread(number));
    }
    let is_of_name = |letter: &char| letter.is_ascii_alphanumeric() || "_{".contains(*letter);
    let name: String = letters.clone().take_while(is_of_name).collect();
    if shell != Shell::Cmd && !name.is_empty() && name != "session" {
        noticed.push(("doctor_unread", format!("${name}")));
    }
    Ok('$')
}

/// What an escape stands for, outside of quotes or in double ones.
fn escaped(letters: &mut Letters<'_>, quote: Option<char>, shell: Shell) -> Option<char> {
    let next = match (shell, quote) {
        (Shell::Power, _) | (Shell::Bash, None) => letters.next(),
        _ => Some(
            letters
                .next_if(|letter| "\"\\$`\n".contains(*letter))
                .unwrap_or('\\'),
        ),
    };
    match (shell, next?) {
        (Shell::Power, 'n') => Some('\n'),
        (Shell::Power, 'r') => Some('\r'),
        (Shell::Power, 't') => Some('\t'),
        (_, letter) => Some(letter),
    }
}

/// What an escape in `$'…'` of bash stands for.
fn ansi(letters: &mut Letters<'_>) -> Result<char, ParsePastedError> {
    let letter = letters.next().unwrap_or_default();
    let digits = match letter {
        'n' => return Ok('\n'),
        'r' => return Ok('\r'),
        't' => return Ok('\t'),
        '\\' | '\'' | '"' | '?' => return Ok(letter),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return Err(unread(format!("\\{letter}"))),
    };
    let digits = (0..digits).map_while(|_| letters.next_if(char::is_ascii_hexdigit));
    let digits: String = digits.collect();
    let number = u32::from_str_radix(&digits, 16).ok();
    // By `\x`, letters beyond ASCII are written byte by byte.
    let number = number.filter(|number| letter != 'x' || *number < 0x80);
    number
        .and_then(char::from_u32)
        .ok_or_else(|| unread(format!("\\{letter}{digits}")))
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
