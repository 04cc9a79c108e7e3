//! What each release has left behind opens with today's programs. conf/guides/compatibility.md.

use std::{fs, path::Path};

use end_to_end::{
    folder::Folder,
    kept::Kept,
    logins::log_in_by_polling,
    program::{Program, output_text},
    stack::Application,
};

#[tokio::test]
async fn the_store_of_each_release_opens_and_has_what_was_in_it() {
    let releases = Kept::all();
    assert!(!releases.is_empty());
    for release in releases {
        let (stack, facts) = (release.open().await, release.facts());
        let client = stack.client_of(&Application {
            ident: facts.ident.clone(),
            key: facts.key,
        });
        let call = client.get("/user").authorization(&facts.credential);
        assert_eq!(call.send().await.ok()["display_name"], "Ada Lovelace");
        let call = client.get("/events").authorization(&facts.credential);
        assert_eq!(call.send().await.ok()["events"][0]["event"], "kept");
        for (arguments, words) in [
            (&["app", "show", &facts.ident][..], "Shop"),
            (&["audit"], "app.rotate"),
            (&["versions", "report"], "Shop"),
        ] {
            let output = stack.command(arguments);
            assert!(output_text(&output).contains(words), "{output:?}");
        }
        stack.call_api(0, "apps", &facts.token, None).await;
        // What it had can be changed, and something can be added.
        let output = stack.command(&["app", "end-overlap", &facts.ident]);
        assert!(output.status.success(), "{output:?}");
        log_in_by_polling(&client, "ada").await;
        log_in_by_polling(&client, "grace").await;
    }
}

/// The secrets that an example names, as a new installation has them.
fn write_secrets(folder: &Path) {
    let data = folder.join("data");
    fs::create_dir_all(&data).unwrap();
    fs::write(data.join("app.key"), "0123456789abcdef0123456789abcdef").unwrap();
}

#[test]
fn the_example_files_of_each_release_are_valid() {
    for release in Kept::all() {
        let folder = Folder::create();
        write_secrets(folder.path());
        let mut count = 0;
        for entry in fs::read_dir(release.examples()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let program = match &*name {
                "v1" => Program::V1,
                "v2" => Program::V2,
                "all" => Program::All,
                _ => Program::Gateway,
            };
            let path = path.canonicalize().unwrap();
            let output = program.run(
                folder.path(),
                &["check", "--config", path.to_str().unwrap()],
            );
            assert!(output.status.success(), "{name}: {output:?}");
            count += 1;
        }
        assert!(count > 4, "{count}");
    }
}
