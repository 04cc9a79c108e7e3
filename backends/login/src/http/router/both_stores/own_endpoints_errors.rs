//! Endpoints that cannot be served: an error at the start, never a panic.

use super::*;

fn checked(own: &Endpoints<Test>) -> String {
    check::<Test>(own).unwrap_err().to_string()
}

async fn any() -> StatusCode {
    StatusCode::OK
}

#[test]
fn a_path_of_the_library_is_an_error_by_any_method() {
    for path in [
        "/login",
        "/check",
        "/user",
        "/user/login",
        "/user/logout",
        "/event/send",
        "/healthz",
        "/readyz",
    ] {
        let own = [
            (Endpoints::new().get(path, any), "GET"),
            (Endpoints::new().get("/mine", any).post(path, any), "POST"),
        ];
        for (own, method) in own {
            let expected = format!(
                "endpoint {method} {path}: the login library has this path; allowed: a path of the version's own"
            );
            assert_eq!(checked(&own), expected);
        }
    }
}

#[test]
fn an_endpoint_may_be_added_once() {
    let own = Endpoints::new().get("/mine", any).post("/mine", any);
    check::<Test>(&own).unwrap();
    assert_eq!(
        checked(&own.get("/mine", any)),
        "endpoint GET /mine: added twice; allowed: once"
    );
}

#[test]
fn a_path_is_an_exact_one() {
    for good in ["/", "/a", "/a/b-c.d_e~f", "/users", "/user/"] {
        check::<Test>(&Endpoints::new().get(good, any)).unwrap();
    }
    for bad in [
        "",
        "a",
        "/{id}",
        "/a/{*rest}",
        "/a b",
        "/a?b",
        "/a%20b",
        "/é",
        "/:id",
    ] {
        let message = checked(&Endpoints::new().get(bad, any));
        assert!(
            message.contains(&format!("{bad:?}: not a path")),
            "{message}"
        );
    }
}

#[test]
fn an_invalid_name_of_a_version_is_an_error() {
    struct Odd;
    impl Version for Odd {
        const NAME: &'static str = "v 1";
        type Settings = ();
        type State = ();
    }
    let message = name_of::<Odd>().unwrap_err().to_string();
    assert!(message.contains("version \"v 1\": not a name"), "{message}");
}
