//! The console as a browser without scripts uses it, on both stores.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{ConnectInfo, Request},
};
use http::{HeaderMap, StatusCode, header};
use signpost_kit::clock::{Clock, SystemClock};
use signpost_protocol::{
    language::Language,
    sign::explain::{Explanation, Slip},
};
use signpost_store::testing::TestStore;
use tower::ServiceExt;
use url::form_urlencoded;

use signpost_proxy::testing::{MINIMAL, gateway, load};

use super::router;
use crate::{administration::tokens::Role, api::both_stores::Scene};

/// A console, and the browser of a user.
struct Browser {
    scene: Scene,
    router: Router,
    cookie: String,
    language: &'static str,
}

#[derive(Debug)]
struct Shown {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Shown {
    /// Where it leads to.
    fn location(&self) -> &str {
        let location = self.headers.get(header::LOCATION);
        location.map_or("", |location| location.to_str().unwrap())
    }

    /// The value of a hidden field, or of another input.
    fn value(&self, name: &str) -> &str {
        let field = format!(" name=\"{name}\" value=\"");
        let (_, rest) = self.text.split_once(&field).unwrap_or_else(|| {
            panic!("no field {name}: {}", self.text);
        });
        rest.split_once('"').unwrap().0
    }
}

impl Browser {
    async fn new(test_store: &TestStore) -> Self {
        let scene = Scene::new(test_store).await;
        Self {
            router: router(&scene.api, None, &scene.current),
            scene,
            cookie: String::new(),
            language: "en",
        }
    }

    async fn signed_in(test_store: &TestStore, role: Role) -> Self {
        let mut browser = Self::new(test_store).await;
        browser.sign_in(role).await;
        browser
    }

    async fn sign_in(&mut self, role: Role) {
        let token = self.scene.token(role).await;
        let shown = self.send("/sign-in", &[("token", &token)]).await;
        assert_eq!(
            (shown.status, shown.location()),
            (StatusCode::SEE_OTHER, "/")
        );
        let cookie = shown.headers[header::SET_COOKIE].to_str().unwrap();
        self.cookie = cookie.split(';').next().unwrap().to_owned();
    }

    async fn open(&self, path: &str) -> Shown {
        self.request(Request::get(path), Body::empty()).await
    }

    /// Sends a form.
    async fn send(&self, path: &str, fields: &[(&str, &str)]) -> Shown {
        let mut form = form_urlencoded::Serializer::new(String::new());
        let form = form.extend_pairs(fields).finish();
        self.request(Request::post(path), form.into()).await
    }

    async fn request(&self, request: http::request::Builder, body: Body) -> Shown {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let request = request
            .header(header::COOKIE, &self.cookie)
            .header(header::ACCEPT_LANGUAGE, self.language)
            .extension(ConnectInfo(address));
        let Ok(response) = self
            .router
            .clone()
            .oneshot(request.body(body).unwrap())
            .await;
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        Shown {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(body.into()).unwrap(),
        }
    }

    /// Creates an application by its form, and returns its path.
    async fn create(&self, name: &str) -> String {
        let created = self.send("/apps/new", &[("name", name)]).await;
        assert_eq!(created.status, StatusCode::OK, "{created:?}");
        let (_, rest) = created.text.split_once("href=\"/apps/").unwrap();
        let (_, rest) = rest.split_once("href=\"/apps/").unwrap_or(("", rest));
        format!("/apps/{}", rest.split_once('"').unwrap().0)
    }
}

#[tokio::test]
async fn a_page_accepts_head_and_names_what_it_accepts() {
    let test_store = TestStore::chosen();
    let browser = Browser::signed_in(&test_store, Role::Viewer).await;
    let head = browser.request(Request::head("/apps"), Body::empty()).await;
    assert_eq!((head.status, &*head.text), (StatusCode::OK, ""));
    for (method, path, allow) in [
        ("POST", "/apps", "GET, HEAD"),
        ("PUT", "/sign-in", "GET, HEAD, POST"),
        ("GET", "/sign-out", "POST"),
    ] {
        let request = Request::builder().method(method).uri(path);
        let shown = browser.request(request, Body::empty()).await;
        assert_eq!(shown.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert_eq!(shown.headers[header::ALLOW], allow, "{path}");
        let text = format!("This path accepts only {allow}.");
        assert!(shown.text.contains(&text), "{}", shown.text);
    }
}

const PAGES: [&str; 11] = [
    "/",
    "/apps",
    "/versions",
    "/versions/retirement?version=v1",
    "/live",
    "/doctor/none",
    "/audit",
    "/settings",
    "/settings/reload",
    "/settings/tokens",
    "/apps?search=a",
];

#[tokio::test]
async fn every_page_is_shown_in_every_language_and_no_viewer_gets_a_form_of_a_change() {
    let test_store = TestStore::chosen();
    let mut admin = Browser::signed_in(&test_store, Role::Admin).await;
    let app = admin.create("The shop").await;
    let all = PAGES.into_iter().chain([&*app]);
    for language in Language::ALL {
        admin.language = language.tag();
        for path in all.clone().chain(["/apps/new", "/apps/import", "/logins"]) {
            let shown = admin.open(path).await;
            assert_eq!(shown.status, StatusCode::OK, "{path}: {shown:?}");
            let lang = format!("<html lang=\"{}\">", language.tag());
            assert!(shown.text.contains(&lang), "{path}: {shown:?}");
            let text = shown.text.replace("console.", "");
            assert!(
                !text.contains("console_"),
                "a text is missing: {path}: {text}"
            );
        }
    }
    let mut viewer = Browser::new(&test_store).await;
    viewer.router = admin.router.clone();
    viewer.sign_in(Role::Viewer).await;
    for path in all {
        let shown = viewer.open(path).await;
        assert_eq!(shown.status, StatusCode::OK, "{path}");
        let forms = shown.text.matches("method=\"post\"").count();
        // What the doctor examines, it does not change.
        let expected = if path.starts_with("/doctor") { 2 } else { 1 };
        assert_eq!(forms, expected, "it only signs out: {path}: {shown:?}");
    }
    let created = viewer.send("/apps/new", &[("name", "x")]).await;
    assert_eq!(created.status, StatusCode::FORBIDDEN);
    assert!(created.text.contains("role_insufficient"), "{created:?}");
    // A form that would fail is not shown.
    for path in ["/apps/new", "/apps/import", "/logins"] {
        let shown = viewer.open(path).await;
        assert_eq!(shown.status, StatusCode::FORBIDDEN, "{path}: {shown:?}");
        assert_eq!(shown.text.matches("<form").count(), 1, "{path}: {shown:?}");
    }
    // The application of the console is an admin's.
    let row = "ident,key,name\nconsole,4283fefc63f0cd0e873a0000c6d07ef7,The console";
    admin.send("/apps/import", &[("file", row)]).await;
    viewer.sign_in(Role::Operator).await;
    for (path, forms) in [("/apps/console", 1), (&*app, 7)] {
        let shown = viewer.open(path).await;
        assert_eq!(shown.text.matches("<form").count(), forms, "{path}");
    }
}

#[tokio::test]
async fn a_list_is_paged_forth_and_back() {
    let test_store = TestStore::chosen();
    let browser = Browser::signed_in(&test_store, Role::Operator).await;
    let rows = (1..=120_u128).map(|number| {
        let key = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128.wrapping_mul(number);
        format!("team-{number:03},{key:032x},Team {number:03}\n")
    });
    let file = format!("ident,key,name\n{}", rows.collect::<String>());
    browser.send("/apps/import", &[("file", &file)]).await;
    let link = |shown: &Shown, rel: &str| {
        let (_, rest) = shown.text.split_once(&format!("rel=\"{rel}\" href=\""))?;
        Some(rest.split_once('"').unwrap().0.replace("&amp;", "&"))
    };
    let mut path = "/apps?search=Team".to_owned();
    let mut pages = Vec::new();
    loop {
        let shown = browser.open(&path).await;
        let next = link(&shown, "next");
        pages.push(shown);
        match next {
            Some(next) => path = next,
            None => break,
        }
    }
    assert_eq!(pages.len(), 3);
    assert_eq!(link(&pages[0], "prev"), None);
    for number in [2, 1] {
        let back = link(&pages[number], "prev").unwrap();
        assert_eq!(
            browser.open(&back).await.text,
            pages[number - 1].text,
            "{back}"
        );
    }
}

#[tokio::test]
async fn a_form_that_is_not_accepted_keeps_its_reason_and_what_else_was_filled_in() {
    let test_store = TestStore::chosen();
    let browser = Browser::signed_in(&test_store, Role::Admin).await;
    let app = browser.create("Shop").await;
    let tokens = browser.open("/settings/tokens").await;
    let (_, rest) = tokens
        .text
        .split_once("action=\"/settings/tokens/")
        .unwrap();
    let revoke = format!("/settings/tokens/{}", rest.split_once('"').unwrap().0);
    let of_app = |change: &str| format!("{app}/{change}");
    let long = "x".repeat(201);
    let why = "after the leak";
    for (path, fields) in [
        ("/apps/new", vec![("name", &*long), ("reason", why)]),
        ("/apps/import", vec![("file", "ident"), ("reason", why)]),
        (
            "/logins",
            vec![("provider", "one"), ("username", "nobody"), ("reason", why)],
        ),
        (
            "/settings/tokens",
            vec![("token_name", &*long), ("days", "7"), ("reason", why)],
        ),
        (&*revoke, vec![("reason", &*long)]),
        ("/settings/reload", vec![("reason", &*long)]),
        (
            &*of_app("update"),
            vec![("name", "Shop"), ("revision", "9"), ("reason", why)],
        ),
        (
            &*of_app("rotate"),
            vec![("overlap_hours", "999"), ("revision", "1"), ("reason", why)],
        ),
        (
            &*of_app("disable"),
            vec![("revision", "9"), ("reason", why)],
        ),
        (&*of_app("logout"), vec![("reason", &*long)]),
        (
            &*of_app("delete"),
            vec![("confirm", "Store"), ("revision", "1"), ("reason", why)],
        ),
        (
            "/versions/drain?backend=v1&address=127.0.0.1%3A7001",
            vec![("minutes", "77"), ("reason", why)],
        ),
    ] {
        let shown = browser.send(path, &fields).await;
        let action = format!("action=\"{}\"", path.replace('&', "&amp;"));
        let (_, form) = shown.text.split_once(&action).unwrap();
        let (form, _) = form.split_once("</form>").unwrap();
        // The page shows the present revision.
        for (name, value) in fields.into_iter().filter(|(name, _)| *name != "revision") {
            let kept = form.contains(&format!("name=\"{name}\" value=\"{value}\""))
                || form.contains(&format!(">{value}</textarea>"));
            assert!(kept, "{path}: {name}: {shown:?}");
        }
    }
    let tokens = browser.open("/settings/tokens").await;
    assert!(
        tokens.text.contains("no other valid token has it"),
        "{tokens:?}"
    );
    assert!(!tokens.text.contains("Users see it"), "{tokens:?}");
}

#[tokio::test]
async fn logins_of_an_application_and_of_an_account_are_ended() {
    let test_store = TestStore::chosen();
    let browser = Browser::signed_in(&test_store, Role::Operator).await;
    let app = browser.create("Shop").await;
    let fields = [("reason", "a stolen laptop")];
    let ended = browser.send(&format!("{app}/logout"), &fields).await;
    assert_eq!(ended.location(), format!("{app}?done=logout"));
    let shown = browser.open(ended.location()).await;
    assert!(shown.text.contains("The logins have ended."), "{shown:?}");

    let account = [
        ("provider", "one"),
        ("username", "ada"),
        ("reason", "a stolen laptop"),
    ];
    let unknown = browser.send("/logins", &account).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert!(unknown.text.contains("account_not_found"), "{unknown:?}");
    let row = "INSERT INTO accounts (provider, username, created_at) VALUES ('one', 'ada', 0)";
    browser.scene.store.execute(row, Vec::new()).await.unwrap();
    let ident = app.rsplit_once('/').unwrap().1;
    for only_app in ["", ident] {
        let fields = [&account[..], &[("ident", only_app)]].concat();
        let ended = browser.send("/logins", &fields).await;
        assert_eq!(ended.location(), "/logins?done=logout", "{ended:?}");
    }
    let audit = browser.open("/audit").await;
    for text in ["app.logout", "account.logout", "one/ada", "a stolen laptop"] {
        assert!(audit.text.contains(text), "{text}: {audit:?}");
    }
}

#[tokio::test]
async fn a_rejected_request_has_seconds_the_name_of_its_application_and_words() {
    let test_store = TestStore::chosen();
    let mut browser = Browser::signed_in(&test_store, Role::Operator).await;
    let app = browser.create("Shop").await;
    let ident = app.rsplit_once('/').unwrap().1;
    browser.language = "ja";
    let two = Explanation {
        slip: Slip::KeyOrValue,
        second: Some(Slip::Cover("request")),
    };
    browser.scene.reject("0001", ident, two);
    browser
        .scene
        .reject("0002", ident, Slip::Preset("wechat").into());
    let words = "署名が一致しません";
    for path in ["/live", &*app, "/doctor/0001"] {
        let shown = browser.open(path).await;
        for text in [
            words,
            "Shop</a> <code>",
            "sign_mismatch",
            ":06 UTC",
            "2020-09-13 12:26",
        ] {
            let text = text.replace(" UTC", "\u{a0}UTC");
            assert!(shown.text.contains(&text), "{path}: {text}: {shown:?}");
        }
        // It would replace what is shown.
        let mut links = shown.text.split("<a ").skip(1);
        let link = links.find(|link| link.split('>').next().unwrap().contains("aria-label"));
        assert_eq!(link, None, "{path}");
    }
    let shown = browser.open("/doctor/0001").await;
    // Each sentence with what it was told of.
    for text in ["signpost sign --canonical", "メソッド"] {
        assert!(shown.text.contains(text), "{text}: {shown:?}");
    }
    assert!(!shown.text.contains("hint_"), "{shown:?}");
    let shown = browser.open("/doctor/0002").await;
    assert!(shown.text.contains("wechat"), "{shown:?}");
    assert!(!shown.text.contains("hint_"), "{shown:?}");
}

#[tokio::test]
async fn versions_say_which_is_a_shadow_a_bridge_and_what_is_proven() {
    let test_store = TestStore::chosen();
    let browser = Browser::signed_in(&test_store, Role::Viewer).await;
    // With a store, which a shadow needs.
    let (start, _) = MINIMAL.split_once("[application]").unwrap();
    let file = format!(
        "{start}store = 'sqlite:x.db'\n[applications]\n[versions.v0]\nbridge = 'v2'\n\
         [versions.v1]\nbackend = '127.0.0.1:7001'\n[versions.v2]\nbackend = '127.0.0.1:7002'\n\
         [versions.v1.shadow]\nto = 'v2'\npaths = ['/user']\nbackend = '127.0.0.1:7009'\n\
         [[versions.v1.endpoints]]\npaths = ['/old/**']\nmethods = ['POST']\nsunset = '2020-01-01'\n"
    );
    let mut config = load(MINIMAL).unwrap();
    config.versions = load(&file).unwrap().versions;
    let mut with_shadow = gateway(config);
    let state = Arc::clone(&browser.scene.current.load().state);
    with_shadow.state = state;
    browser.scene.current.store(Arc::new(with_shadow));
    let shown = browser.open("/versions").await;
    for text in [
        "Bridge: the backends of v2",
        "Shadow v2",
        "not proven",
        "127.0.0.1:7009",
        "<code>POST /old/**</code> <span class=\"state warn\">past its sunset</span>",
        "2020-01-01T00:00:00Z",
    ] {
        assert!(shown.text.contains(text), "{text}: {shown:?}");
    }
    let link = "href=\"/versions/retirement?version=v1\"";
    assert!(shown.text.contains(link), "{shown:?}");
    let retirement = browser
        .open("/versions/retirement?version=v1&at=2099-03-01")
        .await;
    for text in [
        "Retirement of v1",
        "not ready",
        "2099-03-01T00:00:00Z",
        "paths with dates of their own: POST /old/**",
        "It has no sunset.",
    ] {
        assert!(retirement.text.contains(text), "{text}: {retirement:?}");
    }
    for query in ["version=%3Cv9%3E", "version=v1&at=soon"] {
        let refused = browser.open(&format!("/versions/retirement?{query}")).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{refused:?}");
        assert!(refused.text.contains("param_invalid"), "{refused:?}");
        assert!(!refused.text.contains("<v9>"), "{refused:?}");
    }
    let hour = SystemClock.now().as_millis() / 3_600_000 * 3_600_000;
    let row = "INSERT INTO shadow_tallies (writer, hour, version, target, route, changes, tally) \
               VALUES ($1, $2, 'v1', 'v2', 'GET /user', '', '{\"pairs\":1}')";
    let values = signpost_store::values![&[0_u8; 16], hour];
    browser.scene.store.execute(row, values).await.unwrap();
    let shown = browser.open("/versions").await;
    assert!(shown.text.contains(">proven<"), "{shown:?}");
}

#[tokio::test]
async fn a_session_begins_with_a_right_token_and_ends_with_it_or_by_signing_out() {
    let test_store = TestStore::chosen();
    let mut browser = Browser::new(&test_store).await;
    let asked = browser.open("/apps?search=a%20b").await;
    assert_eq!(asked.status, StatusCode::SEE_OTHER);
    assert_eq!(asked.location(), "/sign-in?to=%2Fapps%3Fsearch%3Da%2520b");
    let form = browser.open(asked.location()).await;
    assert_eq!(form.value("to"), "/apps?search=a%20b");
    for wrong in ["sp_wrong", "", "\u{e9}", "a\nb"] {
        let rejected = browser.send("/sign-in", &[("token", wrong)]).await;
        assert_eq!(
            rejected.status,
            StatusCode::UNAUTHORIZED,
            "{wrong}: {rejected:?}"
        );
        assert!(rejected.headers.get(header::SET_COOKIE).is_none());
    }
    browser.sign_in(Role::Viewer).await;
    assert_eq!(browser.open("/").await.status, StatusCode::OK);
    // A second sign-in ends the first session.
    let first = browser.cookie.clone();
    let token = browser.scene.token(Role::Operator).await;
    let again = browser
        .send(
            "/sign-in",
            &[("token", &token), ("to", "//attacker.example")],
        )
        .await;
    assert_eq!(again.location(), "/");
    assert_eq!(browser.open("/").await.location(), "/sign-in", "{first}");
    let cookie = again.headers[header::SET_COOKIE].to_str().unwrap();
    browser.cookie = cookie.split(';').next().unwrap().to_owned();
    assert_eq!(browser.open("/").await.status, StatusCode::OK);
    // A cookie that was stolen ends with the session.
    let out = browser.send("/sign-out", &[]).await;
    assert_eq!(out.location(), "/sign-in?done=signed_out");
    assert_eq!(browser.open("/").await.location(), "/sign-in");
    let shown = browser.send("/apps/new", &[("name", "x")]).await;
    assert_eq!(shown.location(), "/sign-in");
}

#[tokio::test]
async fn a_revoked_token_ends_its_session() {
    let test_store = TestStore::chosen();
    let browser = Browser::signed_in(&test_store, Role::Admin).await;
    let tokens = browser.open("/settings/tokens").await;
    let (_, rest) = tokens
        .text
        .split_once("action=\"/settings/tokens/")
        .unwrap();
    let path = format!("/settings/tokens/{}", rest.split_once('"').unwrap().0);
    let revoked = browser.send(&path, &[("reason", "lost")]).await;
    assert_eq!(revoked.location(), "/settings/tokens?done=token_revoked");
    let ended = browser.open("/settings/tokens").await;
    assert_eq!(ended.location(), "/sign-in?done=session_ended");
}

#[tokio::test]
async fn an_application_is_created_changed_rotated_and_deleted() {
    let test_store = TestStore::chosen();
    let browser = Browser::signed_in(&test_store, Role::Operator).await;
    let form = browser.open("/apps/new").await;
    let fields = [
        ("name", "The shop"),
        ("return_to", "https://a.example\r\nhttps://b.example"),
        ("rate_limit", "10/20"),
        ("algorithm", "hmac-sha256"),
        ("once", form.value("once")),
    ];
    let created = browser.send("/apps/new", &fields).await;
    let key = |shown: &Shown| {
        let (_, rest) = shown.text.split_once("<code id=\"key\">").unwrap();
        rest.split_once('<').unwrap().0.to_owned()
    };
    assert_eq!(created.headers[header::CACHE_CONTROL], "no-store");
    assert!(created.text.contains("import signpost"), "{created:?}");
    // Sent twice, it is made once, and the same is shown.
    assert_eq!(
        key(&browser.send("/apps/new", &fields).await),
        key(&created)
    );
    let list = browser.open("/apps").await;
    assert_eq!(list.text.matches("The shop").count(), 1, "{list:?}");
    let (_, rest) = list.text.split_once("scope=\"row\"><a href=\"").unwrap();
    let path = rest.split_once('"').unwrap().0;
    let of = |change: &str| format!("{path}/{change}");

    let shown = browser.open(path).await;
    for text in ["https://b.example", "10/20", "algorithm = hmac-sha256"] {
        assert!(shown.text.contains(text), "{text}: {shown:?}");
    }
    let update = [
        ("name", "The <b>shop</b>"),
        ("revision", "1"),
        ("reason", "a new name"),
    ];
    let updated = browser.send(&of("update"), &update).await;
    assert_eq!(
        updated.location(),
        format!("{path}?done=app_update"),
        "{updated:?}"
    );
    let shown = browser.open(updated.location()).await;
    assert!(
        shown.text.contains("The application was changed."),
        "{shown:?}"
    );
    assert!(shown.text.contains("The &lt;b&gt;shop"), "{shown:?}");
    assert!(
        !shown.text.contains("<b>") && !shown.text.contains("<dd>10/20"),
        "{shown:?}"
    );
    assert!(shown.text.contains("console 127.0.0.1"), "{shown:?}");
    // A form that was written for another revision keeps what was filled in, beside what is now.
    let stale = [("name", "Mine"), ("revision", "1")];
    let stale = browser.send(&of("update"), &stale).await;
    assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED);
    assert_eq!(
        (stale.value("name"), stale.value("revision")),
        ("Mine", "2")
    );
    assert!(stale.text.contains("<h1>The &lt;b&gt;shop"), "{stale:?}");

    let rotated = browser
        .send(&of("rotate"), &[("revision", "2"), ("overlap_hours", "1")])
        .await;
    assert_ne!(key(&rotated), key(&created));
    let ended = browser.send(&of("end-overlap"), &[("revision", "3")]).await;
    assert_eq!(ended.location(), format!("{path}?done=app_end-overlap"));
    for (change, revision) in [("disable", "4"), ("enable", "5")] {
        let changed = browser.send(&of(change), &[("revision", revision)]).await;
        assert_eq!(changed.status, StatusCode::SEE_OTHER, "{changed:?}");
    }
    let extend = |revision, until| [("revision", revision), ("version", "v1"), ("until", until)];
    let past = browser
        .send(&of("extend"), &extend("6", "2020-01-01"))
        .await;
    assert!(past.text.contains("param_invalid"), "{past:?}");
    let extended = browser
        .send(&of("extend"), &extend("6", "2099-03-01"))
        .await;
    assert_eq!(
        extended.location(),
        format!("{path}?done=app_update"),
        "{extended:?}"
    );
    for page in [path, "/versions"] {
        let shown = browser.open(page).await;
        assert!(
            shown.text.contains("2099-03-01T00:00:00Z"),
            "{page}: {shown:?}"
        );
    }
    let extended = browser.send(&of("extend"), &extend("7", "")).await;
    assert_eq!(extended.status, StatusCode::SEE_OTHER, "{extended:?}");
    let shown = browser.open(path).await;
    assert!(!shown.text.contains("<dt>Longer use"), "{shown:?}");
    let delete = |name| [("revision", "8"), ("confirm", name)];
    let kept = browser.send(&of("delete"), &delete("The shop")).await;
    assert!(kept.text.contains("param_invalid"), "{kept:?}");
    let deleted = browser
        .send(&of("delete"), &delete("The <b>shop</b>"))
        .await;
    assert_eq!(deleted.location(), "/apps?done=app_delete");
    assert_eq!(browser.open(path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(
        browser.send(&of("explode"), &[]).await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn what_is_not_accepted_is_shown_again_with_the_problem() {
    let test_store = TestStore::chosen();
    let browser = Browser::signed_in(&test_store, Role::Admin).await;
    let name = "x".repeat(65);
    for (path, fields, code, kept) in [
        (
            "/apps/new",
            [("name", &*name), ("rate_limit", "1/2")],
            "param_invalid",
            "1/2",
        ),
        (
            "/apps/import",
            [("file", "ident,key\nshop,1"), ("", "")],
            "import_invalid",
            "shop,1",
        ),
        (
            "/settings/tokens",
            [("token_name", "a"), ("days", "abc")],
            "request_malformed",
            "abc",
        ),
    ] {
        let shown = browser.send(path, &fields).await;
        assert!(shown.status.is_client_error(), "{path}: {shown:?}");
        assert!(
            shown.text.contains(code) && shown.text.contains(kept),
            "{path}: {shown:?}"
        );
    }
    let row = "ident,key,name\nshop,4283fefc63f0cd0e873a0000c6d07ef7,The shop";
    let imported = browser.send("/apps/import", &[("file", row)]).await;
    assert!(imported.text.contains("Imported: 1"), "{imported:?}");
    assert!(browser.open("/apps").await.text.contains("/apps/shop"));
    let filtered = browser
        .open("/audit?since=yesterday&actor=%22%3E%3Cscript%3E")
        .await;
    assert_eq!(filtered.status, StatusCode::BAD_REQUEST);
    assert!(!filtered.text.contains("<script>"), "{filtered:?}");
    let missing = browser.open("/nothing").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    assert!(missing.text.contains("<main"), "{missing:?}");
    let huge = browser
        .send("/apps/import", &[("file", &"x".repeat(3 * 1024 * 1024))])
        .await;
    assert_eq!(huge.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn pages_cannot_be_framed_and_take_no_forms_of_other_sites() {
    let test_store = TestStore::chosen();
    let browser = Browser::signed_in(&test_store, Role::Operator).await;
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "http://127.0.0.1:3000"),
        ("origin", "null"),
    ] {
        let request = Request::post("/apps/new").header(name, value);
        let shown = browser.request(request, "name=x".into()).await;
        assert_eq!(shown.status, StatusCode::FORBIDDEN, "{name}: {value}");
    }
    assert!(
        browser
            .open("/apps")
            .await
            .text
            .contains("no application yet")
    );
    let page = browser.open("/").await;
    let policy = page.headers[header::CONTENT_SECURITY_POLICY]
        .to_str()
        .unwrap();
    for word in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
    ] {
        assert!(policy.contains(word), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.headers[header::X_FRAME_OPTIONS], "DENY");
    let (_, rest) = page
        .text
        .split_once("<link rel=\"stylesheet\" href=\"")
        .unwrap();
    let style = browser.open(rest.split_once('"').unwrap().0).await;
    assert_eq!(
        style.headers[header::CONTENT_TYPE],
        "text/css; charset=utf-8"
    );
    assert!(style.text.contains("--accent"), "{style:?}");
    assert_eq!(
        browser.open("/api/v1/apps").await.status,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        browser.open("/problems/app_not_found").await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn the_doctor_shows_what_is_wrong_and_the_right_request() {
    let test_store = TestStore::chosen();
    let browser = Browser::signed_in(&test_store, Role::Operator).await;
    let request = "/user?b=%3Cb%3E&time=1600000000000&sign=00112233445566778899aabbccddeeff";
    let found = browser.send("/doctor", &[("request", request)]).await;
    assert_eq!(found.status, StatusCode::OK, "{found:?}");
    for text in [
        "The gateway rejects this request.",
        "time_out_of_window",
        "sign_mismatch",
        "b=%3Cb%3E&amp;time=1600000000000&lt;APP_KEY&gt;",
        "<code>&lt;b&gt;</code>",
        "id=\"right-request\"",
    ] {
        assert!(found.text.contains(text), "{text}: {found:?}");
    }
    // The code of several lines can be copied.
    assert!(found.text.contains("import signpost\n"), "{found:?}");
    assert!(!found.text.contains("\\u{a}"), "{found:?}");
    let other = browser.send("/doctor", &[("request", "hello")]).await;
    assert_eq!(other.status, StatusCode::BAD_REQUEST);
    assert!(other.text.contains(">hello</textarea>"), "{other:?}");
    let gone = browser.open("/doctor?request_id=%3Cb%3E").await;
    assert!(
        gone.text.contains("No gateway has this request"),
        "{gone:?}"
    );
}

#[tokio::test]
async fn what_strangers_send_is_shown_as_text() {
    let test_store = TestStore::chosen();
    let browser = Browser::signed_in(&test_store, Role::Operator).await;
    let app = browser.create("Shop").await;
    browser.scene.end("0001", 400);
    let day = SystemClock.now().as_millis() / 86_400_000;
    let id = "SELECT id FROM applications";
    for rows in [
        format!(
            "INSERT INTO usage_counts (day, version, application, is_signed, source, requests) VALUES ({day}, 'v1', ({id}), $1, 'default', 1)"
        ),
        format!(
            "INSERT INTO usage_clients (version, application, is_signed, last_seen, address, user_agent) VALUES ('v1', ({id}), $1, 1, '::1', '<b>agent</b>')"
        ),
    ] {
        let values = signpost_store::values![true];
        browser.scene.store.execute(&rows, values).await.unwrap();
    }
    for (path, shown) in [
        ("/live", "/a\\u{202e}&lt;b&gt;"),
        ("/doctor/0001", "/a\\u{202e}&lt;b&gt;"),
        ("/versions", "&lt;b&gt;agent"),
        (&*app, "&lt;b&gt;agent"),
    ] {
        let page = browser.open(path).await;
        assert!(page.text.contains(shown), "{path}: {page:?}");
        assert!(!page.text.contains("<b>"), "{path}: {page:?}");
    }
}

#[tokio::test]
async fn a_form_that_its_user_may_not_send_writes_no_row() {
    let test_store = TestStore::chosen();
    let browser = Browser::signed_in(&test_store, Role::Viewer).await;
    for path in ["/apps/new", "/versions/drain", "/settings/reload"] {
        let shown = browser
            .send(path, &[("once", "k1"), ("name", "Shop")])
            .await;
        assert_eq!(shown.status, StatusCode::FORBIDDEN, "{path}: {shown:?}");
    }
    let rows = "SELECT response FROM idempotency";
    let row: Option<(Option<Vec<u8>>,)> = browser.scene.store.row(rows, Vec::new()).await.unwrap();
    assert!(row.is_none());
}

#[tokio::test]
async fn a_form_has_the_limit_of_a_call_and_an_import_that_of_a_file() {
    let test_store = TestStore::chosen();
    let browser = Browser::signed_in(&test_store, Role::Operator).await;
    let long = "x".repeat(100_000);
    for path in ["/doctor", "/apps/new"] {
        let shown = browser.send(path, &[("once", "k1"), ("text", &long)]).await;
        assert_eq!(
            shown.status,
            StatusCode::PAYLOAD_TOO_LARGE,
            "{path}: {shown:?}"
        );
    }
    let file = (1..=1000).map(|number| {
        let key = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128.wrapping_mul(number);
        format!("team-{number},{key:032x},Team {number}\n")
    });
    let file = format!("ident,key,name\n{}", file.collect::<String>());
    // Two calls of the token run: an import needs none of their places.
    let _turns = browser.scene.all_turns().await;
    let fields = [("once", "k2"), ("file", &*file)];
    let shown = browser.send("/apps/import", &fields).await;
    assert_eq!(shown.status, StatusCode::OK, "{shown:?}");
}

#[tokio::test]
async fn a_new_key_and_its_application_have_the_card_of_the_api() {
    let test_store = TestStore::chosen();
    let browser = Browser::signed_in(&test_store, Role::Operator).await;
    let fields = [
        ("name", "Shop"),
        ("preset", "top"),
        ("algorithm", "hmac-sha256"),
        ("cover", "request"),
    ];
    let created = browser.send("/apps/new", &fields).await;
    let (_, rest) = created.text.rsplit_once("href=\"/apps/").unwrap();
    let ident = rest.split_once('"').unwrap().0;
    let shown = browser.open(&format!("/apps/{ident}")).await;
    let token = browser.scene.token_of("reader", Role::Viewer).await;
    let card = format!("/api/v1/apps/{ident}/card");
    let card = browser.scene.get(&card, &token).await.body;
    let address = card["address"].as_str().unwrap();
    let command = format!(
        "signpost call --url {address} --app {ident} --key file:app.key --preset top --algorithm hmac-sha256 \
         --cover request --version v1 POST /login"
    );
    assert_eq!(card["command"], command, "{card}");
    let code = card["code"].as_array().unwrap().iter();
    let mut texts: Vec<_> = code
        .map(|sample| sample["code"].as_str().unwrap())
        .collect();
    assert_eq!(texts.len(), 7);
    texts.extend([&*command, card["first_call"][4].as_str().unwrap()]);
    for text in texts {
        assert!(text == command || text.contains("hmac"), "{text}");
        let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
        let escaped = escaped.replace('>', "&gt;").replace('"', "&quot;");
        for page in [&created, &shown] {
            assert!(page.text.contains(&escaped), "{text}: {}", page.text);
        }
    }
}
