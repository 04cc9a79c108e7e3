//! A common mistake: the version in the path, although a header names it. CONTRACT 5.

use signpost_protocol::{log_text, version::Version};

/// A path that begins with the name of a version.
#[derive(Debug)]
pub struct VersionInPath {
    /// The version, as sent.
    pub(crate) version: Box<str>,
    /// The path behind it, at most as long as a path in the log.
    pub(crate) path: Box<str>,
}

impl VersionInPath {
    /// The name of its hint: the key of its text.
    pub(crate) const HINT: &str = "hint_version_in_path";

    /// Recognises the name of this version, and of others as they are usually named: `v` and digits. A version does not
    /// know which others the gateway has.
    pub(crate) fn of(path: &str, own: &Version) -> Option<Self> {
        let (version, _) = path.strip_prefix('/')?.split_once('/')?;
        let is_numbered = |name: &str| {
            let digits = name.strip_prefix(['v', 'V']).unwrap_or_default();
            (1..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let is_version = version.eq_ignore_ascii_case(own.as_str()) || is_numbered(version);
        let rest = &path[1 + version.len()..];
        (is_version && rest.len() > 1).then(|| Self {
            version: version.into(),
            path: log_text::path(rest).into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_versions_name_before_a_path_is_recognised() {
        let own: Version = "beta".parse().unwrap();
        for (path, expected) in [
            ("/v1/login", Some(("v1", "/login"))),
            ("/V2/user/login", Some(("V2", "/user/login"))),
            ("/Beta/user", Some(("Beta", "/user"))),
            ("/v1", None),
            ("/v1/", None),
            ("/v/login", None),
            ("/v12345/login", None),
            ("/v1x/login", None),
            ("/x/v1/login", None),
            ("//v1/login", None),
            ("/gamma/login", None),
            ("/", None),
        ] {
            let found = VersionInPath::of(path, &own);
            let found = found.as_ref().map(|found| (&*found.version, &*found.path));
            assert_eq!(found, expected, "{path}");
        }
        let long = format!("/v1/{}", "x".repeat(4000));
        assert!(VersionInPath::of(&long, &own).unwrap().path.len() < 600);
    }
}
