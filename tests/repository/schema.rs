//! The JSON Schemas of the configuration files, `conf/*.schema.json`: what `keys --schema` prints, read by a validator that knows
//! nothing of Signpost.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use end_to_end::{
    documents::{documents, root},
    folder::Folder,
    program::{Program, output_text},
    versions::versions,
};
use serde_json::{Value, json};

/// Reads schemas by name, and files with the name of their schema; prints the errors of each file. Editors have times as
/// strings, too.
const VALIDATOR: &str = "\
import datetime, json, sys, tomllib
from jsonschema import Draft202012Validator
def plain(value):
    if isinstance(value, dict): return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list): return [plain(item) for item in value]
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else value
schemas, files = json.load(sys.stdin)
for schema in schemas.values(): Draft202012Validator.check_schema(schema)
validators = {name: Draft202012Validator(schema) for name, schema in schemas.items()}
def errors(name, text):
    found = validators[name].iter_errors(plain(tomllib.loads(text)))
    return [error.json_path + ': ' + error.message[:200] for error in found]
print(json.dumps([errors(name, text) for name, text in files]))";

/// The errors of each file by the schema of its program.
fn errors(files: &[(Program, String)]) -> Vec<Vec<String>> {
    let schemas: BTreeMap<_, _> = files
        .iter()
        .map(|(program, _)| (program.name(), program))
        .collect();
    let schemas: BTreeMap<_, _> = schemas
        .into_iter()
        .map(|(name, program)| (name, schema(*program)))
        .collect();
    let files: Vec<_> = files
        .iter()
        .map(|(program, text)| (program.name(), text))
        .collect();
    // Debian's, as the library is.
    let mut validator = Command::new("/usr/bin/python3")
        .args(["-c", VALIDATOR])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("scripts/prerequisites test installs it");
    let mut input = validator.stdin.take().unwrap();
    let text = json!([schemas, files]).to_string();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let output = validator.wait_with_output().unwrap();
    serde_json::from_str(&output_text(&output)).expect("the validator works")
}

/// What a program prints.
fn schema(program: Program) -> Value {
    let printed = program.run(Path::new("/"), &["keys", "--schema"]);
    serde_json::from_str(&output_text(&printed)).expect("JSON")
}

/// The example files, each with its program.
fn examples() -> Vec<(PathBuf, Program)> {
    let program = |path: &Path| match path.file_stem().unwrap().to_str().unwrap() {
        name if name.starts_with("gateway") => Program::Gateway,
        "all" => Program::All,
        name => {
            let version = versions().into_iter().find(|version| version.name == name);
            version.expect("a file of a version").program
        }
    };
    let folders = ["conf", "conf/compose"].map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let paths = folders
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    paths.map(|path| (path.clone(), program(&path))).collect()
}

/// If it fails: `target/debug/signpost keys --schema > conf/gateway.schema.json`, `target/debug/login-v1 keys --schema >
/// conf/login.schema.json`. A version with keys of its own has a file of its own.
#[test]
fn each_example_names_the_schema_that_its_program_prints() {
    for (path, program) in examples() {
        let text = fs::read_to_string(&path).unwrap();
        let named = text.lines().next().unwrap().strip_prefix("#:schema ");
        let named = named.unwrap_or_else(|| panic!("{} names no schema", path.display()));
        let named = fs::read_to_string(path.with_file_name(named)).unwrap();
        let named: Value = serde_json::from_str(&named).unwrap();
        assert!(
            named == schema(program),
            "{} is of another {program:?}",
            path.display()
        );
    }
}

#[test]
fn each_example_is_valid() {
    let examples = examples();
    assert!(examples.len() > 8, "{examples:?}");
    let files = examples
        .iter()
        .map(|(path, program)| (*program, fs::read_to_string(path).unwrap()));
    let files: Vec<_> = files.collect();
    for ((path, _), errors) in examples.iter().zip(errors(&files)) {
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
    }
}

/// The blocks of TOML in the documents: parts of a program's file, or of one of its tables.
#[test]
fn each_part_of_a_file_in_the_documents_is_valid() {
    let mut blocks = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(root().join(&document.path)).unwrap();
        let parts = text.split("```toml\n").skip(1);
        let parts = parts.map(|part| part.split("```").next().unwrap());
        blocks.extend(parts.map(|part| (document.path.clone(), part.to_owned())));
    }
    assert!(blocks.len() > 10, "{blocks:#?}");
    let mut found = vec![Vec::new(); blocks.len()];
    for (program, table) in [
        (Program::Gateway, ""),
        (Program::Gateway, "[[listen]]"),
        (Program::Gateway, "[versions.any]"),
        (Program::V1, ""),
    ] {
        let files = blocks
            .iter()
            .map(|(_, text)| (program, format!("{table}\n{text}")));
        let errors = errors(&files.collect::<Vec<_>>());
        found
            .iter_mut()
            .zip(errors)
            .for_each(|(found, errors)| found.push(errors));
    }
    for ((path, text), errors) in blocks.iter().zip(found) {
        let is_valid = errors.iter().any(Vec::is_empty);
        assert!(is_valid, "{}: {text}{errors:#?}", path.display());
    }
}

/// A default that a program would not accept would mislead.
#[test]
fn each_default_is_valid() {
    fn defaults(schema: &Value, found: &mut Vec<Value>) {
        if !schema.is_object() {
            return;
        }
        if !schema["default"].is_null() {
            found.push(schema.clone());
        }
        let properties = schema["properties"].as_object().into_iter().flatten();
        let further = [&schema["items"], &schema["additionalProperties"]];
        for schema in properties.map(|(_, schema)| schema).chain(further) {
            defaults(schema, found);
        }
    }
    for (program, at_least) in [(Program::Gateway, 100), (Program::V1, 40)] {
        let mut found = Vec::new();
        defaults(&schema(program), &mut found);
        assert!(found.len() > at_least, "{}", found.len());
        for schema in found {
            let default = &schema["default"];
            let is_valid = match schema["type"].as_str() {
                Some("boolean") => default.is_boolean(),
                Some("integer" | "number") => {
                    let range = schema["minimum"].as_f64()..=schema["maximum"].as_f64();
                    range.contains(&default.as_f64())
                }
                Some("array") => default.is_array(),
                Some(_) => default.is_string(),
                None => match &schema["enum"] {
                    Value::Array(words) => words.contains(default),
                    _ => default.is_string(),
                },
            };
            assert!(is_valid, "{schema}");
        }
    }
}

/// A valid file of a program, which the cases add to.
const fn valid(program: Program) -> &'static str {
    match program {
        Program::Gateway => {
            "prefix = 'Acme'\napplication.key = '4283fefc63f0cd0e873a0000c6d07ef7'\nversions.v1.backend = '127.0.0.1:7001'\n"
        }
        _ => {
            "prefix = 'Acme'\nproviders.a = { kind = 'github', client_id = 'a', client_secret = 'file:secret' }\n"
        }
    }
}

/// Mistakes of the gateway's file that the schema finds.
const GATEWAY: &[&str] = &[
    // Unknown keys.
    "lisen = '127.0.0.1:1'",
    "sign.windows_seconds = 60",
    "log.colour = true",
    "versions.v1.heath.path = '/healthz'",
    "versions.v1.health.pth = '/healthz'",
    "versions.v1.routes = [{ path = '/a', backend = '127.0.0.1:1', timeout = 1 }]",
    "listen = [{ address = '127.0.0.1:1', adress = '' }]",
    "management.api.port = 1",
    "versions.v2.backends = [{ address = '127.0.0.1:1', wieght = 2 }]",
    "client_id = 'a'",
    // Wrong types.
    "watch = 'true'",
    "watch = 1",
    "threads = '2'",
    "threads = 1.5",
    "listen = 8080",
    "listen = ['127.0.0.1:8080']",
    "default_version = 1",
    "trusted_proxies = '10.0.0.0/8'",
    "trusted_proxies = [10]",
    "sign = 'plain'",
    "sign.show_canonical = 'yes'",
    "versions.v2 = '127.0.0.1:7002'",
    "versions.v2.backends = '127.0.0.1:7001'",
    "versions.v1.health = '/healthz'",
    "versions.v1.sunset = 2027",
    "versions.v1.brownouts = '2026-12-02T10:00:00Z/PT2H'",
    "versions.v1.shadow = { to = 'v2', percent = '1' }",
    "headers.response.set = 'X-A: 1'",
    "cors.origins = 'https://app.example.com'",
    "routes = { path = '/a' }",
    // Outside of the range.
    "sign.window_seconds = 0",
    "sign.window_seconds = 301",
    "limits.body_bytes = 70000",
    "limits.body_bytes = 63",
    "timeouts.idle_seconds = -1",
    "connections.max = 0",
    "versions.v1.health.timeout_seconds = 61",
    "versions.v1.canaries = [{ name = 'a', backend = '127.0.0.1:1', percent = 101 }]",
    "versions.v1.shadow = { to = 'v2', percent = 100.5 }",
    "versions.v2.backends = [{ address = '127.0.0.1:1', weight = 0 }]",
    "tracing.sampled_per_million = 1000001",
    "listen = []",
    "versions.v2.backends = []",
    // Unknown words.
    "unknown = 'perhaps'",
    "sign.layout = 'upside-down'",
    "sign.preset = 'stripe'",
    "log.format = 'text'",
    "versions.v1.balance = 'random'",
    "versions.v1.unsigned = 'allow'",
    "rate_limits.paths = [{ path = '/a', by = 'user', per_second = 1, burst = 1 }]",
    "management.console = { application = 'x', accounts.a = { provider = 'p', username = 'u', role = 'root' } }",
];

/// The same of the login service's file.
const LOGIN: &[&str] = &[
    "backend = '127.0.0.1:1'",
    "login.login_ttl = 600",
    "login.login_ttl_seconds = 0",
    "login.same_network = 'maybe'",
    "providers.b = { kind = 'facebook', client_id = 'a', client_secret = 'b' }",
    "providers.b = { kind = 'github', client_id = 1, client_secret = 'b' }",
    "providers.b = { kind = 'github', client_id = 'a', client_secret = 'b', label = { fr = 'Entrer' } }",
    "providers.b = { kind = 'github', client_id = 'a', client_secret = 'b', scopes = 'user' }",
    "events.retention_days = 3661",
    "polling.interval_seconds = '2'",
    "own = { tax_percent = 19 }",
];

/// Mistakes that only the program finds: relations between keys, what is missing, and what a reader parses.
const BEYOND_SCHEMA: &[&str] = &[
    "versions.v1.backends = ['127.0.0.1:7002']",
    "default_version = 'v9'",
    "applications.master_key = 'file:secret'",
    "management.listen = '127.0.0.1:8080'",
    "management.listen = '0.0.0.0:8081'",
    "public_url = 'ftp://api.example.com'",
    "listen = 'localhost'",
    "listen = [{ protocols = ['h2'] }]",
    "versions.v1.after_sunset = 'gone'",
    "versions.v1.deprecated = 2026-12-01\nversions.v1.sunset = 2026-11-01",
    "versions.v2 = {}",
    "cors.origins = ['*', 'https://app.example.com']",
    "routes = [{ path = '/a' }]",
];

/// Whether the schema and whether the program accept a file.
fn accepted(cases: &[(Program, &str)]) -> Vec<(bool, bool)> {
    let folder = Folder::create();
    folder.write("secret", "4283fefc63f0cd0e873a0000c6d07ef7");
    let text =
        |(program, case): &(Program, &str)| (*program, format!("{}{case}\n", valid(*program)));
    let files: Vec<_> = cases.iter().map(text).collect();
    let by_schema = errors(&files);
    let by_program = files.iter().map(|(program, text)| {
        let file = folder.write("case.toml", text).display().to_string();
        let output = program.run(folder.path(), &["check", "--config", &file]);
        output.status.success()
    });
    let by_schema = by_schema.iter().map(Vec::is_empty);
    by_schema.zip(by_program).collect()
}

#[test]
fn the_schema_finds_mistakes_as_the_program_does() {
    let with = |program, cases: &[&'static str]| {
        let cases = cases.iter().map(move |case| (program, *case));
        cases.collect::<Vec<_>>()
    };
    let broken = [with(Program::Gateway, GATEWAY), with(Program::V1, LOGIN)].concat();
    assert!(broken.len() > 50, "{}", broken.len());
    let beyond = with(Program::Gateway, BEYOND_SCHEMA);
    let valid = [(Program::Gateway, ""), (Program::V1, "")];
    let mut found = Vec::new();
    for (cases, expected) in [
        (&broken[..], (false, false)),
        (&beyond, (true, false)),
        (&valid, (true, true)),
    ] {
        let accepted = accepted(cases);
        let cases = cases.iter().zip(accepted);
        found.extend(cases.filter(|(_, accepted)| *accepted != expected));
    }
    assert!(found.is_empty(), "schema, program: {found:#?}");
}
