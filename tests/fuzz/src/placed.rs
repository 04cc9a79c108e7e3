//! Versions that a path or a host names.

use std::{env, fs, sync::OnceLock};

use signpost_proxy::measured::{Config, Head, HeadLimits, Placed, Versions, read_head};

use crate::query_and_body;

const LIMITS: HeadLimits = HeadLimits {
    bytes: 4096,
    headers: 20,
    query: 1024,
};

/// Prefix and hosts of each version.
const PLACES: [(&str, &str, &[&str]); 3] = [
    ("v1", "/v", &["a.example", "[2001:db8::1]"]),
    ("v2", "/v/2", &["b.example"]),
    ("v3", "/v/2/~x", &["[::]", "x"]),
];

/// Compares the version that host and target of the input's two lines name, and the path without its prefix.
///
/// # Panics
///
/// When two results differ.
pub fn placed(input: &[u8]) -> bool {
    let (host, target) = query_and_body(input);
    let Some(head) = head(host, target) else {
        return false;
    };
    let mut target = head.target();
    let placed = versions().place(&mut target);
    let sent = head.target();
    // The longest first.
    let mut places = PLACES.iter().rev();
    let prefix = places.find_map(|(name, prefix, _)| {
        let rest = sent.path.strip_prefix(prefix)?;
        rest.starts_with('/').then_some((*name, rest))
    });
    let host = naive_host(sent.host);
    let mut places = PLACES.iter();
    let host = places.find(|(.., hosts)| hosts.contains(&&*host));
    let expected = Placed {
        host: host.map(|(name, ..)| number(name)),
        prefix: prefix.map(|(name, _)| number(name)),
    };
    assert_eq!(placed, expected);
    let rest = prefix.map_or(sent.path, |(_, rest)| rest);
    // A path with its prefix is compared as it is without.
    let alone = self::head(b"g", rest.as_bytes()).expect("a path without a prefix is one");
    assert_eq!(target.compared(), alone.target().compared());
    assert_eq!(target.sent, sent.sent);
    expected != Placed::default()
}

fn head(host: &[u8], target: &[u8]) -> Option<Head> {
    let bytes = [b"GET ", target, b" HTTP/1.1\r\nHost: ", host, b"\r\n\r\n"].concat();
    // Otherwise the input is more than a host and a target.
    let is_one = bytes.windows(2).filter(|two| two == b"\r\n").count() == 3;
    let head = read_head(bytes, &LIMITS).ok().filter(|_| is_one)?;
    Some(head.head)
}

/// In lower case, without a port.
fn naive_host(host: &str) -> String {
    let end = match host.find(']') {
        Some(end) => end + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    host[..end].to_ascii_lowercase()
}

fn number(name: &str) -> usize {
    let mut versions = versions().iter();
    let position = versions.position(|version| version.name().as_str() == name);
    position.expect("it is configured")
}

fn versions() -> &'static Versions {
    static VERSIONS: OnceLock<Versions> = OnceLock::new();
    VERSIONS.get_or_init(|| {
        let file = env::temp_dir().join(format!("signpost-fuzz-{}-places", std::process::id()));
        let tables = PLACES.map(|(name, prefix, hosts)| {
            format!("[versions.{name}]\nbackend = '127.0.0.1:1'\npath_prefix = '{prefix}'\nhosts = {hosts:?}\n")
        });
        let key = "4283fefc63f0cd0e873a0000c6d07ef7";
        let toml = format!("prefix = 'Acme'\n[application]\nkey = '{key}'\n{}", tables.concat());
        fs::write(&file, toml).expect("temporary files can be written");
        let config = Config::load(&file).expect("it is valid");
        fs::remove_file(&file).expect("it was written");
        config.versions
    })
}
