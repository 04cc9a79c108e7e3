//! Files that are right, and every problem of those that are not.

use signpost_store::testing::TestStore;

use super::*;
use crate::apps::administration::tests::empty;

const KEY: &str = "4283fefc63f0cd0e873a0000c6d07ef7";

fn rules() -> Rules {
    Rules {
        versions: ["v1", "v2"].map(|name| name.parse().unwrap()).to_vec(),
        gateway_profile: SignProfile::default(),
        allows_weak_keys: false,
    }
}

fn read(file: &str) -> (ReadApps, Vec<Problem>) {
    read_apps(file.as_bytes(), &rules(), Timestamp::from_millis(1)).unwrap()
}

fn good(file: &str) -> Vec<NewApp> {
    let (read, problems) = read(file);
    assert!(problems.is_empty(), "{}", Problems::new(problems));
    read.apps
}

fn problems(file: &str) -> String {
    Problems::new(read(file).1).to_string()
}

#[test]
fn csv_and_json_lines_say_the_same() {
    let csv = format!(
        "\u{feff}name, ident ,key,profile,origins,default_version\r\n\r\n\
         \"One, \"\"first\"\"\",team-1,{KEY},alipay,https://a.example:443 http://b.example:8080,V2\r\n\
         Two,a.b_c,{KEY}x,\"{{\"\"layout\"\":\"\"concat\"\"}}\",,\r\n"
    );
    let json = format!(
        "{{\"ident\":\"team-1\",\"key\":\"{KEY}\",\"name\":\"One, \\\"first\\\"\",\"profile\":\"alipay\",\
         \"return_to\":[\"https://a.example\",\"http://b.example:8080/\"],\"default_version\":\"v2\"}}\n\n\
         {{\"ident\":\"a.b_c\",\"key\":\"{KEY}x\",\"name\":\"Two\",\"sign_profile\":{{\"layout\":\"concat\"}},\
         \"origins\":null}}"
    );
    for file in [csv, json] {
        let apps = good(&file);
        assert_eq!(apps.len(), 2, "{file}");
        let (one, two) = (&apps[0], &apps[1]);
        assert_eq!(
            (one.ident.as_str(), &*one.name),
            ("team-1", "One, \"first\"")
        );
        assert_eq!(one.key.expose(), KEY);
        assert_eq!(
            one.return_to_origins,
            ["https://a.example", "http://b.example:8080"]
        );
        assert_eq!(one.profile, SignProfile::preset("alipay"));
        assert_eq!(one.default_version, "v2".parse().ok());
        assert_eq!((two.ident.as_str(), &*two.name), ("a.b_c", "Two"));
        let layout = two.profile.as_ref().unwrap().layout;
        assert_eq!(layout, gateway_protocol::sign::SignLayout::Concat);
        assert!(two.return_to_origins.is_empty() && two.default_version.is_none());
    }
}

#[test]
fn every_problem_is_told_by_its_line_and_nothing_of_the_file_is() {
    let file = format!(
        "ident,key,name,origins,profile,default_version\r\n\
         ok,{KEY},ok,,,\r\n\
         \r\n\
         hush hush,hush,\"a\nb\",hush:// nowhere,hush,hush\r\n\
         ok,{KEY},again,,,\r\n\
         short,{KEY}\r\n\
         ,,,,,\r\n\
         time,{KEY},n,,\"{{\"\"leave_out\"\":[\"\"time\"\"]}}\",v3 hush\r\n"
    );
    let told = problems(&file);
    for expected in [
        "line 4: ident: allowed: 1 to 64",
        "line 4: key: a weak key: about",
        "line 4: name: allowed: 1 to 64",
        "line 4: origins: allowed: an origin",
        "line 4: profile: allowed: a preset",
        "line 4: default_version: the default version is none of this gateway's; there are v1, v2",
        "line 6: ident: the same as in line 2",
        "line 7: 2 fields; the header row has 6",
        "line 8: ident: missing",
        "line 8: key: missing",
        "line 8: name: missing",
        "line 9: profile: allowed: a preset",
        "line 9: default_version: allowed:",
    ] {
        let is_told = told.lines().any(|line| line.starts_with(expected));
        assert!(is_told, "{expected} in:\n{told}");
    }
    assert!(!told.contains("hush") && !told.contains(KEY), "{told}");
}

#[test]
fn a_json_line_is_an_object_of_known_members() {
    let told = problems(
        "{\"ident\":7,\"hush\":1,\"origins\":[1],\"sign_profile\":{},\"profile\":\"hush\"}\n\
         [\"hush\"]\n{\"hush\n",
    );
    for expected in [
        "line 1: an unknown member",
        "line 1: ident: a text is wanted",
        "line 1: origins: a list of texts",
        "line 1: profile: a second member",
        "line 1: key: missing",
        "line 2: not a JSON object",
        "line 3: not a JSON object",
    ] {
        assert!(told.contains(expected), "{expected} in:\n{told}");
    }
    assert!(!told.contains("hush"), "{told}");
}

#[test]
fn a_header_row_has_what_is_needed_once_and_nothing_unknown() {
    let told = problems(&format!("ident,{KEY},origins,return_to\n"));
    for expected in [
        "line 1: an unknown column",
        "line 1: origins: a second column",
        "line 1: key: no such column",
        "line 1: name: no such column",
    ] {
        assert!(told.contains(expected), "{expected} in:\n{told}");
    }
    assert!(!told.contains(KEY), "{told}");
    assert!(problems("").contains("line 1: nothing"));
    assert!(good("ident,key,name\n").is_empty());
}

#[test]
fn a_file_that_is_not_utf_8_is_refused_by_line() {
    let file = b"ident,key,name\nx,y,\xff\n";
    let refused = read_apps(file, &rules(), Timestamp::from_millis(1)).err();
    assert_eq!(refused.unwrap().to_string(), "line 2: not UTF-8");
}

#[test]
fn a_weak_key_is_taken_where_that_is_allowed() {
    let file = b"ident,key,name\nx,secret,n\n";
    let allowing = Rules {
        allows_weak_keys: true,
        ..rules()
    };
    let (read, problems) = read_apps(file, &allowing, Timestamp::from_millis(1)).unwrap();
    assert!(problems.is_empty() && read.apps.len() == 1);
}

#[test]
fn the_number_of_problems_that_are_told_is_bounded() {
    let file = format!("ident,key,name\n{}", "x,,\n".repeat(1000));
    let told = problems(&file);
    assert_eq!(told.lines().count(), MAX_TOLD_PROBLEMS + 1, "{told}");
    assert!(told.ends_with(" more problems"), "{told}");
}

#[test]
fn a_file_has_a_largest_size() {
    let endless = io::repeat(b'x');
    assert!(matches!(read_file(endless, 0), Err(ImportError::TooLarge)));
    assert_eq!(**read_file(&b"abc"[..], usize::MAX).unwrap(), *b"abc");
}

#[tokio::test]
async fn with_one_problem_nothing_is_imported_and_all_problems_are_told() {
    let place = TestStore::chosen();
    let apps = empty(&place).await;
    let now = Timestamp::from_millis(1);
    let file = format!("ident,key,name\none,{KEY},One\ntwo,{KEY},Two\n");
    let imported = apps.import(file.as_bytes(), false, now).await.unwrap();
    assert_eq!((imported.applications, imported.weak_keys), (2, 0));
    // A problem of the file's own, and one with the store.
    let file = format!("ident,key,name\nthree,{KEY},Three\ntwo,{KEY},Two\nfour,weak,Four\n");
    let refused = apps.import(file.as_bytes(), false, now).await.unwrap_err();
    let told = refused.to_string();
    assert!(told.contains("line 3: ident: the store has"), "{told}");
    assert!(told.contains("line 4: key: a weak key"), "{told}");
    assert_eq!(apps.store().list().await.unwrap().len(), 2);
    let file = format!("ident,key,name\nthree,{KEY},Three\nfour,weak,Four\n");
    let imported = apps.import(file.as_bytes(), true, now).await.unwrap();
    assert_eq!((imported.applications, imported.weak_keys), (2, 1));
}
