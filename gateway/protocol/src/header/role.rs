//! The roles of request headers: how the gateway handles each.

use smallvec::SmallVec;

/// Headers with roles of their own. They come before the headers of [`LISTED`].
const HANDLED: [(HeaderRole, &str); 16] = [
    (HeaderRole::Host, "host"),
    (HeaderRole::ContentType, "content-type"),
    (HeaderRole::ContentLength, "content-length"),
    (HeaderRole::ContentEncoding, "content-encoding"),
    (HeaderRole::Connection, "connection"),
    (HeaderRole::Expect, "expect"),
    (HeaderRole::RequestId, "x-request-id"),
    (HeaderRole::Traceparent, "traceparent"),
    (HeaderRole::Tracestate, "tracestate"),
    (HeaderRole::ForwardedFor, "x-forwarded-for"),
    (HeaderRole::ForwardedProto, "x-forwarded-proto"),
    (HeaderRole::ForwardedHost, "x-forwarded-host"),
    (HeaderRole::Removed, "x-forwarded-prefix"),
    (HeaderRole::Forwarded, "forwarded"),
    (HeaderRole::Cookie, "cookie"),
    (HeaderRole::Upgrade, "upgrade"),
];

/// Headers that are removed, and those that only a trusted proxy may send: a line for each.
const LISTED: &str = include_str!("listed.txt");

/// All known names with their roles, in lower case; `*` at the end of a name stands for any rest. Of two entries for a name
/// the first one counts. CONTRACT 1 has the same names.
fn known() -> impl Iterator<Item = (HeaderRole, &'static str)> {
    let listed = LISTED
        .lines()
        .filter_map(|line| match line.split_once(' ')? {
            ("removed", name) => Some((HeaderRole::Removed, name)),
            ("proxy", name) => Some((HeaderRole::Proxy, name)),
            // A comment: a test reads each line.
            _ => None,
        });
    HANDLED.into_iter().chain(listed)
}

/// The role of a request header: how the gateway handles it. CONTRACT 1 and 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderRole {
    /// The user's credential.
    Authorization,
    /// The application's ident.
    App,
    /// The language of texts.
    Language,
    /// The requested version.
    Version,
    /// The time of a signature in headers. It ends at the gateway, as the next two.
    Time,
    /// A signature in headers.
    Sign,
    /// The nonce of a signature in headers.
    Nonce,
    /// `Host`; the gateway sets it in the request to the backend.
    Host,
    /// `Content-Type`.
    ContentType,
    /// `Content-Length`; the gateway sets it in the request to the backend.
    ContentLength,
    /// `Content-Encoding`.
    ContentEncoding,
    /// `Connection`.
    Connection,
    /// `Expect`.
    Expect,
    /// `X-Request-Id`; the gateway sets its own.
    RequestId,
    /// `traceparent`; the gateway sets its own.
    Traceparent,
    /// `tracestate`; passed only with a trusted proxy's `traceparent`.
    Tracestate,
    /// `X-Forwarded-For`; the gateway sets its own.
    ForwardedFor,
    /// `X-Forwarded-Proto`; the gateway sets its own.
    ForwardedProto,
    /// `X-Forwarded-Host`; the gateway sets its own.
    ForwardedHost,
    /// `Forwarded` (RFC 7239); the gateway extends a trusted proxy's.
    Forwarded,
    /// Another header about the origin of a request or its trace: passed only from a trusted proxy.
    Proxy,
    /// `Cookie`; without Signpost's own cookies that the backend may not have.
    Cookie,
    /// `Upgrade`, which ends at the gateway.
    Upgrade,
    /// Always removed: internal, hop-by-hop, an override of what was verified, an address, a scheme or an identity by
    /// another server, or a look-alike with `_`.
    Removed,
    /// Any other: passed unchanged.
    Ordinary,
}

impl HeaderRole {
    /// Whether the header is passed to the backend unchanged.
    #[must_use]
    pub fn passes(self, from_trusted_proxy: bool) -> bool {
        match self {
            Self::Authorization
            | Self::App
            | Self::Language
            | Self::Version
            | Self::ContentType
            | Self::ContentEncoding
            | Self::Cookie
            | Self::Ordinary => true,
            Self::Proxy => from_trusted_proxy,
            _ => false,
        }
    }
}

/// The names with a role, by their first and third letters: few have the same ones, so a lookup compares one or two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Roles {
    by_letters: Vec<Vec<KnownName>>,
}

/// A name with a role, or the beginning of such names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KnownName {
    text: Box<str>,
    is_beginning: bool,
    role: HeaderRole,
}

/// Names up to this length cost no allocation.
const INLINE_NAME: usize = 64;

impl Roles {
    /// The roles of all [`known`] names.
    pub(super) fn known() -> Self {
        let mut roles = Self {
            by_letters: vec![Vec::new(); 1 << 10],
        };
        for (role, name) in known() {
            roles.add(name, role);
        }
        roles
    }

    pub(super) fn add(&mut self, name: &str, role: HeaderRole) {
        let (text, is_beginning) = match name.strip_suffix('*') {
            Some(beginning) => (beginning, true),
            None => (name, false),
        };
        self.by_letters[place(text.as_bytes())].push(KnownName {
            text: text.into(),
            is_beginning,
            role,
        });
    }

    pub(super) fn role_of(&self, name: &[u8]) -> HeaderRole {
        if !name.contains(&b'_') {
            return self.role_of_spelled(name);
        }
        // Some servers read `_` as `-`: the look-alike of a name with a role must not pass.
        let mut normal: SmallVec<[u8; INLINE_NAME]> = SmallVec::from_slice(name);
        for byte in &mut normal {
            if *byte == b'_' {
                *byte = b'-';
            }
        }
        match self.role_of_spelled(&normal) {
            HeaderRole::Ordinary => HeaderRole::Ordinary,
            _ => HeaderRole::Removed,
        }
    }

    /// The role of a name as it is spelled, in any letter case.
    fn role_of_spelled(&self, name: &[u8]) -> HeaderRole {
        let alike = self.by_letters[place(name)].iter();
        let mut alike = alike.filter(|known| known.includes(name));
        alike
            .next()
            .map_or(HeaderRole::Ordinary, |known| known.role)
    }
}

impl KnownName {
    fn includes(&self, name: &[u8]) -> bool {
        let text = self.text.as_bytes();
        if self.is_beginning {
            name.len() >= text.len() && name[..text.len()].eq_ignore_ascii_case(text)
        } else {
            name.eq_ignore_ascii_case(text)
        }
    }
}

/// The place of a name in [`Roles`], the same in any letter case. Every beginning has the three letters that it depends
/// on.
fn place(name: &[u8]) -> usize {
    // Five bits of a letter are the same in both cases. Digits and `-` share places with letters, at the price of a
    // comparison.
    let letter = |index: usize| usize::from(name.get(index).copied().unwrap_or_default() & 31);
    letter(0) << 5 | letter(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_comment_or_a_role_with_a_name() {
        for line in LISTED.lines().filter(|line| !line.is_empty()) {
            let (role, name) = line.split_once(' ').unwrap();
            let is_name = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'$' | b'*');
            let is_entry = matches!(role, "removed" | "proxy") && name.bytes().all(is_name);
            assert!(role == "#" || is_entry, "{line}");
        }
        assert_eq!(known().count(), 176);
    }

    #[test]
    fn the_contract_names_every_known_header() {
        let contract = include_str!("../../../../backends/CONTRACT.md").to_lowercase();
        let missing: Vec<_> = known()
            .map(|(_, name)| name)
            .filter(|name| !contract.contains(&format!("`{name}`")))
            .collect();
        assert_eq!(missing, [""; 0]);
    }

    #[test]
    fn the_first_entry_for_a_name_counts() {
        let roles = Roles::known();
        for (name, role) in [
            ("X-Forwarded-For", HeaderRole::ForwardedFor),
            ("x-forwarded-email", HeaderRole::Removed),
            ("X-FORWARDED-TLS-CLIENT-CERT-INFO", HeaderRole::Removed),
            ("x-forwarded-port", HeaderRole::Proxy),
            ("x-forwarded-", HeaderRole::Proxy),
            ("x-gateway-", HeaderRole::Removed),
            ("$WSRU", HeaderRole::Removed),
            ("b3", HeaderRole::Proxy),
            ("B3", HeaderRole::Proxy),
            ("X_B3_TraceId", HeaderRole::Removed),
            ("SSL_CLIENT_S_DN", HeaderRole::Removed),
            ("content_length", HeaderRole::Removed),
            ("x-client-version", HeaderRole::Ordinary),
            ("x-auth-token", HeaderRole::Ordinary),
            ("x-b3", HeaderRole::Ordinary),
            ("x", HeaderRole::Ordinary),
            ("", HeaderRole::Ordinary),
        ] {
            assert_eq!(roles.role_of(name.as_bytes()), role, "{name}");
        }
        for (role, name) in known() {
            let name = name.replace('*', "any");
            assert_eq!(roles.role_of(name.as_bytes()), role, "{name}");
        }
    }
}
