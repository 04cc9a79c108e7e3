//! `GET /openapi.json`, and the header that names it.

use http::header::LINK;
use signpost_protocol::header::X_GATEWAY_REFUSED;

use super::*;

const NAMED: &str = "</openapi.json>; rel=\"service-desc\"";

#[tokio::test]
async fn anyone_reads_the_document() {
    let setup = Setup::new().await;
    let response = setup.raw("GET", "/openapi.json", &[]).await;
    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(response.headers[header::CONTENT_TYPE], "application/json");
    assert_eq!(response.headers[LINK], NAMED);
    let document = response.json();
    assert_eq!(document["info"]["version"], "v1");
    let scheme = &document["components"]["securitySchemes"]["credential"];
    assert_eq!(scheme["name"], "Acme-X-Authorization");
    assert_eq!(document["x-signpost-lifetimes"]["login"], 600);
}

#[tokio::test]
async fn responses_of_json_name_it() {
    let setup = Setup::new().await;
    let browser = [("accept", "text/html")];
    for (path, headers, is_named) in [
        ("/user", &[][..], true),
        ("/nothing", &[], true),
        ("/login?state=x", &[], true),
        ("/login?state=x", &browser, false),
        ("/healthz", &[], false),
    ] {
        let response = setup.call("GET", path, headers).await;
        assert_eq!(response.headers.contains_key(LINK), is_named, "{path}");
    }
}

#[tokio::test]
async fn another_versions_clients_are_not_shown_it() {
    let setup = Setup::new().await;
    let bridge = [("x-gateway-bridge", "v0")];
    for (path, status, code) in [
        ("/openapi.json", 404, "not_found"),
        ("/user", 401, "authorization_missing"),
    ] {
        let response = setup.call("GET", path, &bridge).await;
        response.assert_problem(status, code);
        assert!(!response.headers.contains_key(LINK), "{path}");
    }
    let copy = [("x-gateway-shadow", "v0")];
    let response = setup.call("GET", "/openapi.json", &copy).await;
    assert_eq!(response.headers[X_GATEWAY_REFUSED], "shadow");
}
