//! What versions and routes take of requests, and where a request names its version.

use super::*;
use crate::request::{Method, Target};

/// The lines that report this version and further text.
fn reported(version: &str, further: &str) -> String {
    problems(&format!("{}{further}", file(version)))
}

#[rustfmt::skip] // A table: one mistake a line.
const MISTAKES: &[(&str, &str, &str, &str)] = &[
    ("methods = []", "methods", "an empty list", "GET, HEAD, POST, PUT, PATCH, DELETE"),
    ("methods = ['GET', 'OPTIONS']", "methods", "['GET', 'OPTIONS']", "GET, HEAD, POST, PUT, PATCH, DELETE"),
    ("methods = ['get']", "methods", "['get']", "GET, HEAD, POST, PUT, PATCH, DELETE"),
    ("methods = 'GET'", "methods", "'GET'", "GET, HEAD, POST, PUT, PATCH, DELETE"),
    ("methods = ['HEAD', 'POST']", "methods", "HEAD without GET", "HEAD beside GET"),
    ("bodies = 'xml'", "bodies", "'xml'", "\"form\", \"json\", \"any\""),
    ("bodies = ['json']", "bodies", "a list", "\"form\", \"json\", \"any\""),
    ("bodies = 'any'\nmax_body = 0", "max_body", "0", "1 to 1073741824"),
    ("bodies = 'any'\nmax_body = 1073741825", "max_body", "1073741825", "1 to 1073741824"),
    ("strip_sign = 'yes'", "strip_sign", "a string", "true or false"),
    ("response_seconds = 0", "response_seconds", "0", "1 to 86400"),
    ("stream_seconds = 86401", "stream_seconds", "86401", "1 to 86400"),
    ("path_prefix = '/v2/'", "path_prefix", "'/v2/'", "whole segments"),
    ("path_prefix = '/'", "path_prefix", "'/'", "whole segments"),
    ("path_prefix = 'v2'", "path_prefix", "'v2'", "whole segments"),
    ("path_prefix = '/%76'", "path_prefix", "'/%76'", "whole segments"),
    ("path_prefix = '/a//b'", "path_prefix", "'/a//b'", "whole segments"),
    ("path_prefix = '/a/../b'", "path_prefix", "'/a/../b'", "whole segments"),
    ("path_prefix = '/a;b'", "path_prefix", "'/a;b'", "whole segments"),
    ("path_prefix = '/a?b'", "path_prefix", "'/a?b'", "whole segments"),
    ("path_prefix = ''", "path_prefix", "''", "whole segments"),
    ("hosts = ['a.example:80']", "hosts", "['a.example:80']", "without a port"),
    ("hosts = ['[::1]:80']", "hosts", "['[::1]:80']", "without a port"),
    ("hosts = ['::1']", "hosts", "['::1']", "without a port"),
    ("hosts = ['https://a.example']", "hosts", "['https://…", "without a port"),
    ("hosts = ['*.example']", "hosts", "['*.example']", "without a port"),
    ("hosts = ['a.example/x']", "hosts", "['a.example/x']", "without a port"),
    ("hosts = ['']", "hosts", "['']", "without a port"),
    ("hosts = ['a.example', 'A.Example']", "hosts", "\"a.example\" twice", "each once"),
];

#[test]
fn each_mistake_is_reported_with_key_found_and_allowed() {
    let mut missing = Vec::new();
    for (lines, key, found, allowed) in MISTAKES {
        let report = reported(&format!("backend = '127.0.0.1:1'\n{lines}"), "");
        let is_reported = report.lines().any(|line| {
            let begins = line.contains(".toml:");
            let names = line.contains(&format!("versions.v1.{key}: found {found}; allowed: "));
            begins
                && names
                && line
                    .split("allowed: ")
                    .nth(1)
                    .is_some_and(|rest| rest.contains(allowed))
        });
        if !is_reported {
            missing.push(format!("{lines}: {report}"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn a_route_reports_its_own_mistakes() {
    let report = reported(
        "backend = '127.0.0.1:1'\nmethods = ['GET', 'PUT']\nbodies = 'json'\n\
         routes = [{ path = '/x', backend = '127.0.0.1:2', methods = ['HEAD'], max_body = -1, path_prefix = '/y' }]",
        "",
    );
    for key in [
        "methods: found HEAD without GET",
        "max_body: found -1",
        "path_prefix: unknown key",
    ] {
        let is_reported = report
            .lines()
            .any(|line| line.contains("routes") && line.contains(key));
        assert!(is_reported, "{key}: {report}");
    }
}

#[test]
fn a_prefix_and_a_host_are_one_versions() {
    let two = "[versions.v2]\nbackend = '127.0.0.1:2'\n";
    let own = "backend = '127.0.0.1:1'\npath_prefix = '/a'\nhosts = ['A.example']";
    for (second, key) in [
        ("path_prefix = '/a'", "path_prefix"),
        ("hosts = ['a.EXAMPLE']", "hosts"),
    ] {
        let report = reported(own, &format!("{two}{second}\n"));
        assert!(
            report.contains(&format!("versions.v2.{key}: found")),
            "{report}"
        );
        assert!(report.contains("twice"), "{report}");
    }
    load(&format!("{}{two}path_prefix = '/A'\n", file(own))).unwrap();
    let hosts: Vec<_> = (0..65).map(|number| format!("h{number}")).collect();
    let report = reported(&format!("backend = '127.0.0.1:1'\nhosts = {hosts:?}"), "");
    assert!(
        report.contains("found 65 hosts; allowed: at most 64"),
        "{report}"
    );
}

#[test]
fn a_folder_for_bodies_must_exist_if_one_is_needed() {
    let gone = "[spool]\nfolder = '/nonexistent'\n";
    for fits in ["", "\nbodies = 'any'", "\nmax_body = 1000000"] {
        load(&format!(
            "{}{gone}",
            file(&format!("backend = '127.0.0.1:1'{fits}"))
        ))
        .unwrap();
    }
    let report = reported(
        "backend = '127.0.0.1:1'\nbodies = 'any'\nmax_body = 65537",
        gone,
    );
    assert!(
        report.contains("spool.folder: found '/nonexistent'"),
        "{report}"
    );
    let report = reported(
        "backend = '127.0.0.1:1'",
        "[spool]\nbytes = 1\nfolder = ''\n",
    );
    for key in ["spool.bytes: found 1", "spool.folder: found ''"] {
        assert!(report.contains(key), "{report}");
    }
}

/// The rules for a path of v1, with this common route.
fn rules(version: &str, common: &str, path: &str) -> RequestRules {
    let versions = versions(&format!(
        "{common}\n[versions.v1]\nbackend = '127.0.0.1:1'\n{version}"
    ));
    let version = versions.default();
    *version.rules(version.routed(path).unwrap_or(BackendIndex::OWN))
}

#[test]
fn a_route_has_the_rules_of_its_version_but_for_its_own() {
    let version = "methods = ['GET', 'PUT']\nbodies = 'json'\nmax_body = 9\nstrip_sign = true\nresponse_seconds = 7\n\
                   routes = [{ path = '/r', backend = '127.0.0.1:2', bodies = 'any', stream_seconds = 8 }]";
    let common = "routes = [{ path = '/c', backend = '127.0.0.1:3', methods = ['DELETE'], strip_sign = false }]";
    let own = rules(version, common, "/x");
    let methods = Methods::of(&[Method::Get, Method::Put]);
    assert_eq!(
        (own.methods, own.bodies, own.max_body),
        (methods, Bodies::Json, 9)
    );
    assert_eq!(
        (own.strip_sign, own.response, own.stream),
        (true, Some(Duration::from_secs(7)), None)
    );
    let stream = Some(Duration::from_secs(8));
    assert_eq!(
        rules(version, common, "/r"),
        RequestRules {
            bodies: Bodies::Any,
            stream,
            ..own
        }
    );
    let methods = Methods::of(&[Method::Delete]);
    assert_eq!(
        rules(version, common, "/c"),
        RequestRules {
            methods,
            strip_sign: false,
            ..own
        }
    );
    assert_eq!(rules("", "", "/x"), RequestRules::USUAL);
}

#[test]
fn the_longest_prefix_counts_and_only_whole_segments() {
    let versions = versions(
        "[versions.v1]\nbackend = '127.0.0.1:1'\nhosts = ['[2001:DB8::1]', 'a.example']\n\
         [versions.v2]\nbackend = '127.0.0.1:2'\npath_prefix = '/a'\n\
         [versions.v3]\nbackend = '127.0.0.1:3'\npath_prefix = '/a/b'\n",
    );
    for (path, prefix, rest) in [
        ("/a/x", Some(1), "/x"),
        ("/a/", Some(1), "/"),
        ("/a/b", Some(1), "/b"),
        ("/a/b/", Some(2), "/"),
        ("/a/b/c?d", Some(2), "/c"),
        ("/a/bc/d", Some(1), "/bc/d"),
        ("/a", None, "/a"),
        ("/ab/c", None, "/ab/c"),
        ("/A/x", None, "/A/x"),
        ("/x/a/y", None, "/x/a/y"),
    ] {
        let mut target = Target::parse(path.as_bytes()).unwrap();
        let placed = versions.place(&mut target);
        assert_eq!((placed.host, placed.prefix), (None, prefix), "{path}");
        assert_eq!(
            (target.compared(), target.path_at_backend()),
            (rest, rest),
            "{path}"
        );
        assert_eq!(target.sent, path);
    }
    for (host, number) in [
        ("a.example", Some(0)),
        ("A.EXAMPLE:8080", Some(0)),
        ("a.example:", Some(0)),
        ("[2001:db8::1]", Some(0)),
        ("[2001:DB8::1]:443", Some(0)),
        ("a.example.", None),
        ("b.a.example", None),
        ("[2001:db8::2]", None),
        ("", None),
    ] {
        let mut target = Target {
            host,
            ..Target::parse(b"/a/x").unwrap()
        };
        let placed = versions.place(&mut target);
        assert_eq!((placed.host, placed.prefix), (number, Some(1)), "{host}");
    }
}
