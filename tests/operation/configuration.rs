//! An invalid configuration: a message that names what to change, exit code 1, no panic.

use std::{path::Path, process::Output};

use end_to_end::{
    program::{Program, output_text},
    stack::{APP_KEY, Stack, StackBuilder},
};

/// Runs a program with its configuration until it exits, which it must.
fn run(program: Program, builder: &StackBuilder) -> Output {
    let files = builder.write_files();
    run_with(program, files.path(), files.config(program).as_ref())
}

fn run_with(program: Program, folder: &Path, config: &Path) -> Output {
    let config = config.display().to_string();
    let arguments: &[&str] = match program {
        Program::Gateway => &["run", "--config", &config],
        _ => &["--config", &config],
    };
    program.run(folder, arguments)
}

fn explains(output: &Output, words: &[&str]) {
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!(output.status.code(), Some(1), "{text}");
    for word in words {
        assert!(text.contains(word), "{word} is not in: {text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

const BOTH: [Program; 2] = [Program::Gateway, Program::V1];

#[test]
fn a_missing_file_is_named() {
    let files = Stack::builder().write_files();
    for program in [Program::Gateway, Program::V1, Program::V2, Program::All] {
        let output = run_with(program, files.path(), &files.path().join("nowhere.toml"));
        explains(&output, &["nowhere.toml"]);
    }
}

#[test]
fn a_file_that_is_not_toml_is_rejected() {
    let files = Stack::builder().write_files();
    let file = files
        .folder
        .write("broken.toml", "prefix = \"Acme\"\nlisten = = 1\n");
    for program in BOTH {
        explains(
            &run_with(program, files.path(), &file),
            &["broken.toml", "2"],
        );
    }
}

#[test]
fn an_unknown_key_is_named() {
    for program in BOTH {
        let builder = Stack::builder().program(program, "lisen = \"127.0.0.1:1\"");
        explains(&run(program, &builder), &["lisen"]);
        let builder = Stack::builder().program(program, "[log]\ncolour = true");
        explains(&run(program, &builder), &["log", "colour"]);
    }
}

#[test]
fn an_invalid_address_is_rejected() {
    for program in BOTH {
        for bad in ["localhost", "127.0.0.1", "127.0.0.1:70000", ""] {
            let builder = Stack::builder().program(program, &format!("listen = \"{bad}\""));
            explains(&run(program, &builder), &["listen"]);
        }
    }
    let builder = Stack::builder().gateway("[versions.v2]\nbackend = \"nowhere\"");
    explains(
        &run(Program::Gateway, &builder),
        &["versions.v2.backend", "nowhere"],
    );
}

#[test]
fn an_invalid_prefix_is_rejected() {
    let long = "A".repeat(33);
    for program in BOTH {
        for bad in ["9lives", "Ac me", "Acme_", "", "Äcme", &long] {
            let builder = Stack::builder().program(program, &format!("prefix = \"{bad}\""));
            explains(&run(program, &builder), &["prefix"]);
        }
    }
}

#[test]
fn a_path_that_no_request_can_have_is_rejected() {
    for bad in [
        "/%zz",
        "/%4",
        "/a b",
        "/a?b",
        "/a#b",
        "/a|b",
        "/[a]",
        "/ä",
        "a",
        "",
        "//a",
        "/a;x",
        "/a/../b",
        "/a%2Fb",
        // Issue 44, row 39: wildcards where there are none would match nothing.
        "/orders**",
        "/orders*",
        "/*",
        "/*/a",
        "/a*b",
        "/**/a",
    ] {
        for (key, toml) in [
            (
                "callback_paths",
                format!("[sign]\ncallback_paths = ['{bad}']"),
            ),
            (
                "browser_paths",
                format!("[sign]\nbrowser_paths = ['{bad}']"),
            ),
            (
                "always_signed",
                format!("[sign]\nalways_signed = ['GET {bad}']"),
            ),
            (
                "rate_limits.paths",
                format!(
                    "[[rate_limits.paths]]\npath = '{bad}'\nby = 'address'\nper_second = 1\nburst = 1"
                ),
            ),
            (
                "routes",
                format!("[versions.v1]\nroutes = [{{ path = '{bad}', backend = '127.0.0.1:1' }}]"),
            ),
        ] {
            let builder = Stack::builder().gateway(&toml);
            explains(&run(Program::Gateway, &builder), &[key, "for example"]);
        }
    }
}

#[test]
fn a_path_without_patterns_has_no_wildcard() {
    let limit = "by = 'address'\nper_second = 1\nburst = 1";
    for (key, toml) in [
        (
            "callback_paths",
            "[sign]\ncallback_paths = ['/back/**']".to_owned(),
        ),
        (
            "browser_paths",
            "[sign]\nbrowser_paths = ['/login/**']".to_owned(),
        ),
        (
            "rate_limits.paths",
            format!("[[rate_limits.paths]]\npath = '/login/**'\n{limit}"),
        ),
    ] {
        let builder = Stack::builder().gateway(&toml);
        explains(&run(Program::Gateway, &builder), &[key, "for example"]);
    }
}

/// Issue 44, row 14. Windows' editors and `.env` files make such files.
#[test]
fn a_key_file_with_more_than_the_key_is_refused_in_words() {
    for (content, words) in [
        (format!("\u{feff}{APP_KEY}\r\n"), "byte order mark"),
        (format!("\"{APP_KEY}\"\n"), "quotes around"),
        (format!("{APP_KEY}\n\n"), "more than one line"),
        (format!("{APP_KEY} \n"), "white space around"),
    ] {
        for (program, key, toml) in [
            (
                Program::Gateway,
                "application.key",
                "[application]\nkey = 'file:$FOLDER/odd'",
            ),
            (
                Program::V1,
                "gateway_secret",
                "gateway_secret = 'file:$FOLDER/odd'",
            ),
        ] {
            let builder = Stack::builder()
                .program(program, toml)
                .file("odd", &content);
            let output = run(program, &builder);
            explains(&output, &[key, "/odd, with ", words]);
            assert!(!output_text(&output).contains(APP_KEY));
        }
    }
    let crlf = format!("{APP_KEY}\r\n");
    let builder = Stack::builder().gateway("[application]\nkey = 'file:$FOLDER/key'");
    let files = builder.file("key", &crlf).write_files();
    let config = files.config(Program::Gateway);
    let checked = Program::Gateway.run(files.path(), &["check", "--config", &config]);
    assert!(checked.status.success(), "{}", output_text(&checked));
}

/// Issue 44, row 15.
#[test]
fn addresses_that_cannot_stand_together_are_named() {
    for (one, other) in [
        ("0.0.0.0:7", "127.0.0.1:7"),
        ("127.0.0.1:7", "0.0.0.0:7"),
        ("[::]:7", "[::1]:7"),
        ("[::ffff:127.0.0.1]:7", "127.0.0.1:7"),
        ("127.0.0.1:7", "127.0.0.1:7"),
    ] {
        let tables = format!("[[listen]]\naddress = '{one}'\n[[listen]]\naddress = '{other}'");
        let builder = Stack::builder().gateway(&tables);
        explains(&run(Program::Gateway, &builder), &["listen[1]", other]);
        for program in BOTH {
            let management = format!(
                "listen = '{one}'\ngateway_secret = '{APP_KEY}'\n[management]\nlisten = '{other}'\ninsecure = true"
            );
            let builder = Stack::builder().program(program, &management);
            explains(&run(program, &builder), &["management.listen", other]);
        }
    }
    for (one, other) in [
        ("0.0.0.0:7", "[::]:7"),
        ("[::1]:7", "127.0.0.1:7"),
        ("0.0.0.0:0", "127.0.0.1:0"),
    ] {
        let tables = format!("[[listen]]\naddress = '{one}'\n[[listen]]\naddress = '{other}'");
        let files = Stack::builder().gateway(&tables).write_files();
        let config = files.config(Program::Gateway);
        let checked = Program::Gateway.run(files.path(), &["check", "--config", &config]);
        assert!(checked.status.success(), "{}", output_text(&checked));
    }
}

#[test]
fn a_missing_secret_is_named() {
    let builder = Stack::builder().gateway("[application]\nkey = \"env:SIGNPOST_TEST_UNSET\"");
    explains(
        &run(Program::Gateway, &builder),
        &["application.key", "SIGNPOST_TEST_UNSET"],
    );
    let builder = Stack::builder().gateway("[application]\nkey = \"file:/nonexistent/key\"");
    explains(
        &run(Program::Gateway, &builder),
        &["application.key", "/nonexistent/key"],
    );
    let provider = "[providers.bitbucket]\nclient_secret = \"env:SIGNPOST_TEST_UNSET\"";
    let builder = Stack::builder().backends(provider);
    explains(
        &run(Program::V1, &builder),
        &["client_secret", "SIGNPOST_TEST_UNSET"],
    );
}

#[test]
fn a_weak_key_is_rejected_and_not_quoted() {
    let weak = "[application]\nkey = \"short\"";
    let builder = Stack::builder().gateway(weak);
    let output = run(Program::Gateway, &builder);
    explains(&output, &["application.key", "allow_weak_key"]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("\"short\""));
}

#[test]
fn an_unusable_store_is_named() {
    for program in BOTH {
        // A gateway with one application needs no store.
        let multi = || Stack::builder().multi();
        let builder = multi().program(program, "store = \"sqlite:$FOLDER/broken.db\"");
        let files = builder.write_files();
        let content = "this is not a database. ".repeat(100);
        files.folder.write("broken.db", &content);
        let output = run_with(program, files.path(), files.config(program).as_ref());
        explains(&output, &["broken.db"]);
        let builder = multi().program(program, "store = \"sqlite:/proc/nowhere/x.db\"");
        explains(&run(program, &builder), &["/proc/nowhere"]);
        let builder = multi().program(program, "store = \"mysql://x\"");
        explains(&run(program, &builder), &["store", "sqlite:"]);
    }
}

/// An `@` that is not escaped must not make the rest of the password a host.
#[test]
fn no_piece_of_the_stores_password_is_shown() {
    for (address, words) in [
        ("postgres://u:P@hush@127.0.0.1:1/d", "write %40"),
        ("postgres://u:P@hush/hush@127.0.0.1:1/d", "write %40"),
        ("postgres://u:hush@127.0.0.1:1/d@hush", "write %40"),
        ("postgres://u@127.0.0.1:1/d?password=P@hush", "write %40"),
        (
            "postgres://u%3AP%40hush/d",
            "postgres://USER@HOST:PORT/DATABASE",
        ),
        ("postgres://u:hush@127.0.0.1:1/d?ssl=on", "invalid \"ssl\""),
        (
            "postgress://u:hush@127.0.0.1:1/d",
            "postgres://USER@HOST:PORT/DATABASE",
        ),
        ("sqlite:x.db?key=hush", "\"sqlite:PATH\""),
        (
            "postgres://u:hu%40sh@127.0.0.1:1/d",
            "postgres://127.0.0.1:1/d",
        ),
    ] {
        for program in BOTH {
            let key = "[applications]\nmaster_key = \"file:m.key\"";
            let store = format!("store = '{address}'\n[postgres]\nwait_seconds = 1");
            let builder = Stack::builder().multi().gateway(key);
            let builder = builder.file("m.key", &"ab".repeat(32));
            let builder = builder.program(program, &store);
            let files = builder.write_files();
            let config = files.config(program);
            let check = program.run(files.path(), &["check", "--config", &config]);
            for output in [check, run_with(program, files.path(), config.as_ref())] {
                let text = output_text(&output);
                assert!(text.contains(words), "{address}: {text}");
                let pieces = ["hush", "hu@sh", "hu%40"];
                assert!(
                    !pieces.iter().any(|piece| text.contains(piece)),
                    "{address}: {text}"
                );
            }
        }
    }
}

#[test]
fn an_address_of_a_file_that_other_programs_read_differently_creates_none() {
    for address in [
        "sqlite://data/x.db",
        "sqlite:///x/x.db",
        "sqlite::memory:",
        "sqlite:x.db?mode=ro",
    ] {
        for program in BOTH {
            let store = format!("store = \"{address}\"");
            let files = Stack::builder()
                .multi()
                .program(program, &store)
                .write_files();
            let config = files.config(program);
            let check = program.run(files.path(), &["check", "--config", &config]);
            explains(&check, &["store: found", "\"sqlite:PATH\""]);
            explains(
                &run_with(program, files.path(), config.as_ref()),
                &["\"sqlite:PATH\""],
            );
            let entries = std::fs::read_dir(files.path()).unwrap();
            let mut names = entries.map(|entry| entry.unwrap().file_name());
            assert!(
                names.all(|name| !name.to_string_lossy().contains("x.db")),
                "{address}"
            );
        }
    }
}

#[test]
fn a_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for program in BOTH {
        let builder = Stack::builder().program(program, &format!("listen = \"{address}\""));
        explains(&run(program, &builder), &[&address.to_string(), "in use"]);
    }
    let builder = Stack::builder().gateway(&format!("[management]\nlisten = \"{address}\""));
    explains(
        &run(Program::Gateway, &builder),
        &[&address.to_string(), "in use"],
    );
}

#[test]
fn both_application_modes_or_neither_are_rejected() {
    let neither = Stack::builder().without(Program::Gateway, "application");
    explains(&run(Program::Gateway, &neither), &["application"]);
    let both = Stack::builder().gateway("[applications]");
    explains(&run(Program::Gateway, &both), &["application"]);
}

#[test]
fn a_backend_beyond_loopback_needs_the_secret() {
    let open = Stack::builder().backends("listen = \"0.0.0.0:0\"");
    explains(&run(Program::V1, &open), &["gateway_secret"]);
    let open = Stack::builder().gateway("[management]\nlisten = \"0.0.0.0:0\"");
    explains(&run(Program::Gateway, &open), &["management.listen"]);
}

#[test]
fn every_problem_is_reported_at_once() {
    let config = "prefix = \"9\"\nlisten = \"x\"\nunknown = \"perhaps\"\nextra = 1\n\
                  [sign]\nwindow_seconds = 301\nlayout = \"upside-down\"\n[limits]\nbody_bytes = 70000";
    let builder = Stack::builder().gateway(config);
    let keys = [
        "prefix",
        "listen",
        "unknown",
        "extra",
        "sign.window_seconds",
        "sign.layout",
        "limits.body_bytes",
        "signpost.toml",
        "perhaps",
        "upside-down",
    ];
    explains(&run(Program::Gateway, &builder), &keys);
    let files = builder.write_files();
    let config = files.config(Program::Gateway);
    explains(
        &Program::Gateway.run(files.path(), &["check", "--config", &config]),
        &keys,
    );
    let config = "prefix = \"9\"\nlisten = \"x\"\nextra = 1\n[login]\nlogin_ttl_seconds = 0";
    let builder = Stack::builder().backends(config);
    explains(
        &run(Program::V1, &builder),
        &["prefix", "listen", "extra", "login_ttl_seconds"],
    );
}

#[test]
fn check_accepts_a_valid_file_and_warns_of_weak_settings() {
    let builder = Stack::builder().gateway("[sign]\npreset = \"top\"\nallow_weak_key = true");
    let files = builder.write_files();
    let config = files.config(Program::Gateway);
    let output = Program::Gateway.run(files.path(), &["check", "--config", &config]);
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!(output.status.code(), Some(0), "{text}");
    for weak in ["md5", "decoded", "concat", "replay", "allow_weak_key"] {
        assert!(text.contains(weak), "{weak}: {text}");
    }
}
