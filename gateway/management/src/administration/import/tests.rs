//! Valid files, and every problem of invalid ones.

use signpost_store::testing::TestStore;

use super::{problem::MAX_SHOWN_PROBLEMS, *};
use crate::administration::apps::both_stores::{author, empty, names};

const KEY: &str = "4283fefc63f0cd0e873a0000c6d07ef7";

fn rules() -> Rules {
    Rules {
        versions: ["v1", "v2"].map(|name| name.parse().unwrap()).to_vec(),
        configured: Vec::new(),
        gateway_profile: SignProfile::default(),
        allows_weak_keys: false,
    }
}

fn read(file: &str) -> (ParsedFile, Vec<Problem>) {
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
fn csv_and_json_lines_are_equivalent() {
    let csv = format!(
        "\u{feff}name, ident ,key,profile,origins,default_version,rate_limit,state\r\n\r\n\
         \"One, \"\"first\"\"\",team-1,{KEY},alipay,https://a.example:443 http://b.example:8080,V2,7/9,disabled\r\n\
         Two,a.b_c,{KEY}x,\"{{\"\"layout\"\":\"\"concat\"\"}}\",,,,\r\n"
    );
    let json = format!(
        "{{\"ident\":\"team-1\",\"key\":\"{KEY}\",\"name\":\"One, \\\"first\\\"\",\"profile\":\"alipay\",\
         \"return_to\":[\"https://a.example\",\"http://b.example:8080/\"],\"default_version\":\"v2\",\"rate_limit\":\"7/9\",\"state\":\"disabled\"}}\n\n\
         {{\"ident\":\"a.b_c\",\"key\":\"{KEY}x\",\"name\":\"Two\",\"sign_profile\":{{\"layout\":\"concat\"}},\
         \"origins\":null}}"
    );
    for file in [csv, json] {
        let apps = good(&file);
        assert_eq!(apps.len(), 2, "{file}");
        let (one, two) = (&apps[0], &apps[1]);
        assert_eq!(one.ident.as_str(), "team-1");
        assert_eq!(one.name, "One, \"first\"".parse().unwrap());
        assert_eq!(one.key.expose(), KEY);
        let origins = ["https://a.example", "http://b.example:8080"];
        assert_eq!(one.return_to, origins.map(|origin| origin.parse().unwrap()));
        assert_eq!(one.profile, SignProfile::preset("alipay"));
        assert_eq!(one.default_version, "v2".parse().ok());
        assert_eq!(two.ident.as_str(), "a.b_c");
        assert_eq!(two.name, "Two".parse().unwrap());
        let layout = two.profile.as_ref().unwrap().layout;
        assert_eq!(layout, signpost_protocol::sign::SignLayout::Concat);
        assert!(two.return_to.is_empty() && two.default_version.is_none());
        assert_eq!(
            (one.rate_limit, one.state),
            ("7/9".parse().ok(), AppState::Disabled)
        );
        assert_eq!((two.rate_limit, two.state), (None, AppState::Active));
    }
}

#[test]
fn every_problem_is_reported_by_line_without_quoting_the_file() {
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
    let report = problems(&file);
    for expected in [
        "line 4: ident: allowed: 1 to 64",
        "line 4: key: a weak key: about",
        "line 4: name: allowed: 1 to 64",
        "line 4: origins: allowed: an origin",
        "line 4: profile: allowed: a preset",
        "line 4: default_version: unknown or retired default version; allowed: v1, v2",
        "line 6: ident: duplicate of line 2",
        "line 7: 2 fields; the header row has 6",
        "line 8: ident: missing",
        "line 8: key: missing",
        "line 8: name: missing",
        "line 9: profile: allowed: a preset",
        "line 9: default_version: allowed:",
    ] {
        let is_reported = report.lines().any(|line| line.starts_with(expected));
        assert!(is_reported, "{expected} in:\n{report}");
    }
    assert!(
        !report.contains("hush") && !report.contains(KEY),
        "{report}"
    );
}

/// Issue 44, row 14: a key is taken as it stands, or refused, by the rule of key files.
#[test]
fn a_key_is_never_trimmed() {
    let header = "ident,key,name\r\n";
    for (cell, words) in [
        (format!(" {KEY}"), "white space around"),
        (format!("\"{KEY}\n\""), "more than one line"),
        (format!("\"{KEY} \""), "white space around"),
        (format!("\"\"\"{KEY}\"\"\""), "quotes around"),
        (format!("'{KEY}'"), "quotes around"),
        (format!("\u{feff}{KEY}"), "a byte order mark"),
        (format!("{KEY}\u{200b}"), "cannot be seen"),
    ] {
        let report = problems(&format!("{header}a,{cell},n\r\n"));
        assert!(report.starts_with("line 2: key: found "), "{report}");
        assert!(report.contains(words), "{words}: {report}");
        assert!(!report.contains(KEY), "{report}");
    }
    let json = |key: &str| serde_json::json!({"ident": "a", "key": key, "name": "n"}).to_string();
    let report = problems(&json(&format!("{KEY}\n")));
    assert!(
        report.contains("line 1: key: found more than one line"),
        "{report}"
    );
    // Of what is no secret, spreadsheets may pad the cells.
    let apps = good(&format!("ident , key,name\r\n a ,{KEY}, n \r\n"));
    assert_eq!(apps[0].ident.as_str(), "a");
    assert_eq!(apps[0].key.expose(), KEY);
}

#[test]
fn a_json_line_must_be_an_object_of_known_members() {
    let report = problems(
        "{\"ident\":7,\"hush\":1,\"origins\":[1],\"sign_profile\":{},\"profile\":\"hush\"}\n\
         [\"hush\"]\n{\"hush\n",
    );
    let long = format!("{{\"profile\":[{}1]}}\n", "1,".repeat(MAX_LINE_BYTES));
    assert!(problems(&long).contains("line 1: longer than 256 KiB"));
    for expected in [
        "line 1: unknown member",
        "line 1: ident: must be a string",
        "line 1: origins: must be a list",
        "line 1: profile: duplicate member",
        "line 1: key: missing",
        "line 2: not a JSON object",
        "line 3: not a JSON object",
    ] {
        assert!(report.contains(expected), "{expected} in:\n{report}");
    }
    assert!(!report.contains("hush"), "{report}");
}

#[test]
fn a_member_that_appears_twice_is_reported() {
    let twice =
        format!("{{\"ident\":\"a\",\"key\":\"{KEY}x\",\"key\":\"{KEY}\",\"name\":\"n\"}}\n");
    assert_eq!(problems(&twice), "line 1: key: duplicate member");
    let profile = "{\"layout\":\"concat\",\"layout\":\"pairs\"}";
    let json =
        format!("{{\"ident\":\"a\",\"key\":\"{KEY}\",\"name\":\"n\",\"profile\":{profile}}}\n");
    assert!(problems(&json).starts_with("line 1: profile: allowed"));
    let csv = format!(
        "ident,key,name,profile\na,{KEY},n,\"{}\"\n",
        profile.replace('"', "\"\"")
    );
    assert!(problems(&csv).starts_with("line 2: profile: allowed"));
}

#[test]
fn a_header_row_must_have_the_required_columns_and_no_unknown_or_duplicate_one() {
    let report = problems(&format!("ident,{KEY},origins,return_to\n"));
    for expected in [
        "line 1: unknown column",
        "line 1: origins: duplicate column",
        "line 1: key: missing in the header",
        "line 1: name: missing in the header",
    ] {
        assert!(report.contains(expected), "{expected} in:\n{report}");
    }
    assert!(!report.contains(KEY), "{report}");
    assert!(problems("").contains("line 1: the file is empty"));
    assert!(good("ident,key,name\n").is_empty());
}

#[test]
fn a_file_that_is_not_utf_8_is_rejected_with_its_line() {
    let file = b"ident,key,name\nx,y,\xff\n";
    let refused = read_apps(file, &rules(), Timestamp::from_millis(1)).err();
    assert_eq!(refused.unwrap().to_string(), format!("line 2: {NOT_UTF_8}"));
}

#[test]
fn a_weak_key_is_accepted_if_that_is_allowed() {
    let file = b"ident,key,name\nx,secret,n\n";
    let allowing = Rules {
        allows_weak_keys: true,
        ..rules()
    };
    let (read, problems) = read_apps(file, &allowing, Timestamp::from_millis(1)).unwrap();
    assert!(problems.is_empty() && read.apps.len() == 1);
}

#[test]
fn the_number_of_reported_problems_is_limited() {
    let file = format!("ident,key,name\n{}", "x,,\n".repeat(1000));
    let report = problems(&file);
    assert_eq!(report.lines().count(), MAX_SHOWN_PROBLEMS + 1, "{report}");
    assert!(report.ends_with(" more problems"), "{report}");
}

#[test]
fn the_size_of_a_file_is_limited() {
    let endless = std::io::repeat(b'x');
    assert!(matches!(read_file(endless, 0), Err(ImportError::TooLarge)));
    assert_eq!(**read_file(&b"abc"[..], usize::MAX).unwrap(), *b"abc");
}

/// It runs on SQLite and on Postgres.
mod both_stores {
    use super::*;

    #[tokio::test]
    async fn one_problem_prevents_the_import_and_all_are_reported() {
        let test_store = TestStore::chosen();
        let apps = empty(&test_store).await;
        let now = Timestamp::from_millis(1);
        let file = format!("ident,key,name\none,{KEY},One\ntwo,{KEY},Two\n");
        let imported = apps
            .import(file.as_bytes(), false, author(), now)
            .await
            .unwrap();
        assert_eq!((imported.applications, imported.weak_keys), (2, 0));
        // One problem of the file, and one with the store.
        let file = format!("ident,key,name\nthree,{KEY},Three\ntwo,{KEY},Two\nfour,weak,Four\n");
        let refused = apps
            .import(file.as_bytes(), false, author(), now)
            .await
            .unwrap_err();
        let report = refused.to_string();
        assert!(
            report.contains("line 3: ident: the store already has"),
            "{report}"
        );
        assert!(report.contains("line 4: key: a weak key"), "{report}");
        assert_eq!(names(&apps).await.len(), 2);
        let file = format!("ident,key,name\nthree,{KEY},Three\nfour,weak,Four\n");
        let imported = apps
            .import(file.as_bytes(), true, author(), now)
            .await
            .unwrap();
        assert_eq!((imported.applications, imported.weak_keys), (2, 1));
    }
}

#[test]
fn extensions_are_read_in_both_formats() {
    for file in [
        format!("ident,key,name,extensions\na,{KEY},A,v1=2027-03-01 v2=2028-01-01T10:00:00Z\n"),
        format!(
            "{{\"ident\":\"a\",\"key\":\"{KEY}\",\"name\":\"A\",\"extensions\":[\"v1=2027-03-01\",\"v2=2028-01-01T10:00:00Z\"]}}"
        ),
    ] {
        let read: Vec<_> = good(&file)[0]
            .extensions
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(read, ["v1=2027-03-01T00:00:00Z", "v2=2028-01-01T10:00:00Z"]);
    }
    let found = problems(&format!("ident,key,name,extensions\na,{KEY},A,v1\n"));
    assert!(
        found.contains("extensions: allowed: a version and a date"),
        "{found}"
    );
}
