//! Reads a request that a person has pasted, in any of the forms that people have it in.
//!
//! | module | form |
//! | --- | --- |
//! | here | as it is sent, as `curl -v` prints it, or an address |
//! | [`command`] | a command of curl or PowerShell |
//! | [`json`] | `fetch(…)`, a HAR |

mod command;
mod json;

use signpost_kit::config::origin::Origin;

/// The text of a remark, and what it is about.
pub(super) type Noticed = (&'static str, String);

/// A request as it was pasted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pasted {
    /// The request as it is sent, as far as it is known.
    pub text: String,
    /// The address that it is sent to, if that was pasted.
    pub(super) origin: Option<Origin>,
    /// Whether it is an address only: nothing is known of its headers.
    pub(super) is_bare: bool,
    /// Whether its host is unknown, and may be assumed.
    needs_host: bool,
    /// Whether its form shows no body.
    pub(super) hides_body: bool,
    /// What was assumed or left out.
    pub(super) noticed: Vec<Noticed>,
}

/// It cannot be examined.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParsePastedError {
    /// It is none of the known forms.
    #[error(
        "a request as it is sent, beginning with its request line; a curl command whose data is in it, or the output of curl -v; \
         a PowerShell command; fetch(…); a HAR; or a URL"
    )]
    Unknown,
    /// A part of it cannot be read.
    #[error("a request without this part, which cannot be read: {0}")]
    Unread(String),
}

fn unread(part: impl Into<String>) -> ParsePastedError {
    ParsePastedError::Unread(part.into())
}

impl std::str::FromStr for Pasted {
    type Err = ParsePastedError;

    fn from_str(text: &str) -> Result<Self, ParsePastedError> {
        let bare = text.trim();
        let first = bare.lines().next().unwrap_or_default();
        let words: Vec<_> = first.split_whitespace().collect();
        let is_letter = |letter: u8| letter.is_ascii_alphabetic();
        let is_word = |word: &&&str| **word != "curl" && word.bytes().all(is_letter);
        let method = words.first().filter(is_word);
        let has_version = words.last().is_some_and(|word| word.starts_with("HTTP/"));
        let call = bare.strip_prefix("await ").unwrap_or(bare);
        if bare.starts_with('{') {
            return json::har(bare);
        }
        if let Some(call) = call.strip_prefix("fetch(") {
            return json::fetch(call);
        }
        if method.is_some() && has_version {
            return Ok(as_sent(text));
        }
        let command = command::curl(bare).or_else(|| command::powershell(bare));
        if let Some(pasted) = command.or_else(|| transcript(bare).map(Ok)) {
            return pasted;
        }
        match (method, &*words) {
            (_, [address]) => Self::address_only("GET", address),
            // Without a version it is a request line only if headers follow.
            (Some(_), [_, target]) if target.starts_with('/') && bare != first => Ok(as_sent(text)),
            (Some(method), [_, address]) => Self::address_only(method, address),
            _ => Err(ParsePastedError::Unknown),
        }
    }
}

impl Pasted {
    /// A request from its method and target alone.
    pub(super) fn bare(method: &str, target: &str) -> Self {
        Self {
            text: format!("{method} {target} HTTP/1.1\r\n\r\n"),
            is_bare: true,
            needs_host: true,
            ..Self::default()
        }
    }

    fn address_only(method: &str, address: &str) -> Result<Self, ParsePastedError> {
        split_address(address).ok_or(ParsePastedError::Unknown)?;
        let is_bare = true;
        Self::made(method, address, &[], "").map(|pasted| Self { is_bare, ..pasted })
    }

    /// The request that a program sends which is told these.
    fn made(
        method: &str,
        address: &str,
        headers: &[(String, String)],
        body: &str,
    ) -> Result<Self, ParsePastedError> {
        // The scheme may be missing, and the host a variable.
        let parts = split_address(address).or_else(|| {
            let is_other = address.is_empty() || address.contains("://");
            split_address(&format!("http://{address}")).filter(|_| !is_other)
        });
        let (origin, authority, target) = parts.ok_or_else(|| unread(address))?;
        let has = |wanted: &str| {
            let mut names = headers.iter().map(|(name, _)| name);
            names.any(|name| name.eq_ignore_ascii_case(wanted))
        };
        let mut pasted = Self {
            origin,
            is_bare: false,
            needs_host: authority.is_empty() && !has("host"),
            ..Self::bare(method, &target)
        };
        let is_chunked = has("transfer-encoding");
        if !body.is_empty() && !is_chunked && !has("content-length") {
            pasted.insert("Content-Length", &body.len().to_string());
        }
        for (name, value) in headers.iter().rev() {
            pasted.insert(name, value);
        }
        if !authority.is_empty() && !has("host") {
            pasted.insert("Host", &authority);
        }
        pasted.text += &match (is_chunked, body.len()) {
            (false, _) => body.to_owned(),
            (true, 0) => "0\r\n\r\n".to_owned(),
            (true, length) => format!("{length:x}\r\n{body}\r\n0\r\n\r\n"),
        };
        Ok(pasted)
    }

    /// Adds a header in front of the others.
    pub(super) fn insert(&mut self, name: &str, value: &str) {
        let at = self.text.find('\n').map_or(0, |end| end + 1);
        self.text.insert_str(at, &format!("{name}: {value}\r\n"));
    }

    /// Adds the host if it is unknown.
    pub(super) fn complete(&mut self, public_url: &Origin) {
        if std::mem::take(&mut self.needs_host) {
            let url = public_url.to_string();
            self.insert("Host", url.split_once("://").map_or("", |(_, host)| host));
            self.noticed.push(("doctor_host", String::new()));
        }
    }

    /// Method and path, as far as the request line has them.
    pub(super) fn method_and_path(&self) -> (String, String) {
        let line = self.text.trim_start().lines().next().unwrap_or_default();
        let mut words = line.split(' ').map(str::to_owned);
        let (method, target) = (words.next(), words.next().unwrap_or_default());
        let path = target.split('?').next().unwrap_or_default().to_owned();
        (method.unwrap_or_default(), path)
    }
}

/// The origin of this host, if it has only what is text in every shell and language.
pub(super) fn origin(scheme: &str, host: &str) -> Option<Origin> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    let is_plain = host.bytes().all(is_plain);
    format!("{scheme}://{host}")
        .parse()
        .ok()
        .filter(|_| is_plain)
}

/// Origin, `Host` and target of an address, or of what is already a target; without the fragment, which no client sends.
fn split_address(address: &str) -> Option<(Option<Origin>, String, String)> {
    let address = address.split('#').next().unwrap_or_default();
    if address.starts_with('/') {
        return Some((None, String::new(), address.to_owned()));
    }
    let (scheme, rest) = address.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    if !["http", "https"].contains(&&*scheme) {
        return None;
    }
    let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let slash = if target.starts_with('/') { "" } else { "/" };
    // A variable stands for the host.
    let authority = if authority.starts_with('$') {
        ""
    } else {
        authority
    };
    let origin = origin(&scheme, authority);
    Some((origin, authority.to_owned(), format!("{slash}{target}")))
}

/// What `curl -v` prints of a request: its head.
fn transcript(text: &str) -> Option<Pasted> {
    let sent = text.lines().filter_map(|line| line.strip_prefix('>'));
    let sent: Vec<_> = sent
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    let begins = |line: &&str| {
        line.split_once(' ')
            .is_some_and(|(method, rest)| !method.contains(':') && rest.contains(" HTTP/"))
    };
    // Of several requests, the last one is the client's wish: the others were redirected.
    let begins = sent.iter().rposition(begins)?;
    let head = as_sent(&format!(
        "{}\n\n",
        sent[begins..].join("\n").trim_ascii_end()
    ));
    let hides_body = true;
    let noticed = head
        .noticed
        .into_iter()
        .filter(|(code, _)| *code != "doctor_completed");
    Some(Pasted {
        hides_body,
        noticed: noticed.collect(),
        ..head
    })
}

/// A request as it is sent. If none of its lines ends with CR, an editor has taken them away.
fn as_sent(text: &str) -> Pasted {
    let mut pasted = Pasted::default();
    let line = text.trim_start().lines().next().unwrap_or_default();
    let is_later = |version: &str| version.starts_with('2') || version.starts_with('3');
    let later = line
        .rsplit_once(" HTTP/")
        .filter(|(_, version)| is_later(version));
    let text = match later {
        // As the gateway writes its streams out.
        Some((start, _)) => {
            pasted.noticed.push(("doctor_http2", String::new()));
            text.replacen(line, &format!("{start} HTTP/1.1"), 1)
        }
        None => text.to_owned(),
    };
    if text.contains('\r') && later.is_none() {
        return Pasted { text, ..pasted };
    }
    let text = text.trim_start().replace("\r\n", "\n");
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    let has = |wanted: &str| {
        let mut names = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        names.any(|(name, _)| name.eq_ignore_ascii_case(wanted))
    };
    let mut lines = format!("{}\r\n", head.trim_ascii_end().replace('\n', "\r\n"));
    let body = match has("transfer-encoding") {
        true => body.replace('\n', "\r\n"),
        false => body.trim_end_matches('\n').to_owned(),
    };
    if !body.is_empty() && !has("transfer-encoding") && !has("content-length") {
        lines += &format!("Content-Length: {}\r\n", body.len());
    }
    if later.is_none() {
        pasted.noticed.push(("doctor_completed", String::new()));
    }
    let needs_host = later.is_some() && !has("host");
    Pasted {
        text: format!("{lines}\r\n{body}"),
        needs_host,
        ..pasted
    }
}

#[cfg(test)]
mod tests;
