//! Both versions in one process, over a real store.

use std::path::Path;

use axum::body::{Body, to_bytes};
use http::{Request, StatusCode};
use login::{config::Config, program};
use serde_json::Value;

use super::*;

/// A configuration without a gateway: every request belongs to the single application.
fn config(folder: &Path) -> Config {
    let text = format!(
        "prefix = \"Acme\"\nwithout_gateway = true\nstore = \"sqlite:{}\"\n[providers.sandbox]\nkind = \"bitbucket\"\n\
         auth_url = \"http://127.0.0.1:1\"\napi_url = \"http://127.0.0.1:1\"\nclient_id = \"i\"\nclient_secret = \"s\"\n",
        folder.join("signpost.db").display()
    );
    Config::parse(Path::new("all.toml"), &text).unwrap().config
}

#[test]
fn the_example_configuration_is_valid() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf/all.toml");
    Config::load(&file).unwrap();
}

#[tokio::test]
async fn a_login_is_issued_by_the_requested_version() {
    let folder = tempfile::tempdir().unwrap();
    let (service, _watch) = program::start(config(folder.path())).await.unwrap();
    let routes = router(service).unwrap();
    for (header, version, source) in [
        ("v2", "v2", "header"),
        ("v1", "v1", "header"),
        ("x", "v1", "unknown"),
    ] {
        let request = Request::post("/login")
            .header("acme-x-version", header)
            .body(Body::empty())
            .unwrap();
        let response = routes.clone().serve(request).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["acme-x-version"], version);
        assert_eq!(response.headers()["acme-x-version-source"], source);
        let body: Value =
            serde_json::from_slice(&to_bytes(response.into_body(), 9999).await.unwrap()).unwrap();
        assert!(
            body["token"]
                .as_str()
                .unwrap()
                .starts_with(&format!("{version}.")),
            "{body}"
        );
    }
}

#[tokio::test]
async fn each_version_has_its_own_endpoints() {
    let folder = tempfile::tempdir().unwrap();
    let (service, _watch) = program::start(config(folder.path())).await.unwrap();
    let routes = router(service).unwrap();
    for (version, status) in [
        ("v1", StatusCode::NOT_FOUND),
        ("v2", StatusCode::UNAUTHORIZED),
    ] {
        let request = Request::get("/events")
            .header("acme-x-version", version)
            .body(Body::empty())
            .unwrap();
        let response = routes.clone().serve(request).await;
        assert_eq!(response.status(), status, "{version}");
        assert_eq!(response.headers()["acme-x-version"], version);
    }
}
