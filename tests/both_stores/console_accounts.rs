//! Signing in to the console by the login service: forged hosts, injected tickets, operators who want to be admins, and what ends
//! a session.

use std::{
    fs,
    time::{Duration, Instant},
};

use end_to_end::{
    browser::{Browser, Decision, param},
    raw_connection::RawConnection,
    response::Response,
    signed_client::{SignedClient, http_client},
    stack::Stack,
    waiting::{WAIT_TIMEOUT, until},
};
use reqwest::{RequestBuilder, Url};
use serde_json::{Value, json};
use tokio::time::timeout;

/// The key of the console's application.
const KEY: &str = "00112233445566778899aabbccddeeff";
/// The sandbox provider's identifier of its user ada.
const ADA: &str = "{fdee430d-40bd-57de-eac1-86cd9790033d}";
const SESSION: &str = "__Host-signpost=";

struct Console {
    stack: Stack,
    origin: String,
}

/// A sign-in that was begun in a browser.
struct Begun {
    /// The browser's cookie.
    cookie: String,
    /// Where the browser is sent.
    login: Url,
    /// The login's challenge, which is also the `state`.
    challenge: String,
}

impl Console {
    /// A console that lets ada sign in as an admin.
    async fn start() -> Self {
        let keys = format!(
            "[management.api]\n[management.console]\napplication = \"console\"\n\
             [management.console.accounts.Ada]\nprovider = \"bitbucket\"\nusername = \"{ADA}\"\nrole = \"admin\"\n"
        );
        let stack = Stack::builder().multi().gateway(&keys).start().await;
        let origin = format!("http://{}", stack.addresses().management);
        let app =
            json!({ "ident": "console", "key": KEY, "name": "Console", "return_to": [origin] });
        let file = stack.folder().join("console.jsonl");
        fs::write(&file, format!("{app}\n")).unwrap();
        let imported = stack.command(&["app", "import", &file.display().to_string()]);
        assert!(imported.status.success(), "{imported:?}");
        Self { stack, origin }
    }

    /// A client that has the key of the console's application.
    fn client(&self) -> SignedClient {
        self.stack.client().with_app("console").with_key(KEY)
    }

    fn get(&self, path: &str) -> RequestBuilder {
        http_client().get(format!("{}{path}", self.origin))
    }

    /// A page, for the browser with this cookie.
    async fn page(&self, path: &str, cookie: &str) -> Response {
        let call = self.get(path).header("cookie", cookie);
        Response::read(call.send().await.unwrap()).await
    }

    async fn begin(&self) -> Begun {
        let begun = self.page("/sign-in/account", "").await;
        let login: Url = begun.header("location").unwrap().parse().unwrap();
        let challenge = param(&login, "code_challenge").unwrap();
        Begun {
            cookie: set(&begun, "__Host-signpost-sign-in=").unwrap(),
            login,
            challenge,
        }
    }

    /// Lets ada log in from the provider's page, and returns the ticket, which nobody has used.
    async fn ticket(&self, login: &str) -> String {
        let mut browser = Browser::for_data();
        let provider = browser.open(login).await;
        let back = browser.decide(&provider, "ada", Decision::Allow).await;
        let done = browser.step(back.redirect().unwrap().as_str()).await;
        done.redirect_param("ticket").expect("a ticket")
    }

    async fn come_back(&self, cookie: &str, state: &str, ticket: &str) -> Response {
        let path = format!("/sign-in/return?state={state}&ticket={ticket}");
        self.page(&path, cookie).await
    }

    /// Lets ada sign in, and returns the session's cookie.
    async fn sign_in(&self) -> String {
        let begun = self.begin().await;
        let ticket = self.ticket(begun.login.as_str()).await;
        let done = self.come_back(&begun.cookie, &begun.challenge, &ticket);
        let done = done.await;
        set(&done, SESSION).unwrap_or_else(|| panic!("{}", done.summary()))
    }

    async fn call(&self, path: &str, token: &str, body: &Value) -> Response {
        let address = format!("{}{path}", self.origin);
        let call = http_client().post(address).bearer_auth(token).json(body);
        Response::read(call.send().await.unwrap()).await
    }

    fn run(&self, arguments: &[&str]) {
        let output = self.stack.command(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
}

/// The pair of a cookie that a response sets.
fn set(response: &Response, name: &str) -> Option<String> {
    let cookies = response.headers.get_all("set-cookie").iter();
    let mut cookies = cookies.map(|cookie| cookie.to_str().unwrap());
    let set = cookies.find(|cookie| cookie.starts_with(name) && !cookie.contains("Max-Age=0"))?;
    set.split(';').next().map(str::to_owned)
}

#[tokio::test]
async fn a_sign_in_is_signed_for_the_consoles_own_origin_and_a_challenge() {
    let console = Console::start().await;
    let begun = console.begin().await;
    let expected = format!(
        "{}/sign-in/return?state={}",
        console.origin, begun.challenge
    );
    assert_eq!(param(&begun.login, "return_to"), Some(expected));
    assert_eq!(begun.challenge.len(), 43);
    assert!(
        !begun
            .login
            .as_str()
            .contains(begun.cookie.split_once('=').unwrap().1)
    );
    let ticket = console.ticket(begun.login.as_str()).await;
    let done = console.come_back(&begun.cookie, &begun.challenge, &ticket);
    let session = set(&done.await, SESSION).unwrap();
    assert_eq!(console.page("/settings", &session).await.status, 200);
}

#[tokio::test]
async fn a_host_that_is_more_than_a_host_is_misdirected_and_nothing_is_signed() {
    let console = Console::start().await;
    let management = console.stack.addresses().management;
    for (target, host) in [
        ("/sign-in/account", "x&ticket=y@localhost"),
        ("/sign-in/account", "x&ticket=y@127.0.0.1:8081"),
        ("/sign-in/account", "@localhost"),
        ("/sign-in/account", "localhost:&ticket=y"),
        ("/sign-in/account", "localhost:80&ticket=y"),
        ("/sign-in/account", "localhost?ticket=y"),
        ("/sign-in/account", "localhost/x"),
        ("/sign-in/account", "localhost#x"),
        ("/sign-in/account", "localhost\\x"),
        ("/sign-in/account", "local host"),
        ("/sign-in/account", "[::1]x"),
        ("/sign-in/account", ""),
        ("http://x@localhost/sign-in/account", "localhost"),
        ("/healthz", "x@localhost"),
    ] {
        let mut connection = RawConnection::open(management).await;
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        connection.send(request.as_bytes()).await;
        let response = connection.response().await.expect("a response");
        assert_eq!(response.status, 421, "{target} {host}: {}", response.head);
        assert!(!response.head.contains("return_to"), "{}", response.head);
    }
    // What names no host is misdirected, too. Of two hosts, that of the target counts.
    let both = "GET http://localhost:1/sign-in/account HTTP/1.1\r\nHost: localhost:2\r\n\
                X-Forwarded-Host: attacker.example\r\n\r\n";
    let signed = "return_to=http%3A%2F%2Flocalhost%3A1%2Fsign-in%2Freturn";
    for (request, status, expected) in [
        ("GET /sign-in/account HTTP/1.0\r\n\r\n", 421, ""),
        (both, 303, signed),
    ] {
        let mut connection = RawConnection::open(management).await;
        connection.send(request.as_bytes()).await;
        let response = connection.response().await.expect("a response");
        assert_eq!(response.status, status, "{}", response.head);
        assert!(response.head.contains(expected), "{}", response.head);
    }
}

#[tokio::test]
async fn a_ticket_that_another_browser_began_signs_nobody_in() {
    let console = Console::start().await;
    let return_to = format!("{}/sign-in/return?state=x", console.origin);
    // The attacker signs with the key: the victim's login has no challenge, or another one.
    let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    for further in [vec![], vec![("code_challenge", challenge)]] {
        let params = [vec![("return_to", &*return_to)], further].concat();
        let login = console.client().login_url(&params);
        let ticket = console.ticket(&login).await;
        let Begun {
            cookie, challenge, ..
        } = console.begin().await;
        let injected = console.come_back(&cookie, &challenge, &ticket).await;
        assert_eq!(injected.status, 403, "{}", injected.summary());
        assert_eq!(set(&injected, SESSION), None);
        // What no browser has begun is not exchanged at all.
        let of_nothing = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
        for (cookie, state) in [
            ("", &*challenge),
            ("", ""),
            ("", of_nothing),
            ("__Host-signpost-sign-in=", of_nothing),
            (&cookie, "x"),
        ] {
            let injected = console.come_back(cookie, state, &ticket).await;
            let text = injected.text();
            assert!(text.contains("another browser"), "{cookie} {state}: {text}");
            assert_eq!(set(&injected, SESSION), None);
        }
    }
}

#[tokio::test]
async fn an_operator_neither_changes_the_consoles_application_nor_signs_for_it() {
    let console = Console::start().await;
    let [operator, admin] = ["operator", "admin"].map(|role| console.stack.create_token(role));
    let origin =
        json!({ "revision": 1, "return_to": [console.origin, "https://attacker.example"] });
    let update = "/api/v1/apps/console/update";
    let refused = console.call(update, &operator, &origin).await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.json()["code"], "role_insufficient");
    let line = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: h\r\n");
    let login = "/login?return_to=https%3A%2F%2Fattacker.example&time=1&sign=0";
    let in_query = login.replace('?', "?app=console&");
    for sample in [
        json!({ "request": format!("{}Acme-X-App: console\r\n\r\n", line(login)) }),
        json!({ "request": format!("{}\r\n", line(login)), "app": "console" }),
        json!({ "request": format!("{}\r\n", line(&in_query)) }),
    ] {
        for (token, signs) in [(&operator, false), (&admin, true)] {
            let found = console.call("/api/v1/doctor", token, &sample).await.ok();
            assert_eq!(found["signed"].is_object(), signs, "{sample}: {found}");
            assert!(found["canonical"].is_string(), "{found}");
        }
    }
    console.call(update, &admin, &origin).await.ok();
}

/// Reads a stream until it ends.
async fn read_until_end(stream: &mut reqwest::Response) {
    let read = async { while stream.chunk().await.unwrap().is_some() {} };
    timeout(WAIT_TIMEOUT, read).await.expect("the stream ends");
}

/// Whether a session has ended: a page leads to the sign-in. `None`: the store was slow.
async fn has_ended(console: &Console, session: &str) -> Option<bool> {
    let page = console.page("/settings", session).await;
    match page.status.as_u16() {
        200 => Some(false),
        303 => Some(page.header("location").unwrap().contains("session_ended")),
        503 => None,
        _ => panic!("{}", page.summary()),
    }
}

#[tokio::test]
async fn a_session_ends_with_the_logins_of_its_account_or_its_application() {
    let console = Console::start().await;
    let other = console.stack.create_application("Shop", &[]);
    let logout = |further: &[&str]| {
        let command = ["account", "logout", "bitbucket", ADA];
        console.run(&[&command[..], further].concat());
    };
    let first = console.sign_in().await;
    // Of another application, the session is no login.
    logout(&["--app", &other.ident]);
    console.run(&["app", "logout", &other.ident]);
    let still = console.page("/settings", &first).await;
    assert_eq!(still.status, 200);
    let enders: [(&str, &dyn Fn()); 4] = [
        ("account", &|| logout(&[])),
        ("account and app", &|| logout(&["--app", "console"])),
        ("app", &|| console.run(&["app", "logout", "console"])),
        ("disable", &|| console.run(&["app", "disable", "console"])),
    ];
    for (what, end) in enders {
        let session = console.sign_in().await;
        let ended = until("the store to say", || has_ended(&console, &session));
        assert!(!ended.await, "{what}");
        let mut stream = console
            .get("/live/stream")
            .header("cookie", &session)
            .send()
            .await
            .unwrap();
        assert_eq!(stream.status(), 200, "{what}");
        end();
        until("the session to end", || async {
            (has_ended(&console, &session).await == Some(true)).then_some(())
        })
        .await;
        // So has what it streamed.
        read_until_end(&mut stream).await;
    }
    assert!(until("the store to say", || has_ended(&console, &first)).await);
}

#[tokio::test]
async fn a_revoked_token_ends_its_streams_within_a_second() {
    let console = Console::start().await;
    let kept = console.stack.create_named_token("kept", "viewer");
    let open = async |token: &str| {
        let call = console.get("/api/v1/requests").bearer_auth(token);
        call.send().await.unwrap()
    };
    let mut other = open(&kept).await;
    // On a busy machine some take longer.
    let mut fastest = Duration::MAX;
    for number in 0..5 {
        let name = format!("ends {number}");
        let token = console.stack.create_named_token(&name, "viewer");
        let mut ending = open(&token).await;
        let listed = console.get("/api/v1/tokens").bearer_auth(&kept);
        let listed = Response::read(listed.send().await.unwrap()).await.ok();
        let mut tokens = listed["items"].as_array().unwrap().iter();
        let ended = tokens.find(|one| one["name"] == *name).unwrap();
        console.run(&["token", "revoke", &ended["id"].to_string()]);
        let revoked = Instant::now();
        read_until_end(&mut ending).await;
        fastest = fastest.min(revoked.elapsed());
        if fastest < Duration::from_secs(1) {
            break;
        }
    }
    assert!(fastest < Duration::from_secs(1), "{fastest:?}");
    // The other one goes on.
    console.client().get("/later").send().await;
    let mut got = String::new();
    let goes_on = async {
        while !got.contains("later") {
            let chunk = other.chunk().await.unwrap();
            got += &String::from_utf8_lossy(&chunk.expect("an event"));
        }
    };
    timeout(WAIT_TIMEOUT, goes_on).await.expect("an event");
}
