//! What each release leaves behind: a store of each kind, as SQL, and the example files. Every later program must open them.
//! conf/guides/compatibility.md.
//!
//! `tests/kept/NUMBER/` has them. `keep-release` writes it, at the release.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    documents::root,
    logins::{credential, log_in_by_redirect},
    program::Program,
    stack::{Application, Stack, StackBuilder},
    store::StoreKind,
    waiting::until,
};

/// The master key of each kept store.
const MASTER_KEY: &str = "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a";
const PROGRAMS: [Program; 3] = [Program::Gateway, Program::V1, Program::V2];

/// What a release leaves behind, for one kind of store.
#[derive(Debug)]
pub struct Kept {
    folder: PathBuf,
    kind: StoreKind,
}

/// What the store of a release has, and a test must find again.
#[derive(Debug, Deserialize, Serialize)]
pub struct Facts {
    /// Ident of the application.
    pub ident: String,
    /// Its key, after a rotation.
    pub key: String,
    /// The credential of a user, `ada`, who has logged in to it and sent the event `kept`.
    pub credential: String,
    /// A token of the management API, of an administrator.
    pub token: String,
}

impl Kept {
    /// The folders of all releases.
    ///
    /// # Panics
    ///
    /// When they cannot be read.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let releases = fs::read_dir(root().join("tests/kept")).expect("the folder exists");
        let folders = releases.map(|entry| entry.expect("an entry can be read").path());
        let of_folder = |folder| Self {
            folder,
            kind: StoreKind::chosen(),
        };
        folders.map(of_folder).collect()
    }

    /// The present release, by its number. It need not be kept yet.
    #[must_use]
    pub fn present(number: &str) -> Self {
        Self {
            folder: root().join("tests/kept").join(number),
            kind: StoreKind::chosen(),
        }
    }

    /// The folder of the release's configuration examples.
    #[must_use]
    pub fn examples(&self) -> PathBuf {
        self.folder.join("conf")
    }

    /// What its store has.
    ///
    /// # Panics
    ///
    /// When the file is missing or malformed.
    #[must_use]
    pub fn facts(&self) -> Facts {
        serde_json::from_str(&self.read("json")).expect("the facts are well-formed")
    }

    /// Today's programs on its store.
    pub async fn open(&self) -> Stack {
        let mut stack = builder().start().await;
        PROGRAMS.iter().for_each(|program| stack.kill(*program));
        stack.store().load(&self.read("sql"));
        for program in PROGRAMS {
            stack.restart(program).await;
        }
        stack
    }

    /// Writes what the present programs leave behind.
    ///
    /// # Panics
    ///
    /// When they fail.
    pub async fn write(&self) {
        let mut stack = builder().start().await;
        let facts = fill(&stack).await;
        PROGRAMS.iter().for_each(|program| stack.kill(*program));
        let never = "UPDATE credentials SET expires_at = 4102444800000";
        stack.store().query(never);
        fs::create_dir_all(self.examples()).expect("a folder can be created");
        self.put("sql", &stack.store().dump());
        let facts = serde_json::to_string_pretty(&facts).expect("facts are JSON");
        self.put("json", &format!("{facts}\n"));
        copy_examples(&root().join("conf"), &self.examples());
    }

    fn path(&self, extension: &str) -> PathBuf {
        let kind = format!("{:?}", self.kind).to_lowercase();
        self.folder.join(format!("{kind}.{extension}"))
    }

    fn read(&self, extension: &str) -> String {
        let path = self.path(extension);
        fs::read_to_string(&path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()))
    }

    fn put(&self, extension: &str, text: &str) {
        fs::write(self.path(extension), text).expect("a file can be written");
    }
}

fn builder() -> StackBuilder {
    let builder = Stack::builder().multi().gateway("[management.api]");
    builder.file("master.key", MASTER_KEY)
}

/// Makes at least a row of what operators and users would miss.
async fn fill(stack: &Stack) -> Facts {
    let Application { ident, .. } = stack.create_application("Shop", &["--default-version", "v2"]);
    let rotated = stack.command(&["app", "rotate", &ident, "--json"]);
    let rotated: serde_json::Value =
        serde_json::from_slice(&rotated.stdout).expect("the command prints JSON");
    let key = rotated["key"].as_str().expect("a key").to_owned();
    let application = Application { ident, key };
    let client = stack.client_of(&application);
    let login = log_in_by_redirect(&client, "ada").await;
    let credential = credential(&login).to_owned();
    let event = client.post("/event/send").param("event", "kept");
    event.authorization(&credential).send().await.ok();
    let counts = ["usage_counts", "usage_clients", "gateways"];
    for table in counts {
        until(&format!("a row of {table}"), || async move {
            let count = stack
                .store()
                .query(&format!("SELECT count(*) FROM {table}"));
            (count.number() > 0).then_some(())
        })
        .await;
    }
    Facts {
        token: stack.create_token("admin"),
        ident: application.ident,
        key: application.key,
        credential,
    }
}

/// Copies the configuration files of a folder, and of those in it.
fn copy_examples(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a folder can be read") {
        let path = entry.expect("an entry can be read").path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let name = path.file_name().expect("a file has a name");
            fs::copy(&path, to.join(name)).expect("a file can be copied");
        }
    }
}
