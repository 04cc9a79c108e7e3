//! Bridges, changes and shadows, and every invalid form.

use super::*;
use crate::{
    config::{AccountCheck, ChangedPath},
    request::Method,
};

fn bridged(further: &str) -> String {
    format!(
        "{}[versions.v2]\nbackend = '127.0.0.1:2'\nunsigned = 'reject'\n\
         routes = [{{ path = '/new/', backend = '127.0.0.1:3' }}]\n\
         canaries = [{{ name = 'next', percent = 5, backend = '127.0.0.1:4' }}]\nsticky_by = 'app'\n\
         [[routes]]\npath = '/common'\nbackend = '127.0.0.1:5'\n\
         [versions.v3]\nbridge = 'V2'\nroutes = [{{ path = '/own', backend = '127.0.0.1:6' }}]\n{further}",
        MINIMAL
    )
}

fn problem(further: &str) -> String {
    problems(&bridged(further))
}

#[test]
fn a_bridge_has_the_backends_of_the_other_version_and_routes_of_its_own() {
    let config = load(&bridged("")).unwrap();
    let (v2, v3) = (
        config.versions.named(b"v2").unwrap(),
        config.versions.named(b"v3").unwrap(),
    );
    let own = v3.routed("/own").unwrap();
    assert_eq!(v3.backend(own).name.to_string(), "v3 /own");
    assert_eq!(
        (v3.is_bridged(own), v3.serving(own).as_str()),
        (false, "v3")
    );
    let common = v3.routed("/common").unwrap();
    assert_eq!(v3.backend(common).name.to_string(), "/common");
    assert!(!v3.is_bridged(common));
    assert_eq!(v3.routed("/new/1"), None);
    let bridge = v3.bridge().unwrap();
    let routed = bridge.routed("/new/1").unwrap();
    assert_eq!(v3.backend(routed).name.to_string(), "v2 /new/");
    let canary = v3.split(BackendIndex::OWN).unwrap().at(0).unwrap();
    assert_eq!(v3.backend(canary).name.to_string(), "v2 (canary next)");
    for index in [routed, canary, BackendIndex::OWN] {
        assert_eq!(
            (v3.is_bridged(index), v3.serving(index).as_str()),
            (true, "v2")
        );
        assert_eq!(v3.unsigned(index), Unsigned::Reject);
    }
    assert_eq!(v3.own().number, v2.own().number);
    assert_eq!(
        v3.split(BackendIndex::OWN).unwrap().sticky_by(),
        StickyBy::App
    );
    // Each backend is counted once.
    assert_eq!(config.versions.backends().len(), 6);
    assert!(!v2.is_bridged(BackendIndex::OWN));
}

#[test]
fn a_bridge_leads_to_a_version_with_a_backend() {
    for (to, others) in [("v4", "v1, v2"), ("v3", "v1, v2")] {
        let report = problems(&bridged("").replace("bridge = 'V2'", &format!("bridge = '{to}'")));
        let expected = format!(
            "versions.v3.bridge: found \"{to}\"; allowed: a version with a backend of its own: {others}"
        );
        assert!(report.contains(&expected), "{report}");
    }
    let chain = format!("{}[versions.v4]\nbridge = 'v3'\n", bridged(""));
    assert!(problems(&chain).contains("versions.v4.bridge: found \"v3\""));
    for key in [
        "backend = '127.0.0.1:9'",
        "sticky_by = 'app'",
        "gateway_secret = 'of-v3-4283fefc63f0cd0e'",
        "health = {}",
    ] {
        let report = problem(&format!("{key}\n"));
        assert!(
            report.contains("found it beside bridge; allowed: either bridge, or a backend"),
            "{report}"
        );
    }
}

#[test]
fn changes_are_read() {
    let config = load(&bridged(
        "[[versions.v3.changes]]\nname = 'one'\npaths = ['/a/']\nmethod = 'POST'\nstatus = ['200', '4xx']\npass_types = ['Text/HTML']\n\
         request = [{ path = '/a/', to = '/new/' }, { rename = 'x', to = 'y' }]\n\
         response = [{ rename = '$.x', to = 'y' }, { move = '$.a', to = '$.b.c' }, { copy = '$.d', to = '$.e' },\n\
         { remove = '$.f' }, { default = '$.g', value = true }, { constant = '$.h', value = -5 },\n\
         { map = '$.i', values = ['a=b', '='] }, { to_text = '$.j' }, { to_number = '$.k' },\n\
         { wrap = '$.l', in = '[]' }, { unwrap = '$', in = 'data' }, { status = 201 }]\n",
    ));
    let config = config.unwrap();
    let changes = config.versions.named(b"v3").unwrap().changes().unwrap();
    let change = changes.iter().next().unwrap();
    assert_eq!(
        (change.request.len(), change.response.len(), change.status),
        (2, 11, Some(201))
    );
    let path = |method, path| {
        let changed = changes.path(method, path, "").unwrap();
        changed.map(|changed| changed.path)
    };
    assert_eq!(path(Method::Post, "/a/b/c").as_deref(), Some("/new/b/c"));
    assert_eq!(path(Method::Get, "/a/b/c"), None);
    assert_eq!(path(Method::Post, "/b"), None);
    for (status, changed) in [(200, true), (201, false), (404, true), (500, false)] {
        assert_eq!(change.changes_status(status), changed, "{status}");
    }
    assert!(change.passes_type("text/html") && !change.passes_type("application/json"));
    // The digest covers these changes only.
    let other = bridged(
        "[[versions.v3.changes]]\nname = 'one'\npaths = ['/a/']\nresponse = [{ remove = '$.f' }]\n",
    );
    let other = load(&other).unwrap();
    let other = other.versions.named(b"v3").unwrap().changes().unwrap();
    assert_ne!(changes.digest(), other.digest());
    assert_eq!(changes.digest().len(), 16);
}

fn changes(steps: &str) -> Arc<Changes> {
    let change = format!("[[versions.v3.changes]]\nname = 'a'\npaths = ['/**']\n{steps}\n");
    let config = load(&bridged(&change)).unwrap();
    Arc::clone(config.versions.named(b"v3").unwrap().changes().unwrap())
}

#[test]
fn a_parameter_becomes_a_segment_and_back() {
    let there = changes("request = [{ path = '/order', to = '/orders/{id}/all' }]");
    let back = changes("request = [{ path = '/orders/{id}/all', to = '/order' }]");
    let exchanged = changes("request = [{ path = '/a/{x}/{y}', to = '/b/{y}/{x}' }]");
    let path = |changes: &Changes, path: &str, query: &str| {
        let changed = changes.path(Method::Get, path, query);
        changed.map_err(|(change, why)| format!("{} {why}", change.name))
    };
    let is = |path: &str, taken: &[&str], given: &[(&str, &str)]| {
        let given = given
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).to_owned()));
        Ok(Some(ChangedPath {
            path: path.to_owned(),
            taken: taken.iter().map(|name| (*name).into()).collect(),
            given: given.collect(),
        }))
    };
    assert_eq!(
        path(&there, "/order", "a=1&id=%C3%A9+%25"),
        is("/orders/%C3%A9%20%25/all", &["id"], &[])
    );
    assert_eq!(
        path(&there, "/order/x", "id=7"),
        is("/orders/7/all/x", &["id"], &[])
    );
    assert_eq!(path(&there, "/order", "ID=7"), Ok(None));
    for (query, why) in [
        ("id=1&id=2", "a id is there twice"),
        ("id=", "a id is no segment of a path"),
        ("id=.", "a id is no segment of a path"),
        ("id=a%2Fb", "a id is no segment of a path"),
        ("id=a%5Cb", "a id is no segment of a path"),
        ("id=a%3Bb", "a id is no segment of a path"),
        ("id=%00", "a id is no segment of a path"),
    ] {
        assert_eq!(
            path(&there, "/order", query),
            Err(why.to_owned()),
            "{query}"
        );
    }
    assert_eq!(
        path(&back, "/orders/a+%26%C3%A9/all/b", ""),
        is("/order/b", &[], &[("id", "a+&é")])
    );
    assert_eq!(path(&back, "/orders//all", ""), Ok(None));
    assert_eq!(path(&back, "/orders/7", ""), Ok(None));
    assert_eq!(path(&exchanged, "/a/1/2/3", ""), is("/b/2/1/3", &[], &[]));
}

#[test]
fn a_converter_is_a_backend_of_its_own() {
    let change = |address: &str, further: &str| {
        changes(&format!(
            "converter = '{address}'\nstatus = ['2xx', '404']\n{further}"
        ))
    };
    let one = change("127.0.0.1:9", "");
    let (named, converter) = one.converter(Method::Get, "/x").unwrap();
    assert_eq!(converter.backend.name.to_string(), "v3 (converter a)");
    assert!(named.changes_status(404) && !named.changes_status(500));
    assert!(one.change_responses(Method::Get, "/x"));
    assert!(converter.backend.secret.is_none());
    // The digest has the address, and nothing of the other backends.
    assert_eq!(
        one.digest(),
        change(
            "127.0.0.1:9",
            "[[routes]]\npath = '/y'\nbackend = '127.0.0.1:8'"
        )
        .digest()
    );
    assert_ne!(one.digest(), change("127.0.0.1:10", "").digest());
}

#[test]
fn each_invalid_change_is_reported() {
    for (change, expected) in [
        (
            "name = 'A'",
            "changes[0].name: found 'A'; allowed: 1 to 64 of a-z0-9_",
        ),
        ("name = 'a'\npaths = []", "changes[0].paths: missing"),
        ("name = 'a'\npaths = ['a']", "changes[0].paths"),
        (
            "name = 'a'\npaths = ['/a']",
            "changes[0].response: missing; allowed: steps of request, request_body or response",
        ),
        (
            "name = 'a'\npaths = ['/a']\nstatus = ['1xx']\nresponse = [{ status = 200 }]",
            "changes[0].status",
        ),
        (
            "name = 'a'\npaths = ['/a']\nstatus = ['+200']\nresponse = [{ status = 200 }]",
            "changes[0].status",
        ),
        (
            "name = 'a'\npaths = ['/a']\nresponse = [{ rename = '$.a', remove = '$.b', to = 'c' }]",
            "response[0].remove: found it beside rename",
        ),
        (
            "name = 'a'\npaths = ['/a']\nresponse = [{ rename = '$.a' }]",
            "response[0].to: missing",
        ),
        (
            "name = 'a'\npaths = ['/a']\nresponse = [{ rename = '$', to = 'b' }]",
            "response[0].rename: found $; allowed: the path must end with a member",
        ),
        (
            "name = 'a'\npaths = ['/a']\nresponse = [{ move = '$.a', to = '$.a.b' }]",
            "response[0].move: found $.a",
        ),
        (
            "name = 'a'\npaths = ['/a']\nresponse = [{ rename = 'a', to = 'b' }]",
            "response[0].rename: found 'a'; allowed: $, then at most 16 steps",
        ),
        (
            "name = 'a'\npaths = ['/a']\nresponse = [{ map = '$.a' }]",
            "response[0].values: missing",
        ),
        (
            "name = 'a'\npaths = ['/a']\nresponse = [{ default = '$.a', value = [2027-03-01] }]",
            "response[0].value: found",
        ),
        (
            "name = 'a'\npaths = ['/a']\nresponse = [{ default = '$.a', value = inf }]",
            "response[0].value: found",
        ),
        (
            "name = 'a'\npaths = ['/a']\nresponse = [{}]",
            "response[0].rename: missing; allowed: one of rename, move",
        ),
        (
            "name = 'a'\npaths = ['/a']\nrequest = [{ rename = 'sign', to = 'b' }]",
            "request[0].rename: found 'sign'",
        ),
        (
            "name = 'a'\npaths = ['/a']\nrequest = [{ rename = 'b', to = 'time' }]",
            "request[0].to: found \"time\"",
        ),
        (
            "name = 'a'\npaths = ['/a']\nrequest = [{ constant = 'b' }]",
            "request[0].value: missing",
        ),
        (
            "name = 'a'\npaths = ['/a']\nrequest = [{ path = '/a', to = 'b' }]",
            "request[0].to: found \"b\"; allowed: a path",
        ),
        (
            "name = 'a'\npaths = ['/a']\nrequest = [{ path = '/a', to = '/b?c' }]",
            "request[0].to: found \"/b?c\"",
        ),
        (
            "name = 'a'\npaths = ['/a']\nrequest = [{ wrap = 'a' }]",
            "request[0].wrap",
        ),
    ] {
        let report = problem(&format!("[[versions.v3.changes]]\n{change}\n"));
        assert!(report.contains(expected), "{change}: {report}");
    }
    for (steps, expected) in [
        (
            "request = [{ set_header = 'X-Gateway-App', value = 'b' }]",
            "request[0].set_header: found 'X-Gateway-App'",
        ),
        (
            "request = [{ remove_header = 'Acme-X-Authorization' }]",
            "request[0].remove_header: found 'Acme-X-Authorization'",
        ),
        (
            "response = [{ set_header = 'Set-Cookie', value = 'a=b' }]",
            "response[0].set_header: found 'Set-Cookie'",
        ),
        (
            "response = [{ remove_header = 'Acme-X-Version-Source' }]",
            "response[0].remove_header: found 'Acme-X-Version-Source'",
        ),
        (
            "response = [{ set_header = 'A', value = \"b\\nc\" }]",
            "response[0].value: found",
        ),
        (
            "response = [{ set_header = 'A', value = 'b', status = 200 }]",
            "response[0].set_header: found it beside status",
        ),
        (
            "response = [{ remove_header = 'A', value = 'b' }]",
            "response[0].value: found it beside remove_header",
        ),
        (
            "request = [{ path = '/a/{b', to = '/c' }]",
            "request[0].path: found '/a/{b'",
        ),
        (
            "request = [{ path = '/a', to = '/c{b}' }]",
            "request[0].to: found \"/c{b}\"",
        ),
        (
            "request = [{ path = '/a', to = '/c/{sign}' }]",
            "request[0].to: found \"/c/{sign}\"",
        ),
        (
            "converter = '127.0.0.1:9'\nrequest = [{ remove = 'a' }]",
            "converter: found it beside steps",
        ),
        ("converter = 'https://a:1'", "converter: found"),
        (
            "response = [{ status = 200, rename = '$.a', to = 'b' }]",
            "response[0].status: found it beside another one",
        ),
        (
            "response = [{ unwrap = '$.a', in = 'b', remove = '$.c' }]",
            "response[0].unwrap: found it beside remove",
        ),
        (
            "response = [{ remove = '$.a', to = 'b' }]",
            "response[0].to: found it beside remove; allowed: no other key",
        ),
        (
            "response = [{ wrap = '$.a', to = 'b', in = 'c' }]",
            "response[0].to: found it beside wrap; allowed: in",
        ),
        (
            "request = [{ remove = 'a', value = 'b' }]",
            "request[0].value: found it beside remove",
        ),
        (
            "request = [{}]",
            "request[0].rename: missing; allowed: one of path, rename",
        ),
    ] {
        let report = problem(&format!(
            "[[versions.v3.changes]]\nname = 'a'\npaths = ['/a']\n{steps}\n"
        ));
        assert!(report.contains(expected), "{steps}: {report}");
    }
    let copies = "{ copy = '$.a', to = '$.b' }, ".repeat(5);
    let copies =
        format!("[[versions.v3.changes]]\nname = 'a'\npaths = ['/a']\nresponse = [{copies}]\n");
    assert!(problem(&copies).contains("response: found 5 steps with copy; allowed: at most 4"));
    let twice =
        "[[versions.v3.changes]]\nname = 'a'\npaths = ['/a']\nresponse = [{ remove = '$.a' }]\n"
            .repeat(2);
    assert!(problem(&twice).contains("\"a\" twice; allowed: each name once"));
}

const MULTI: &str = "prefix = 'Acme'\n[applications]\n\
                     [versions.v1]\nbackend = '127.0.0.1:1'\n[versions.v2]\nbackend = '127.0.0.1:2'\n[versions.v1.shadow]\n";

#[test]
fn a_shadow_is_read() {
    let config = load(&format!(
        "{MULTI}to = 'V2'\npercent = 0.05\nnoise_percent = 100\npaths = ['/user', '/orders/']\npost_paths = ['/quote']\n\
         ignore = ['$.id']\nheaders = ['Location']\nbackend = '127.0.0.1:3'\n\
         account = 'optional'\npass_authorization = true\n"
    ));
    let config = config.unwrap();
    let v1 = config.versions.named(b"v1").unwrap();
    let shadow = v1.shadow().unwrap();
    assert_eq!(
        (shadow.per_million, shadow.noise_per_million),
        (500, 1_000_000)
    );
    let entry = |method, path| shadow.entry(method, path).map(ToString::to_string);
    assert_eq!(entry(Method::Get, "/orders/1").as_deref(), Some("/orders/"));
    assert_eq!(entry(Method::Post, "/quote").as_deref(), Some("/quote"));
    assert_eq!(entry(Method::Post, "/user"), None);
    assert_eq!(entry(Method::Get, "/quote"), None);
    let backend = shadow.backend.as_ref().unwrap();
    assert_eq!(backend.name.to_string(), "v1 (shadow)");
    assert_eq!(backend.account.check, AccountCheck::Optional);
    assert!(backend.account.passes_authorization);
    assert!(v1.backends().all(|one| one.number != backend.number));
    let warnings = config.warnings().join("\n");
    assert!(
        warnings.contains("versions.v1.shadow.post_paths: v2 executes"),
        "{warnings}"
    );
    for key in [
        "account = 'required'",
        "pass_authorization = false",
        "gateway_secret = 'of-shadow-4283fefc63f0cd0e'",
    ] {
        let config = load(&format!("{MULTI}to = 'v2'\npaths = ['/user']\n{key}\n"));
        let warnings = config.unwrap().warnings().join("\n");
        let name = key.split(' ').next().unwrap();
        let expected = format!("versions.v1.shadow.{name} has no effect: copies have no backend");
        assert!(warnings.contains(&expected), "{warnings}");
    }
}

#[test]
fn each_invalid_shadow_is_reported() {
    for (shadow, expected) in [
        (
            "to = 'v3'\npaths = ['/a']",
            "versions.v1.shadow.to: found \"v3\"; allowed: a version with a backend of its own: v2",
        ),
        (
            "to = 'v1'\npaths = ['/a']",
            "versions.v1.shadow.to: found \"v1\"",
        ),
        ("to = 'v2'", "versions.v1.shadow.paths: missing"),
        ("paths = ['/a']", "versions.v1.shadow.to: missing"),
        (
            "to = 'v2'\npaths = ['/a']\npercent = 100.5",
            "versions.v1.shadow.percent: found 100.5; allowed: a number from 0 to 100",
        ),
        (
            "to = 'v2'\npaths = ['/a']\npercent = 'all'",
            "versions.v1.shadow.percent",
        ),
        (
            "to = 'v2'\npaths = ['/a']\nignore = ['id']",
            "versions.v1.shadow.ignore",
        ),
        (
            "to = 'v2'\npaths = ['/a']\nheaders = ['a b']",
            "versions.v1.shadow.headers",
        ),
    ] {
        let report = problems(&format!("{MULTI}{shadow}\n"));
        assert!(report.contains(expected), "{shadow}: {report}");
    }
    let single = format!(
        "{}[versions.v1.shadow]\nto = 'v2'\npaths = ['/a']\n[versions.v2]\nbackend = '127.0.0.1:2'\n",
        MINIMAL
    );
    let report = problems(&single);
    let expected =
        "versions.v1.shadow: found it without a store; allowed: a gateway with [applications]";
    assert!(report.contains(expected), "{report}");
    assert_eq!(report.matches("versions.v1.shadow").count(), 1, "{report}");
    let both = format!("{MULTI}to = 'v2'\npaths = ['/a']\n").replace(
        "[versions.v1]\nbackend = '127.0.0.1:1'",
        "[versions.v1]\nbridge = 'v2'",
    );
    assert!(problems(&both).contains("versions.v1.shadow: found it beside bridge"));
}

#[test]
fn changes_without_a_use_are_warned_of() {
    let change =
        "[[versions.v1.changes]]\nname = 'a'\npaths = ['/a']\nresponse = [{ remove = '$.a' }]\n";
    let config = load(&format!("{}{change}", MINIMAL)).unwrap();
    let warnings = config.warnings().join("\n");
    assert!(
        warnings.contains(
            "versions.v1.changes has no effect: the version has neither bridge nor shadow"
        ),
        "{warnings}"
    );
}
