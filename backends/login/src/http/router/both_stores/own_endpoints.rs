//! Endpoints of a version's own: their extractors and problems, inside the same layers as the library's endpoints.

use axum::{Json, extract::State};
use serde_json::json;
use signpost_protocol::{app::AppId, header::X_GATEWAY_PROBLEM};

use super::{users::log_in, *};
use crate::{
    Language,
    error::problem::{OwnProblem, Text, Texts},
    http::request::{
        AuthenticatedUser, ClaimedApplication, Parameters, RequestInfo, SignedApplication,
    },
};

const SECRET: &str = "4283fefc63f0cd0e873a0000c6d07ef7";

const fn text(title: &'static str) -> Text {
    Text {
        title,
        detail: "a detail",
    }
}

const TEXTS: Texts = Texts {
    en: text("full"),
    zh_cn: text("已满"),
    zh_tw: text("已滿"),
    ja: text("満杯"),
    ko: text("가득 참"),
};

static LIST_FULL: OwnProblem = OwnProblem::new("list_full", StatusCode::CONFLICT, TEXTS);

static LIST_CLOSED: OwnProblem =
    OwnProblem::new("list_closed", StatusCode::SERVICE_UNAVAILABLE, TEXTS);

/// A version with an endpoint for each extractor.
struct Extractors;

impl Version for Extractors {
    const NAME: &'static str = "v1";
    type Settings = ();
    type State = ();

    fn endpoints() -> Endpoints<Self> {
        Endpoints::new()
            .get("/who", who)
            .post("/who", who)
            .get("/guest", guest)
            .get("/signed", async |app: SignedApplication| shown(&app))
            .post("/signed", async |app: SignedApplication| shown(&app))
            .get("/claimed", async |app: ClaimedApplication| shown(&app))
            .post("/parameters", parameters)
            .get("/info", async |info: RequestInfo| {
                Json(json!([
                    info.id.as_str(),
                    info.language.tag(),
                    info.client_address
                ]))
            })
            .get("/clock", async |State(service): State<Arc<Service>>| {
                Json(service.now())
            })
            .get("/full", async || -> Result<(), LoginError> {
                Err((&LIST_FULL).into())
            })
            .get("/closed", async || -> Result<(), LoginError> {
                Err((&LIST_CLOSED).into())
            })
            .get("/closed-long", async || {
                let later = [(header::RETRY_AFTER, "120")];
                (later, LoginError::from(&LIST_CLOSED))
            })
            .get("/panic", async || -> StatusCode { panic!("as asked") })
    }
}

async fn who(user: AuthenticatedUser) -> Json<Value> {
    assert!(user.expires_at() > user.account().created_at);
    Json(json!(user.account().username.as_str()))
}

/// `Parameters` stands first: extractors may have any order.
async fn guest(_: Parameters, user: Option<AuthenticatedUser>) -> Json<Value> {
    Json(json!(
        user.map(|user| user.account().username.as_str().to_owned())
    ))
}

async fn parameters(given: Parameters) -> Result<Json<Value>, LoginError> {
    Ok(Json(json!([
        given.required("a")?,
        given.optional("b")?,
        given.number("c", 1..=9)?,
    ])))
}

fn shown(application: &ClaimedApplication) -> Json<Value> {
    let ident = application.ident().map(|ident| ident.as_str().to_owned());
    Json(json!([application.id().get(), ident, application.name()]))
}

impl Setup {
    async fn with_own_endpoints(more: &str) -> Self {
        let mut setup = Self::with(more).await;
        setup.router = router::<Extractors>(Arc::clone(&setup.service));
        setup
    }

    async fn post_form(&self, target: &str, form: &str) -> Response {
        let request = Request::post(target)
            .header("x-gateway-app-id", "0")
            .header("content-type", "application/x-www-form-urlencoded");
        self.send(request.body(Body::from(form.to_owned())).unwrap())
            .await
    }
}

#[tokio::test]
async fn a_required_account_is_checked_as_at_user() {
    let setup = Setup::with_own_endpoints("").await;
    let authorization = log_in(&setup).await;
    let bearer = format!("Bearer {authorization}");
    for path in ["/who", "/user"] {
        for (headers, status, code) in [
            (vec![], 401, "authorization_missing"),
            (vec!["nonsense"], 401, "authorization_malformed"),
            (vec![""], 401, "authorization_malformed"),
            (vec![&bearer, &bearer], 400, "header_duplicated"),
        ] {
            let headers: Vec<_> = headers
                .into_iter()
                .map(|value| ("acme-x-authorization", value))
                .collect();
            let response = setup.call("GET", path, &headers).await;
            response.assert_problem(status, code);
            assert_eq!(response.headers[X_GATEWAY_PROBLEM], code);
        }
    }
    let header = [("acme-x-authorization", bearer.as_str())];
    assert_eq!(setup.call("GET", "/who", &header).await.json(), "{me}");
    setup.call("POST", "/user/logout", &header).await;
    for path in ["/who", "/guest"] {
        setup
            .call("GET", path, &header)
            .await
            .assert_problem(401, "authorization_invalid");
    }
}

#[tokio::test]
async fn an_optional_account_is_none_only_without_a_credential() {
    let setup = Setup::with_own_endpoints("").await;
    let authorization = log_in(&setup).await;
    let guest = async |value: &str| {
        setup
            .call("GET", "/guest", &[("acme-x-authorization", value)])
            .await
    };
    assert_eq!(setup.call("GET", "/guest", &[]).await.json(), Value::Null);
    assert_eq!(guest(&authorization).await.json(), "{me}");
    let unknown = "A".repeat(43);
    for (bad, code) in [
        ("", "authorization_malformed"),
        ("nonsense", "authorization_malformed"),
        (&*unknown, "authorization_invalid"),
    ] {
        guest(bad).await.assert_problem(401, code);
    }
    setup
        .raw("GET", "/guest", &[])
        .await
        .assert_problem(403, "gateway_required");
}

#[tokio::test]
async fn another_applications_credential_is_invalid() {
    let setup = Setup::with_own_endpoints("").await;
    let authorization = log_in(&setup).await;
    let other = setup.store.application("other", "[]").await;
    let other = other.get().to_string();
    let headers = [
        ("x-gateway-app-id", other.as_str()),
        ("x-gateway-app", "other"),
        ("acme-x-authorization", &authorization),
    ];
    for path in ["/who", "/guest", "/user"] {
        let response = setup.raw("GET", path, &headers).await;
        response.assert_problem(401, "authorization_invalid");
    }
}

#[tokio::test]
async fn a_version_says_when_to_retry() {
    let setup = Setup::with_own_endpoints("").await;
    for (path, seconds) in [("/closed", "5"), ("/closed-long", "120")] {
        let closed = setup.call("GET", path, &[]).await;
        closed.assert_problem(503, "list_closed");
        assert_eq!(closed.header(header::RETRY_AFTER), seconds);
    }
}

#[tokio::test]
async fn an_account_that_cannot_be_checked_is_503() {
    let setup = Setup::with_own_endpoints("").await;
    let authorization = log_in(&setup).await;
    setup.store.database().make_unavailable();
    let header = [("acme-x-authorization", authorization.as_str())];
    for path in ["/who", "/guest"] {
        let response = setup.call("GET", path, &header).await;
        response.assert_problem(503, "store_unavailable");
    }
    // Without a credential there is nothing to check.
    assert_eq!(setup.call("GET", "/guest", &[]).await.json(), Value::Null);
}

#[tokio::test]
async fn an_application_is_claimed_unless_the_request_is_signed() {
    let setup = Setup::with_own_endpoints("").await;
    let shop = setup.store.application("Shop.1", "[]").await;
    let id = shop.get().to_string();
    let headers = [
        ("x-gateway-app-id", id.as_str()),
        ("x-gateway-app", "Shop.1"),
    ];
    let expected = json!([shop.get(), "Shop.1", "Shop.1"]);
    let claimed = setup.raw("GET", "/claimed", &headers).await;
    assert_eq!(claimed.json(), expected);
    for target in ["/signed?time=1&sign=2", "/signed?%73ign=2"] {
        let signed = setup.raw("GET", target, &headers).await;
        assert_eq!(signed.json(), expected, "{target}");
    }
    for method in ["GET", "POST"] {
        let unsigned = setup.raw(method, "/signed", &headers).await;
        unsigned.assert_problem(403, "sign_missing");
    }
    // In single-application mode, and in a form.
    let single = json!([AppId::SINGLE.get(), null, "Shop"]);
    assert_eq!(setup.call("GET", "/claimed", &[]).await.json(), single);
    let signed = setup.post_form("/signed", "a=1&time=1&sign=2").await;
    assert_eq!(signed.json(), single);
    // A callback names no application.
    for target in ["/claimed", "/signed?state=v1.x"] {
        let response = setup.raw("GET", target, &[]).await;
        response.assert_problem(403, "gateway_required");
    }
    for odd in ["", "a b", "é"] {
        let headers = [("x-gateway-app-id", id.as_str()), ("x-gateway-app", odd)];
        let response = setup.raw("GET", "/claimed", &headers).await;
        response.assert_problem(403, "gateway_required");
    }
}

#[tokio::test]
async fn without_a_gateway_every_request_is_the_single_applications() {
    let setup = Setup::with_own_endpoints("without_gateway = true").await;
    let forged = [("x-gateway-app-id", "7"), ("x-gateway-app", "other")];
    for path in ["/claimed", "/signed"] {
        let response = setup.raw("GET", path, &forged).await;
        assert_eq!(response.json(), json!([0, null, "Shop"]));
    }
}

#[tokio::test]
async fn parameters_are_those_of_the_query_then_of_the_form() {
    let setup = Setup::with_own_endpoints("").await;
    let read = async |target: &str, form: &str| setup.post_form(target, form).await;
    let both = read("/parameters?a=%2B+x&c=9", "b=&time=1&time=2").await;
    assert_eq!(both.json(), json!(["+ x", "", 9]));
    assert_eq!(
        read("/parameters?a=", "").await.json(),
        json!(["", null, null])
    );
    for (target, form, code) in [
        ("/parameters", "b=1", "param_missing"),
        ("/parameters?a=1&a=1", "", "param_invalid"),
        ("/parameters?a=1", "a=1", "param_invalid"),
        ("/parameters", "a=1&b=1&b=2", "param_invalid"),
        ("/parameters", "a=1&c=10", "param_invalid"),
        ("/parameters", "a=1&c=x", "param_invalid"),
        ("/parameters", "a=%", "params_malformed"),
        ("/parameters", &"a&".repeat(257), "params_too_many"),
    ] {
        read(target, form).await.assert_problem(400, code);
    }
}

#[tokio::test]
async fn language_id_and_client_are_those_of_the_request() {
    let setup = Setup::with_own_endpoints("").await;
    let headers = [
        ("acme-x-language", "ZH-tw"),
        ("x-request-id", "r-1"),
        ("x-forwarded-for", "192.0.2.1, 10.0.0.1"),
    ];
    let info = setup.call("GET", "/info", &headers).await;
    assert_eq!(info.json(), json!(["r-1", "zh-TW", "192.0.2.1"]));
    assert_eq!(info.headers["x-request-id"], "r-1");
    assert_eq!(info.header(header::CONTENT_LANGUAGE), "zh-TW");
    assert_eq!(info.header(header::CACHE_CONTROL), "no-store");
    let clock = setup.call("GET", "/clock", &[]).await;
    assert_eq!(clock.json(), 1_700_000_000_000_i64);
}

#[tokio::test]
async fn a_problem_of_its_own_is_rendered_in_every_language() {
    let setup = Setup::with_own_endpoints("").await;
    for language in Language::ALL {
        let headers = [
            ("acme-x-language", language.tag()),
            ("x-request-id", "r-1"),
            // Also for browsers: only `/login` has pages.
            ("accept", "text/html"),
        ];
        let full = setup.call("GET", "/full", &headers).await;
        assert_eq!(
            full.json(),
            json!({
                "type": "/problems/list_full",
                "title": LIST_FULL.texts.of(language).title,
                "status": 409,
                "code": "list_full",
                "detail": "a detail",
                "request_id": "r-1",
            })
        );
        assert_eq!(full.status, StatusCode::CONFLICT);
        assert_eq!(
            full.header(header::CONTENT_TYPE),
            "application/problem+json"
        );
        assert_eq!(full.header(header::CONTENT_LANGUAGE), language.tag());
        assert_eq!(full.headers[X_GATEWAY_PROBLEM], "list_full");
    }
}

#[tokio::test]
async fn own_endpoints_are_inside_every_layer() {
    let setup = Setup::with_own_endpoints(&format!("gateway_secret = \"{SECRET}\"")).await;
    for secret in [None, Some("other")] {
        let mut headers = vec![("x-gateway-app-id", "0")];
        headers.extend(secret.map(|secret| ("x-gateway-secret", secret)));
        let response = setup.raw("GET", "/full", &headers).await;
        response.assert_problem(403, "gateway_required");
        assert_eq!(response.headers["x-gateway-refused"], "secret");
    }
    let right = [("x-gateway-app-id", "0"), ("x-gateway-secret", SECRET)];
    setup
        .raw("GET", "/full", &right)
        .await
        .assert_problem(409, "list_full");
    let language = [right[0], right[1], ("acme-x-language", "ja")];
    let panicked = setup.raw("GET", "/panic", &language).await;
    panicked.assert_problem(500, "internal");
    assert_eq!(panicked.header(header::CONTENT_LANGUAGE), "ja");
}

#[tokio::test]
async fn bodies_methods_and_paths_follow_the_librarys_rules() {
    let setup = Setup::with_own_endpoints("").await;
    let large = "x".repeat(65 * 1024);
    setup
        .post_form("/parameters", &large)
        .await
        .assert_problem(413, "body_too_large");
    let json = Request::post("/parameters")
        .header("x-gateway-app-id", "0")
        .header("content-type", "application/json");
    setup
        .send(json.body(Body::from("{}")).unwrap())
        .await
        .assert_problem(415, "content_type_unsupported");
    for (method, path, allow) in [
        ("POST", "/full", "GET"),
        ("HEAD", "/full", "GET"),
        ("GET", "/parameters", "POST"),
        ("HEAD", "/parameters", "POST"),
        ("HEAD", "/who", "GET, POST"),
        ("DELETE", "/who", "GET, POST"),
    ] {
        let response = setup.call(method, path, &[]).await;
        assert_eq!(response.header(header::ALLOW), allow, "{method} {path}");
        if method == "HEAD" {
            assert_eq!(response.status, StatusCode::METHOD_NOT_ALLOWED);
        } else {
            response.assert_problem(405, "method_not_allowed");
        }
    }
    for path in ["/who/", "//who", "/WHO", "/%77ho", "/full/x"] {
        let response = setup.call("GET", path, &[]).await;
        response.assert_problem(404, "not_found");
    }
}

#[tokio::test]
async fn own_endpoints_use_the_snapshot_of_a_reload() {
    let mut setup = Setup::with_own_endpoints("").await;
    assert_eq!(setup.call("GET", "/claimed", &[]).await.json()[2], "Shop");
    let text = format!(
        "prefix = \"Acme\"\n[application]\nname = \"Renamed\"\n{}",
        testing::config_text_with_provider("http://127.0.0.1:1", "")
    );
    let old = setup.router.clone();
    let service = setup.service.reloaded(testing::parse(&text)).unwrap();
    setup.router = router::<Extractors>(service);
    assert_eq!(
        setup.call("GET", "/claimed", &[]).await.json()[2],
        "Renamed"
    );
    setup.router = old;
    assert_eq!(setup.call("GET", "/claimed", &[]).await.json()[2], "Shop");
}
