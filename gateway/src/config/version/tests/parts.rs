//! Routes and canaries of a version, and every invalid form.

use super::*;

/// The versions of a file whose version v1 has these further lines.
fn with(further: &str) -> Versions {
    versions(&format!(
        "[versions.v1]\nbackend = '127.0.0.1:7001'\n{further}\n"
    ))
}

fn routed(versions: &Versions, path: &str) -> Option<String> {
    let backend = versions.default().routed(path);
    backend.map(|backend| backend.name.to_string())
}

const ROUTES: &str = "[[versions.v1.routes]]\npath = '/a/'\nbackend = '127.0.0.1:1'\n\
                      [[versions.v1.routes]]\npath = '/a/b/c/'\nbackend = '127.0.0.1:2'\n\
                      [[versions.v1.routes]]\npath = '/a/b/'\nbackend = '127.0.0.1:3'\n\
                      [[versions.v1.routes]]\npath = '/a/b'\nbackend = '127.0.0.1:4'\n";

#[test]
fn the_longest_route_wins_byte_for_byte() {
    let versions = with(ROUTES);
    for (path, route) in [
        ("/a/", Some("/a/")),
        ("/a/x", Some("/a/")),
        ("/a/b", Some("/a/b")),
        ("/a/b/", Some("/a/b/")),
        ("/a/b/c", Some("/a/b/")),
        ("/a/b/c/", Some("/a/b/c/")),
        ("/a/b/c/d", Some("/a/b/c/")),
        ("/a/bc", Some("/a/")),
        // Paths are never normalized.
        ("/a//b/c/", Some("/a/")),
        ("/a/b%2Fc/", Some("/a/")),
        ("/a/./b/", Some("/a/")),
        ("/a/b/../../x", Some("/a/b/")),
        ("/%61/b/", None),
        ("//a/b/", None),
        ("/a", None),
        ("/A/", None),
        ("/", None),
    ] {
        let expected = route.map(|route| format!("v1 {route}"));
        assert_eq!(routed(&versions, path), expected, "{path}");
    }
}

#[test]
fn every_backend_has_a_number_and_a_name() {
    let versions = with(&format!(
        "{ROUTES}[[versions.v1.canaries]]\nname = 'next'\npercent = 5\nbackend = '127.0.0.1:5'\n\
         [versions.v2]\nbackend = '127.0.0.1:6'"
    ));
    let names: Vec<_> = versions
        .backends()
        .map(|one| one.name.to_string())
        .collect();
    let expected = [
        "v1",
        "v1 (canary next)",
        "v1 /a/",
        "v1 /a/b/c/",
        "v1 /a/b/",
        "v1 /a/b",
        "v2",
    ];
    assert_eq!(names, expected);
    for (number, backend) in versions.backends().enumerate() {
        assert_eq!(backend.number, number);
        let found = versions.backends().position(|one| one.name == backend.name);
        assert_eq!((found, backend.number), (Some(number), number));
    }
    assert_eq!(versions.iter().count(), 2);
}

#[test]
fn canaries_share_the_places_in_the_order_of_the_file() {
    let canary = |name: &str, percent: u8| {
        format!(
            "[[versions.v1.canaries]]\nname = '{name}'\npercent = {percent}\nbackend = '127.0.0.1:1'\n"
        )
    };
    let count = |toml: String, name: &str| {
        let versions = with(&toml);
        let at = |place| {
            versions
                .default()
                .canary_at(place)
                .map(|one| one.name.to_string())
        };
        let name = format!("v1 (canary {name})");
        (0..100)
            .filter(|place| at(*place).as_deref() == Some(&*name))
            .collect::<Vec<u8>>()
    };
    let both = || canary("one", 5) + &canary("other", 20);
    assert_eq!(count(both(), "one"), (0..5).collect::<Vec<_>>());
    assert_eq!(count(both(), "other"), (5..25).collect::<Vec<_>>());
    // A share that grows keeps its places.
    assert_eq!(count(canary("one", 6), "one"), (0..6).collect::<Vec<_>>());
    assert_eq!(count(canary("one", 0), "one"), Vec::<u8>::new());
    assert_eq!(
        count(canary("one", 100), "one"),
        (0..100).collect::<Vec<_>>()
    );
}

#[test]
fn a_canary_is_checked_by_default() {
    let versions = with(
        "[[versions.v1.canaries]]\nname = 'a'\npercent = 1\nbackend = '127.0.0.1:1'\n\
         [[versions.v1.canaries]]\nname = 'b'\npercent = 1\nbackend = '127.0.0.1:1'\nhealth.active = false\n",
    );
    let is_fixed: Vec<_> = versions
        .backends()
        .map(|one| one.upstream.fixed.is_some())
        .collect();
    assert_eq!(is_fixed, [true, false, true]);
}

#[test]
fn every_problem_of_a_route_or_canary_is_reported() {
    let many = "{ path = '/x', backend = 'a:1' }, ".repeat(257);
    for (lines, expected) in [
        (
            "routes = [{ path = '/x' }]",
            "routes[0].backend: missing; allowed: an IP address",
        ),
        (
            "routes = [{ backend = 'a:1' }]",
            "routes[0].path: missing; allowed: a path, for example",
        ),
        (
            "routes = [{ path = 'x', backend = 'a:1' }]",
            "routes[0].path: found 'x'; allowed: a path",
        ),
        (
            "routes = [{ path = '/x?y', backend = 'a:1' }]",
            "routes[0].path: found '/x?y'; allowed: a path",
        ),
        (
            "routes = [{ path = '/x', backend = 'a:1' }, { path = '/x', backend = 'b:1' }]",
            "routes[1]: found \"/x\" twice; allowed: each path once",
        ),
        (
            "routes = [{ path = '/x', backend = '127.0.0.1:8080' }]",
            "routes[0].backend: found '127.0.0.1:8080', where the gateway itself listens",
        ),
        (
            "routes = [{ path = '/x', backend = 'a:1', account = 'yes' }]",
            "routes[0].account: found 'yes'; allowed: \"none\", \"optional\", \"required\"",
        ),
        (
            "routes = [{ path = '/x', backend = 'a:1', acount = 'none' }]",
            "routes[0].acount: unknown key; did you mean account?",
        ),
        (
            "routes = '/x'",
            "routes: found a string; allowed: at most 256 tables [[versions.v1.routes]]",
        ),
        (
            &*format!("routes = [{many}]"),
            "routes: found 257 tables; allowed: at most 256",
        ),
        (
            "canaries = [{ percent = 1, backend = 'a:1' }]",
            "canaries[0].name: missing",
        ),
        (
            "canaries = [{ name = 'a b', percent = 1, backend = 'a:1' }]",
            "canaries[0].name: found 'a b'",
        ),
        (
            "canaries = [{ name = 'a', backend = 'a:1' }]",
            "canaries[0].percent: missing; allowed: a whole number",
        ),
        (
            "canaries = [{ name = 'a', percent = 101, backend = 'a:1' }]",
            "canaries[0].percent: found 101; allowed: a whole number from 0 to 100",
        ),
        (
            "canaries = [{ name = 'a', percent = 60, backend = 'a:1' }, { name = 'b', percent = 41, backend = 'b:1' }]",
            "canaries: found 101 percent in all; allowed: at most 100 percent in all",
        ),
        (
            "canaries = [{ name = 'a', percent = 1, backend = 'a:1' }, { name = 'A', percent = 1, backend = 'b:1' }]",
            "canaries[1]: found \"a\" twice; allowed: each name once",
        ),
        (
            "sticky_by = 'user'",
            "sticky_by: found 'user'; allowed: \"client\", \"app\"",
        ),
    ] {
        let report = problems(&file(&format!("backend = '127.0.0.1:7001'\n{lines}")));
        let expected = format!(": versions.v1.{expected}");
        assert!(report.contains(&expected), "{expected} in {report}");
        assert_eq!(report.lines().count(), 1, "{report}");
    }
}

#[test]
fn what_has_no_effect_is_warned_of() {
    for (lines, expected) in [
        (
            "sticky_by = 'app'",
            "versions.v1.sticky_by has no effect: there are no canaries",
        ),
        (
            "routes = [{ path = '/x', backend = '127.0.0.1:1', balance = 'hash-client' }]",
            "versions.v1.routes[0].balance has no effect: there is one address",
        ),
        (
            "sticky_by = 'app'\ncanaries = [{ name = 'a', percent = 5, backend = '127.0.0.1:1' }]",
            "versions.v1.sticky_by = \"app\" with a single application",
        ),
    ] {
        let toml = file(&format!("backend = '127.0.0.1:7001'\n{lines}"));
        let warnings = load(&toml).unwrap().warnings().join("\n");
        assert!(warnings.contains(expected), "{expected} in {warnings}");
    }
}
