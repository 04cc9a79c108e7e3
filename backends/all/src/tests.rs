//! Both versions in one process.

use login::testing::TestService;

use super::*;

mod both_stores {
    use super::*;

    #[tokio::test]
    async fn a_login_is_issued_by_the_requested_version() {
        let service = TestService::of(versions(), "").await;
        for (header, version, source) in [
            ("v2", "v2", "header"),
            ("v1", "v1", "header"),
            ("x", "v1", "unknown"),
        ] {
            let login = service.post("/login", []).header("acme-x-version", header);
            let login = login.await;
            assert_eq!(login.headers["acme-x-version"], version);
            assert_eq!(login.headers["acme-x-version-source"], source);
            let token = login.json()["token"].as_str().unwrap().to_owned();
            assert!(token.starts_with(&format!("{version}.")), "{token}");
        }
    }

    #[tokio::test]
    async fn each_version_has_its_own_endpoints() {
        let service = TestService::of(versions(), "").await;
        for (version, status) in [("v1", 404), ("v2", 401)] {
            let events = service.get("/events").header("acme-x-version", version);
            let events = events.await;
            assert_eq!(events.status, status, "{version}");
            assert_eq!(events.headers["acme-x-version"], version);
        }
    }
}

#[test]
fn the_example_configuration_is_valid() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/all.toml");
    let config = login::testing::example_of(&versions(), file);
    assert_eq!(config.providers.all.len(), 1);
}
