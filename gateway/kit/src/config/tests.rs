//! Configuration files as operators write them, and the messages they get.

use std::path::Path;

use super::*;

/// A configuration such as a program could have.
#[derive(Debug)]
struct Example {
    size: u16,
    name: String,
    is_on: bool,
    mode: Mode,
    paths: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Fast,
    Safe,
}

const PATHS: &str = "paths, for example \"/login\"";

fn example(root: &mut Section<'_>) -> Read<Example> {
    let size = root.number("size", 1..=100_u16, 7);
    let name = root.required("name", "a name");
    let secret = root.secret("secret");
    let inner = root.section("inner", |inner| {
        let is_on = inner.flag("is_on", true);
        let modes = [("fast", Mode::Fast), ("safe", Mode::Safe)];
        let mode = inner.choice("mode", &modes, Mode::Safe);
        let is_path = |text: &str| text.starts_with('/').then(|| text.to_owned());
        let paths = inner.list("paths", &["/"], PATHS, is_path);
        Ok((is_on?, mode?, paths?))
    });
    let tables = root.sections("tables", |_, table| {
        table.seconds("wait_seconds", 1..=60, 2)
    });
    let (is_on, mode, paths) = inner?;
    secret?;
    tables?;
    Ok(Example {
        size: size?,
        name: name?,
        is_on,
        mode,
        paths,
    })
}

fn read(text: &str) -> Result<Loaded<Example>, ConfigError> {
    parse(Path::new("a.toml"), text, example)
}

fn settings(text: &str) -> Settings {
    read(text).unwrap().settings
}

fn problems(text: &str) -> Vec<String> {
    read(text).unwrap_err().lines()
}

#[test]
fn keys_that_a_file_omits_have_their_defaults() {
    let found = read("name = 'x'\nsize = 0x10\n[inner]\nmode = 'fast'\npaths = ['/a', '/b']\n");
    let found = found.unwrap().config;
    assert_eq!((found.size, &*found.name), (16, "x"));
    assert!(found.is_on);
    assert_eq!(found.mode, Mode::Fast);
    assert_eq!(found.paths, ["/a", "/b"]);
    let found = read("name = 'x'").unwrap().config;
    assert_eq!((found.size, found.mode), (7, Mode::Safe));
    assert_eq!(found.paths, ["/"]);
}

#[test]
fn every_problem_has_file_line_key_found_and_allowed() {
    let text = "size = 101\nname = 5\n\n[inner]\nis_on = 'yes'\nmode = \"slow\"\npaths = ['a']\n[tables.one]\nwait_seconds = 61\n";
    assert_eq!(
        problems(text),
        [
            "a.toml:1: size: found 101; allowed: a whole number from 1 to 100",
            "a.toml:2: name: found a whole number; allowed: a name",
            "a.toml:5: inner.is_on: found a string; allowed: true or false",
            "a.toml:6: inner.mode: found \"slow\"; allowed: \"fast\", \"safe\"",
            "a.toml:7: inner.paths: found ['a']; allowed: a list of paths, for example \"/login\"",
            "a.toml:9: tables.one.wait_seconds: found 61; allowed: a whole number from 1 to 60",
        ]
    );
}

#[test]
fn a_missing_key_is_named() {
    assert_eq!(problems(""), ["a.toml: name: missing; allowed: a name"]);
}

#[test]
fn an_unknown_key_is_reported_with_the_nearest_known_one() {
    for (line, message) in [
        (
            "sise = 1",
            "a.toml:2: sise: unknown key; did you mean size?",
        ),
        (
            "[iner]\nis_on = true",
            "a.toml:2: iner: unknown key; did you mean inner?",
        ),
        (
            "[inner]\nmodes = 'fast'",
            "a.toml:3: inner.modes: unknown key; did you mean mode?",
        ),
        (
            "[inner]\nsize = 1",
            "a.toml:3: inner.size: unknown key here; size belongs above the first [section]",
        ),
        (
            "is_on = true",
            "a.toml:2: is_on: unknown key; did you mean inner.is_on?",
        ),
        (
            "[inner]\ncolour = 1",
            "a.toml:3: inner.colour: unknown key; allowed: is_on, mode, paths",
        ),
    ] {
        assert_eq!(problems(&format!("name = 'x'\n{line}\n")), [message]);
    }
    // A misspelled key that is also required is one problem.
    assert_eq!(
        problems("nane = 'x'"),
        ["a.toml:1: nane: unknown key; did you mean name?"]
    );
}

#[test]
fn a_value_in_place_of_a_table_is_rejected() {
    assert_eq!(
        problems("name = 'x'\ninner = 'hush'"),
        ["a.toml:2: inner: found a string; allowed: a table"]
    );
    assert_eq!(
        problems("name = 'x'\n[tables]\none = 'hush'"),
        ["a.toml:3: tables.one: found a string; allowed: a table"]
    );
}

#[test]
fn a_syntax_error_is_reported_by_line_and_never_quoted() {
    let shown = problems("name = 'x'\nsecret = hush hush\nsize = \n");
    assert!(shown[0].starts_with("a.toml:2: not TOML: "), "{shown:?}");
    assert!(
        shown
            .iter()
            .any(|line| line.starts_with("a.toml:3: not TOML: "))
    );
    assert!(!shown.join("").contains("hush"), "{shown:?}");
    let shown = problems("name = 'x'\nname = 'y'\n");
    assert!(shown[0].starts_with("a.toml:2: not TOML: "), "{shown:?}");
}

#[test]
fn a_secret_is_never_shown() {
    for secret in ["['hush']", "{ a = 'hush' }", "'env:NO_SUCH_VARIABLE_HUSH'"] {
        let shown = problems(&format!("name = 'x'\nsecret = {secret}")).join("");
        assert!(shown.starts_with("a.toml:2: secret: found"), "{shown}");
        assert!(!shown.contains("'hush'"), "{shown}");
    }
    let shown = problems("name = 'x'\nsercet = 'hush'").join("");
    assert!(
        shown.contains("secret") && !shown.contains("hush"),
        "{shown}"
    );
    let with = |secret: &str| settings(&format!("name = 'x'\nsecret = '{secret}'"));
    let changes = with("hush one").changes(&with("hush two"));
    let shown: Vec<_> = changes.iter().map(Change::to_string).collect();
    assert_eq!(shown, ["secret: changed"]);
    assert!(!format!("{:?} {changes:?}", with("hush")).contains("hush"));
}

#[test]
fn a_value_that_may_hold_a_password_is_not_shown() {
    let with = |name: &str| settings(&format!("name = '{name}'"));
    let changes = with("https://u:hush@a").changes(&with("https://u:hush@b"));
    let shown: Vec<_> = changes.iter().map(Change::to_string).collect();
    assert_eq!(shown, ["name: changed"]);
    assert!(!format!("{:?}", with("https://u:hush@a")).contains("hush"));
    let shown = problems("name = 'x'\n[inner]\nmode = 'u:hush@h:80'").join("");
    assert!(shown.contains("found a string with an @"), "{shown}");
    let shown = problems("name = 'x'\n[inner]\nmode = 'postgres://u:hush@h/d'").join("");
    assert!(shown.contains("found 'postgres://…") && !shown.contains("hush"));
}

#[test]
fn another_spelling_of_the_same_value_is_not_a_change() {
    let one = settings("name = 'x'\nsize = 16\n[tables.one]\n");
    let same = settings(
        "tables.one = {}\nsize = 0x10 # as before\nname = \"x\"\ninner = { is_on = true }",
    );
    assert_eq!(one.changes(&same), []);
    let other = settings("name = 'y'\n[inner]\npaths = ['/a']\n[tables.two]\nwait_seconds = 5\n");
    let shown: Vec<_> = one.changes(&other).iter().map(Change::to_string).collect();
    assert_eq!(
        shown,
        [
            "size: 16 -> 7",
            "name: \"x\" -> \"y\"",
            "inner.paths: [\"/\"] -> [\"/a\"]",
            "tables.two.wait_seconds: added, 5",
            "tables.one.wait_seconds: removed",
        ]
    );
}

#[test]
fn kept_keys_have_their_old_values() {
    let old = settings("name = 'x'\nsize = 1\n");
    let new = settings("name = 'y'\nsize = 2\n");
    let kept = settings("name = 'y'\nsize = 2\n").with_kept_keys(&old, |key| key == "size");
    let changed = |settings: &Settings| -> Vec<String> {
        let changes = settings.changes(&new);
        changes.into_iter().map(|change| change.key).collect()
    };
    assert_eq!(changed(&kept), ["size"]);
    assert_eq!(changed(&old), ["size", "name"]);
}

#[test]
fn a_change_of_a_secret_file_is_a_change_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, "one\n").unwrap();
    let text = format!(
        "name = 'x'\nwatch = true\nsecret = 'file:{}'\n",
        file.display()
    );
    let before = settings(&text);
    assert!(before.is_watched);
    let paths: Vec<_> = before.files.iter().map(ReadFile::path).collect();
    assert_eq!(paths, [Path::new("a.toml"), &file]);
    std::fs::write(&file, "two\n").unwrap();
    let changes = before.changes(&settings(&text));
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].key, "secret");
}

#[test]
fn a_named_file_is_read_watched_and_compared_but_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pem");
    std::fs::write(&path, "hush one").unwrap();
    let load = |name: &Path| {
        let text = format!("key = '{}'\n", name.display());
        parse(Path::new("a.toml"), &text, |root| {
            let file = root.file("key")?.ok_or(Invalid)?;
            Ok(file.content.to_vec())
        })
    };
    let first = load(&path).unwrap();
    assert_eq!(first.config, b"hush one");
    let files: Vec<_> = first.settings.files.iter().map(ReadFile::path).collect();
    assert_eq!(files, [Path::new("a.toml"), &path]);
    assert!(
        first
            .settings
            .changes(&load(&path).unwrap().settings)
            .is_empty()
    );
    std::fs::write(&path, "hush two").unwrap();
    let second = load(&path).unwrap();
    let changes = first.settings.changes(&second.settings);
    let shown: Vec<_> = changes.iter().map(Change::to_string).collect();
    assert_eq!(shown, ["key: changed"]);
    let exposed = |settings: &Settings| {
        let mut all = settings.exposed();
        let (_, value) = all.find(|(setting, _)| setting.key == "key").unwrap();
        value.to_owned()
    };
    assert_ne!(exposed(&first.settings), exposed(&second.settings));
    assert!(!format!("{:?}", second.settings).contains("hush"));
    // A folder or a missing file is reported, and watched: it may appear.
    for missing in [folder.path(), &folder.path().join("missing.pem")] {
        let error = load(missing).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("a.toml:1: key: found ") && text.contains("which cannot be read"),
            "{text}"
        );
        assert_eq!(error.files.len(), 2);
    }
}

#[test]
fn of_a_new_table_only_the_keys_that_the_file_has_are_listed() {
    let read = |text: &str| {
        let read = |root: &mut Section<'_>| {
            let table = root.tables("routes", 9, |route| {
                let path: Read<String> = route.required("path", "a path");
                let account = route.flag("account", false);
                Ok((path?, account?))
            });
            table.map(|_| ())
        };
        parse(Path::new("a.toml"), text, read).unwrap().settings
    };
    let none = read("");
    let both = read("routes = [{ path = '/a' }, { path = '/b', account = false }]");
    let shown =
        |changes: Vec<Change>| -> Vec<String> { changes.iter().map(ToString::to_string).collect() };
    let added = [
        "routes[0].path: added, \"/a\"",
        "routes[1].path: added, \"/b\"",
        "routes[1].account: added, false",
        "routes: 0 tables -> 2 tables",
    ];
    assert_eq!(shown(none.changes(&both)), added);
    let removed = [
        "routes: 2 tables -> 0 tables",
        "routes[0].path: removed",
        "routes[1].path: removed",
        "routes[1].account: removed",
    ];
    assert_eq!(shown(both.changes(&none)), removed);
    // A default that the file now names is no change.
    let named = read("routes = [{ path = '/a', account = false }, { path = '/b' }]");
    assert!(both.changes(&named).is_empty());
}
