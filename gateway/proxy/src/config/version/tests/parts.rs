//! Routes and canaries of a version, and every invalid form.

use super::*;

/// The versions of a file whose version v1 has these further lines.
fn with(further: &str) -> Versions {
    versions(&format!(
        "[versions.v1]\nbackend = '127.0.0.1:7001'\n{further}\n"
    ))
}

fn routed(versions: &Versions, path: &str) -> Option<String> {
    let version = versions.default();
    let index = version.routed(path)?;
    Some(version.backend(index).name.to_string())
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

const COMMON: &str = "[versions.v1]\nbackend = '127.0.0.1:1'\n\
    routes = [{ path = '/a/', backend = '127.0.0.1:2' }, { path = '/b', backend = '127.0.0.1:3' }]\n\
    [versions.v2]\nbackend = '127.0.0.1:4'\n\
    [versions.v3]\nbackend = '127.0.0.1:5'\n\
    [[routes]]\npath = '/a/'\nbackend = '127.0.0.1:6'\n\
    [[routes]]\npath = '/a/b/**'\nbackend = '127.0.0.1:7'\naccount = 'required'\n\
    [[routes]]\npath = '/c'\nversions = ['v3', 'v2', 'V3']\nbackend = '127.0.0.1:8'\n\
    [[routes]]\npath = '/c'\nversions = ['v1']\nbackend = '127.0.0.1:9'\n";

#[test]
fn a_common_route_is_one_backend_of_its_versions() {
    let versions = versions(COMMON);
    for (path, of_v1, of_v2, of_v3) in [
        ("/a/x", "v1 /a/", "/a/", "/a/"),
        ("/a/b", "/a/b/**", "/a/b/**", "/a/b/**"),
        ("/a/b/c", "/a/b/**", "/a/b/**", "/a/b/**"),
        ("/a/bc", "v1 /a/", "/a/", "/a/"),
        ("/b", "v1 /b", "", ""),
        ("/c", "/c (v1)", "/c (v2, v3)", "/c (v2, v3)"),
    ] {
        let routed = ["v1", "v2", "v3"].map(|name| {
            let version = versions.named(name.as_bytes()).unwrap();
            let routed = version.routed(path).map(|index| version.backend(index));
            routed
                .map(|backend| backend.name.to_string())
                .unwrap_or_default()
        });
        assert_eq!(routed, [of_v1, of_v2, of_v3], "{path}");
    }
    let of = |name: &str| {
        let version = versions.named(name.as_bytes()).unwrap();
        Arc::clone(version.backend(version.routed("/a/b").unwrap()))
    };
    assert!(Arc::ptr_eq(&of("v1"), &of("v3")));
    assert_eq!(of("v1").account.check, AccountCheck::Required);
    let expected = [
        "v1",
        "v1 /a/",
        "v1 /b",
        "v2",
        "v3",
        "/a/",
        "/a/b/**",
        "/c (v2, v3)",
        "/c (v1)",
    ];
    assert_numbered(&versions, &expected);
}

#[test]
fn every_problem_of_a_common_route_is_reported() {
    for (route, expected) in [
        ("path = '/x'", "[0].backend: missing"),
        (
            "path = '/x'\nbackend = 'a:1'\nversions = []",
            "[0].versions: found an empty list; allowed: at least one version",
        ),
        (
            "path = '/x'\nbackend = 'a:1'\nversions = ['v1', 'v9']",
            "[0].versions: found ['v1', 'v9']; allowed: a list of versions with a table: v1",
        ),
        (
            "path = '/x'\nbackend = 'a:1'\nversions = ['v1']\n[[routes]]\npath = '/x'\nbackend = 'b:1'",
            "[1]: found \"/x\" twice for v1; allowed: each path once",
        ),
        (
            "path = '/x/**/y'\nbackend = 'a:1'",
            "[0].path: found '/x/**/y'; allowed: a path",
        ),
    ] {
        let report = problems(&format!("{MINIMAL}[[routes]]\n{route}\n"));
        let expected = format!(": routes{expected}");
        assert!(report.contains(&expected), "{expected} in {report}");
        assert_eq!(report.lines().count(), 1, "{report}");
    }
}

#[test]
fn a_common_route_that_no_version_uses_is_warned_of() {
    let warned = |further: &str| {
        let versions =
            "backend = '127.0.0.1:7001'\nroutes = [{ path = '/x', backend = '127.0.0.1:1' }]";
        let common = "[[routes]]\npath = '/x'\nbackend = '127.0.0.1:2'\n";
        let warnings = load(&format!("{}{common}{further}", file(versions)))
            .unwrap()
            .warnings();
        warnings.contains(
            &"routes[0] has no effect: each of its versions has its own route for /x".to_owned(),
        )
    };
    assert!(warned(""));
    assert!(!warned("[versions.v2]\nbackend = '127.0.0.1:3'\n"));
}

/// A random secret.
fn secret(first: char) -> String {
    format!("{first}a4283efc63f0cd0e873a0000c6d07ef7")
}

#[test]
fn the_nearest_secret_is_a_backends() {
    let secret_of = |key: char| format!("gateway_secret = '{}'\n", secret(key));
    // Copies may go to a program that is not trusted: only their own table gives it a secret.
    for (own, expected) in [(String::new(), None), (secret_of('c'), Some(secret('c')))] {
        let toml = format!(
            "prefix = 'Acme'\n{}[applications]\n[versions.v1]\nbackend = '127.0.0.1:1'\n{}\
             [versions.v1.shadow]\nto = 'v2'\npaths = ['/x']\nbackend = '127.0.0.1:3'\n{own}\
             [versions.v2]\nbackend = '127.0.0.1:2'\n",
            secret_of('a'),
            secret_of('b')
        );
        let config = load(&toml).unwrap();
        let shadow = config.versions.named(b"v1").unwrap().shadow().unwrap();
        let found = &shadow.backend.as_ref().unwrap().secret;
        let found = found.as_ref().map(|secret| secret.expose().to_owned());
        assert_eq!(found, expected);
    }
    let (root, of_v1, of_route) = (secret_of('a'), secret_of('b'), secret_of('c'));
    let versions = versions(&format!(
        "{root}[versions.v1]\nbackend = '127.0.0.1:1'\n{of_v1}\
         [[versions.v1.canaries]]\nname = 'x'\npercent = 1\nbackend = '127.0.0.1:2'\n\
         [[versions.v1.canaries]]\nname = 'y'\npercent = 1\nbackend = '127.0.0.1:2'\n{of_route}\
         [[versions.v1.routes]]\npath = '/x'\nbackend = '127.0.0.1:3'\n\
         [[versions.v1.routes]]\npath = '/y'\nbackend = '127.0.0.1:3'\n{of_route}\
         [versions.v2]\nbackend = '127.0.0.1:4'\n\
         [[routes]]\npath = '/z'\nbackend = '127.0.0.1:5'\n{of_route}"
    ));
    let secrets: Vec<_> = versions
        .backends()
        .map(|one| {
            format!(
                "{} {}",
                one.name,
                &one.secret.as_ref().unwrap().expose()[..1]
            )
        })
        .collect();
    let expected = [
        "v1 b",
        "v1 (canary x) b",
        "v1 (canary y) c",
        "v1 /x a",
        "v1 /y c",
        "v2 a",
        "/z c",
    ];
    assert_eq!(secrets, expected);
    assert!(!format!("{versions:?}").contains("4283efc63"));
    // A secret that no backend gets.
    let all = file(&format!("backend = '127.0.0.1:7001'\n{of_v1}"));
    let warnings = load(&format!("{root}{all}")).unwrap().warnings();
    let is_unused = |line: &String| line.contains("gateway_secret has no effect");
    assert!(warnings.iter().any(is_unused), "{warnings:?}");
    assert!(!load(&all).unwrap().warnings().iter().any(is_unused));
}

#[test]
fn a_backend_on_another_machine_needs_the_secret_that_it_gets() {
    let route = "routes = [{ path = '/x', backend = '192.0.2.1:1' }]";
    let of_v1 = format!("gateway_secret = '{}'", secret('b'));
    let toml = file(&format!("backend = '192.0.2.2:7001'\n{of_v1}\n{route}"));
    let warnings = load(&toml).unwrap().warnings().join("\n");
    for expected in [
        "gateway_secret is not set for v1 /x, on another machine",
        "gateway_secret crosses the network in clear text to v1: ",
    ] {
        assert!(warnings.contains(expected), "{expected}: {warnings}");
    }
    for table in [
        "canaries = [{ name = 'a', percent = 1, ",
        "routes = [{ path = '/x', ",
    ] {
        let list = format!("{table}backend = '127.0.0.1:1', gateway_secret = 'hush' }}]");
        let report = problems(&file(&format!("backend = '127.0.0.1:2'\n{list}")));
        assert!(
            report.contains("[0].gateway_secret: found a weak secret"),
            "{report}"
        );
        assert!(!report.contains("hush"), "{report}");
    }
}

/// The backends have these names, each once, and are numbered in this order.
fn assert_numbered(versions: &Versions, expected: &[&str]) {
    let names: Vec<_> = versions
        .backends()
        .map(|one| one.name.to_string())
        .collect();
    assert_eq!(names, expected);
    for (number, backend) in versions.backends().enumerate() {
        let found = versions.backends().position(|one| one.name == backend.name);
        assert_eq!((found, backend.number), (Some(number), number));
    }
}

#[test]
fn every_backend_has_a_number_and_a_name() {
    let versions = with(&format!(
        "{ROUTES}[[versions.v1.canaries]]\nname = 'next'\npercent = 5\nbackend = '127.0.0.1:5'\n\
         [versions.v2]\nbackend = '127.0.0.1:6'"
    ));
    let expected = [
        "v1",
        "v1 (canary next)",
        "v1 /a/",
        "v1 /a/b/c/",
        "v1 /a/b/",
        "v1 /a/b",
        "v2",
    ];
    assert_numbered(&versions, &expected);
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
            let version = versions.default();
            let canary = version
                .split(BackendIndex::OWN)
                .and_then(|split| split.at(place));
            canary.map(|index| version.backend(index).name.to_string())
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
            "routes = [{ path = '/x/*', backend = 'a:1' }]",
            "routes[0].path: found '/x/*'; allowed: a path",
        ),
        (
            "unproven = [{ request = 'POST orders', reason = 'x' }]",
            "unproven[0].request: found 'POST orders'; allowed: a method and a path",
        ),
        (
            "unproven = [{ request = 'POST /orders/*/lines' }]",
            "unproven[0].reason: missing; allowed: 1 to 200 characters",
        ),
        (
            "unproven = [{ request = 'GET /%6F', reason = 'x' }, { request = 'GET /o', reason = 'y' }]",
            "unproven[1]: found \"GET /o\" twice; allowed: each request once",
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
