//! Clients that public generators make of a version's description, and Postman: each signs by the lines of
//! `gateway/clients/generated/README.md`, logs a user in, and calls. The programs that do so are in `tests/generated`.

use std::{env, fs, os::unix::fs::symlink, path::PathBuf, process::Stdio};

use end_to_end::{
    client_library::{copy, library},
    documents::root,
    folder::Folder,
    logins::{PollingLogin, complete_polling},
    program::output_text,
    stack::Stack,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
};

/// What an encoder can get wrong.
const DATA: &str = "it's a/b+c ~*()! & = % 100%25 張 \u{1f600}";

/// Above the lines for Go.
const GO_HEAD: &str = "package main\n\nimport (\n\t\"fmt\"\n\t\"io\"\n\t\"net/http\"\n\t\"time\"\n\n\t\"generated/signpost\"\n)\n\n";

/// What the guide has: code, and the command of a generator.
struct Guide(String);

impl Guide {
    fn read() -> Self {
        Self(fs::read_to_string(library("generated").join("README.md")).unwrap())
    }

    fn code(&self, language: &str) -> &str {
        let (_, code) = self.0.split_once(&format!("```{language}\n")).unwrap();
        code.split_once("```").unwrap().0
    }

    fn command(&self, generator: &str) -> &str {
        let row = self
            .0
            .lines()
            .find(|line| line.contains(&format!("| {generator} ")));
        row.unwrap().rsplit('`').nth(1).unwrap()
    }
}

/// A folder with the description of version 2, and all that the programs import. `None` if `scripts/test` has reported that
/// the generators cannot be installed here.
fn folder(document: &str) -> Option<Folder> {
    if env::var_os("SIGNPOST_TEST_WITHOUT_FRAMEWORKS").is_some() {
        return None;
    }
    let (folder, guide) = (Folder::create(), Guide::read());
    let at = |name: &str| folder.path().join(name);
    fs::write(at("openapi.json"), document).unwrap();
    for entry in fs::read_dir(root().join("tests/generated")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    symlink(tools("generated/node_modules"), at("node_modules")).unwrap();
    for file in ["signpost.mjs", "signpost.d.mts", "node.mjs"] {
        fs::copy(library("javascript").join(file), at(file)).unwrap();
    }
    copy("python/signpost", &at("signpost"));
    // Go reads only the files of its own language there.
    fs::copy(library("go").join("sign.go"), at("signpost/sign.go")).unwrap();
    fs::copy(library("postman").join("sign.js"), at("sign.js")).unwrap();
    fs::write(at("sign.ts"), guide.code("ts")).unwrap();
    fs::write(at("sign.py"), guide.code("python")).unwrap();
    fs::write(at("sign.go"), format!("{GO_HEAD}{}", guide.code("go"))).unwrap();
    fs::write(at("go.mod"), "module generated\n\ngo 1.19\n").unwrap();
    Some(folder)
}

fn tools(name: &str) -> PathBuf {
    let folder = root().join("target/examples").join(name).canonicalize();
    folder.expect("run scripts/prerequisites examples")
}

/// A shell in the folder, which finds the generators and reaches no network.
fn shell(folder: &Folder, command: &str) -> Command {
    let mut shell = Command::new("bash");
    let path = env::var("PATH").unwrap();
    let (node, python) = (
        tools("generated/node_modules/.bin"),
        tools("generators/bin"),
    );
    let path = format!("{}:{}:{path}", node.display(), python.display());
    shell.args(["-ec", command, "generated"]).env("PATH", path);
    shell
        .env("GOPROXY", "off")
        .env("PYTHONDONTWRITEBYTECODE", "1");
    shell.current_dir(folder.path()).kill_on_drop(true);
    shell
}

/// Makes a client by the generator's command in the guide and by `build`; then it logs in and calls by `run`.
async fn logs_in(generator: Option<&str>, build: &str, run: &str) {
    let stack = Stack::builder().multi().start().await;
    let application = stack.create_application("Shop", &[]);
    let client = stack.client_of(&application);
    let document = client.get("/openapi.json").version("v2").send().await.ok();
    let Some(folder) = folder(&document.to_string()) else {
        return;
    };
    let guide = Guide::read();
    let generate = generator.map_or("true", |name| guide.command(name));
    let built = shell(&folder, &format!("{generate}\n{build}"))
        .output()
        .await;
    let built = built.unwrap();
    assert!(built.status.success(), "{}", output_text(&built));

    let mut program = shell(&folder, &format!("exec {run} \"$@\""));
    program.args([&stack.origin(), &application.key, &application.ident, DATA]);
    program
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut program = program.spawn().unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    if let Some(begun) = lines.next_line().await.unwrap() {
        let begun = PollingLogin::from_response(&serde_json::from_str(&begun).unwrap());
        complete_polling(&client, &begun, "ada").await;
        let mut input = program.stdin.take().unwrap();
        input.write_all(b"\n").await.unwrap();
    }
    let called = lines.next_line().await.unwrap();
    let output = program.wait_with_output().await.unwrap();
    let called = called.unwrap_or_else(|| panic!("{}", output_text(&output)));
    assert_eq!(
        serde_json::from_str::<Value>(&called).unwrap(),
        json!({ "status": "complete", "provider": "bitbucket", "data": DATA })
    );
}

#[tokio::test]
async fn openapi_typescript_and_openapi_fetch() {
    let bundle =
        "esbuild openapi_fetch.ts --bundle --platform=node --format=esm --outfile=client.mjs";
    let build = format!("rm hey_api.ts\ntsc\n{bundle}");
    logs_in(Some("openapi-typescript"), &build, "node client.mjs").await;
}

#[tokio::test]
async fn hey_api() {
    let bundle = "esbuild hey_api.ts --bundle --platform=node --format=esm --outfile=client.mjs";
    let build = format!("rm openapi_fetch.ts\ntsc\n{bundle}");
    logs_in(Some("@hey-api/openapi-ts"), &build, "node client.mjs").await;
}

#[tokio::test]
async fn openapi_python_client() {
    logs_in(Some("openapi-python-client"), "", "python main.py").await;
}

#[tokio::test]
async fn openapi_generator() {
    let build = "go build -buildvcs=false -o client .";
    logs_in(Some("openapi-generator"), build, "./client").await;
}

#[tokio::test]
async fn postman() {
    logs_in(None, "", "node postman.mjs").await;
}

#[tokio::test]
async fn the_version_is_required_unless_it_is_the_default() {
    let stack = Stack::start().await;
    for (version, path, is_required) in [
        (None, "v1", false),
        (Some("v1"), "v1", true),
        (Some("v2"), "v2", true),
    ] {
        let client = stack.client();
        let call = client.get("/openapi.json");
        let call = version
            .into_iter()
            .fold(call, |call, version| call.version(version));
        let document = call.send().await.ok();
        let parameter = &document["components"]["parameters"]["Version"];
        assert_eq!(parameter["required"], is_required, "{version:?}");
        let schema = json!({ "type": "string", "enum": [path] });
        assert_eq!(parameter["schema"], schema, "{version:?}");
    }
}
