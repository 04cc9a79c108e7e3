//! Where a request names its version, beside the header: the host, and the beginning of the path. CONTRACT 5.

use signpost_kit::config::{Read, Section};
use signpost_protocol::version::Version;

use crate::{config::readers::path, request::Target};

/// Limit of `hosts`.
const MAX_HOSTS: usize = 64;

/// The places of one version.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnPlaces {
    /// Without a slash at its end.
    prefix: Option<String>,
    /// In lower case, without a port.
    hosts: Vec<String>,
}

impl OwnPlaces {
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        let allowed = "a path of whole segments, for example \"/v2\"";
        let prefix = section.optional_by("path_prefix", allowed, prefix);
        let allowed = "host names without a port, for example \"v2.example.com\"";
        let hosts = section.list("hosts", &[], allowed, host)?;
        if hosts.len() > MAX_HOSTS {
            let found = format!("{} hosts", hosts.len());
            return Err(section.problem("hosts", &found, &format!("at most {MAX_HOSTS}")));
        }
        Ok(Self {
            prefix: prefix?,
            hosts,
        })
    }
}

fn prefix(text: &str) -> Option<String> {
    path(text).filter(|path| path == text && !path.ends_with('/'))
}

fn host(text: &str) -> Option<String> {
    let is_of_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
    // A colon belongs to an IPv6 address, which has brackets.
    let has_port = text.contains(':') && !text.ends_with(']');
    let is_host = !text.is_empty() && !has_port && text.bytes().all(is_of_host);
    is_host.then(|| text.to_ascii_lowercase())
}

/// The places of all versions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// Prefixes with the numbers of their versions; the longest first.
    prefixes: Vec<(String, usize)>,
    /// Hosts with the numbers of their versions.
    hosts: Vec<(String, usize)>,
}

/// What the places of a request say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// The number of the version that its host names.
    pub host: Option<usize>,
    /// The number of the version whose prefix its path has.
    pub prefix: Option<usize>,
}

impl Places {
    /// The places of all versions, with their numbers and names; each is of one version.
    pub(super) fn of<'v>(
        all: impl Iterator<Item = (usize, &'v Version, &'v OwnPlaces)>,
        root: &Section<'_>,
    ) -> Read<Self> {
        let (mut places, mut result) = (Self::default(), Ok(()));
        for (number, name, own) in all {
            let prefixes = own.prefix.iter();
            let prefixes = prefixes.map(|text| (text, "path_prefix", true));
            let hosts = own.hosts.iter().map(|text| (text, "hosts", false));
            for (text, key, is_prefix) in prefixes.chain(hosts) {
                let taken = match is_prefix {
                    true => &mut places.prefixes,
                    false => &mut places.hosts,
                };
                if taken.iter().any(|(known, _)| known == text) {
                    let key = format!("versions.{name}.{key}");
                    result = Err(root.problem(&key, &format!("\"{text}\" twice"), "each once"));
                }
                taken.push((text.clone(), number));
            }
        }
        places
            .prefixes
            .sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        result.map(|()| places)
    }

    /// Whether no version has any.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.prefixes.is_empty() && self.hosts.is_empty()
    }

    /// What the places of a request say. Takes the prefix off the target's compared path.
    pub(crate) fn find(&self, target: &mut Target<'_>) -> Placed {
        let host = without_port(target.host);
        let mut hosts = self.hosts.iter();
        let host = hosts.find(|(known, _)| host.eq_ignore_ascii_case(known));
        let mut prefixes = self.prefixes.iter();
        let prefix = prefixes.find(|(prefix, _)| {
            // As sent, too: these bytes are taken off.
            [target.path, target.compared()].iter().all(|path| {
                path.strip_prefix(&**prefix)
                    .is_some_and(|rest| rest.starts_with('/'))
            })
        });
        if let Some((prefix, _)) = prefix {
            // A head has fewer than 65,536 bytes.
            target.prefix = u16::try_from(prefix.len()).unwrap_or_default();
        }
        let number = |found: Option<&(String, usize)>| found.map(|(_, number)| *number);
        Placed {
            host: number(host),
            prefix: number(prefix),
        }
    }
}

/// A value of `Host` without its port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // A colon within brackets belongs to an IPv6 address.
        Some((host, port)) if !port.ends_with(']') => host,
        _ => host,
    }
}
