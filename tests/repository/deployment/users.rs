//! The programs with users of their own, as the units run them, on one SQLite file. Issue 22, row 19.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, chown},
    path::Path,
};

use end_to_end::{
    logins::{credential, log_in_by_polling},
    program::Program,
    stack::{Application, Stack},
    store::StoreKind,
};
use serde_json::Value;

use super::output;

/// The group of the folder, as `signpost-shared`; and the users, each with a group of its own.
const GROUP: u32 = 65530;
const USERS: [(Program, u32); 3] = [
    (Program::Gateway, 65531),
    (Program::V1, 65532),
    (Program::V2, 65533),
];

/// Makes the folder of a stack what `install -d -m 2770 -g signpost-shared` makes, without a database.
fn share(folder: &Path) {
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|end| end == "toml") {
            fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
            chown(&path, Some(0), Some(GROUP)).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
    }
    chown(folder, Some(0), Some(GROUP)).unwrap();
    fs::set_permissions(folder, Permissions::from_mode(0o2770)).unwrap();
}

#[tokio::test]
async fn programs_of_different_users_share_a_database() {
    if !StoreKind::Sqlite.is_chosen("it is about the files of SQLite") {
        return;
    }
    for order in [[0, 1, 2], [2, 1, 0]] {
        let mut stack = Stack::builder().multi().start().await;
        let folder = stack.folder().to_owned();
        let (gateway, user) = USERS[0];
        if gateway.command_as(user, GROUP, &folder).is_none() {
            return;
        }
        for (program, _) in USERS {
            stack.kill(program);
        }
        share(&folder);
        for (program, user) in order.map(|index| USERS[index]) {
            let command = program.command_as(user, GROUP, &folder).unwrap();
            stack.restart_as(program, command).await;
        }
        let mut create = gateway.command_as(user, GROUP, &folder).unwrap();
        let config = folder.join("signpost.toml");
        let create = create.args(["app", "create", "Demo", "--json", "--config"]);
        let created = output(create.arg(config));
        let created: Value = serde_json::from_str(created.trim()).unwrap();
        let member = |name: &str| created[name].as_str().unwrap().to_owned();
        let application = Application {
            ident: member("ident"),
            key: member("key"),
        };
        let client = stack.client_of(&application);
        for (version, user) in [("v1", "ada"), ("v2", "grace")] {
            let login = log_in_by_polling(&client, user).await;
            let me = client.get("/user").version(version);
            me.authorization(credential(&login)).send().await.ok();
        }
        let mut shared = 0;
        for file in fs::read_dir(&folder).unwrap() {
            let file = file.unwrap();
            let (name, mode) = (
                file.file_name(),
                file.metadata().unwrap().permissions().mode(),
            );
            let name = name.into_string().unwrap();
            if name.contains(".db") {
                shared += 1;
                assert_eq!(mode & 0o777, 0o660, "{name}");
            } else if name.ends_with(".key") {
                assert_eq!(mode & 0o777, 0o600, "{name}");
            }
        }
        // The database, its lock at the start, and the two of the write-ahead log.
        assert_eq!(shared, 4);
    }
}
