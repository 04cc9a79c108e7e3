//! Every problem code, from the outside, in all five languages. CONTRACT 6 and 7.
//!
//! [`World::provoke`] is one `match` without a wildcard: a new code does not compile here until an arm provokes it, or
//! gives the reason why no client can.

use std::{collections::BTreeMap, net::SocketAddr};

use end_to_end::{
    browser::{Browser, Decision, Page},
    clock::{now_ms, rfc3339},
    logins::{begin_polling, confirm_polling, credential, log_in_by_redirect},
    port::free_address,
    program::Program,
    raw_connection::{RawConnection, request},
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    response::Response,
    signed_client::{Call, SignedClient, http_client},
    stack::{APP_KEY, Stack},
    waiting::until,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reqwest::Method;
use signpost_protocol::{
    language::Language,
    problem::{Problem, ProblemCode},
};

/// The installations and clients that provoke the codes.
struct World {
    /// One application; v2 requires a secret that the gateway does not have. A login is confirmed where it was begun.
    single: Stack,
    /// Logins expire after one second, and one may begin per second.
    limited: Stack,
    /// Many applications, in front of a backend that records.
    multi: Stack,
    /// Rejects unknown versions and replays. v1 never answers; v2 and both addresses of v3 are down; v4 is retired; v5 has a
    /// brown-out; v6 has a bridge to v1.
    strict: Stack,
    // It ends when dropped.
    _backend: RecordingBackend,
    /// A listener of `strict` that redirects to https.
    redirecting: SocketAddr,
    expired_token: String,
    disabled: SignedClient,
}

impl World {
    async fn start() -> Self {
        let backend = RecordingBackend::start().await;
        backend.behave(Behaviour::responding(Delivery::Never));
        let unused = [free_address(), free_address(), free_address()];
        let redirecting = free_address();
        let strict = format!(
            "public_url = \"https://api.example.com\"\nunknown = \"reject\"\n[timeouts]\nbody_seconds = 1\nresponse_seconds = 1\n\
             [sign]\nreplay = \"reject\"\ncarrier = \"both\"\n[spool]\nbytes = 16777216\nfolder = \"/tmp\"\n\
             [versions.v7]\nbackend = \"{}\"\nbodies = \"json\"\nmax_body = 8388608\npath_prefix = \"/v7\"\n[versions.v2]\nbackend = \"{}\"\n[versions.v3]\n\
             backends = [\"{}\", \"{}\"]\nhealth = {{ interval_seconds = 1, unhealthy_after = 1 }}\n\
             [versions.v4]\nbackend = \"{}\"\nsunset = \"2025-01-01\"\nafter_sunset = \"gone\"\n\
             [versions.v5]\nbackend = \"{}\"\nbrownouts = [\"{}/P2D\"]\n[versions.v6]\nbridge = \"v1\"\n\
             [[versions.v6.changes]]\nname = \"a\"\npaths = [\"/x\"]\nrequest = [{{ rename = \"a\", to = \"b\" }}]\n[[listen]]\naddress = \"$LISTEN\"\n[[listen]]\n\
             address = \"{redirecting}\"\nredirect_to_https = true",
            unused[0],
            unused[0],
            unused[1],
            unused[2],
            unused[0],
            unused[0],
            rfc3339(now_ms() / 1000 - 86_400)
        );
        let limited =
            "[login]\nlogin_ttl_seconds = 1\n[limits]\nstarts_per_second = 1\nstarts_burst = 1";
        let (single, limited, multi, strict) = tokio::join!(
            Stack::builder()
                .gateway("trusted_proxies = [\"127.0.0.1\"]")
                .backends("[login]\nsame_network = \"require\"")
                .program(Program::V2, "gateway_secret = \"unknown-4283fefc63f0cd0e\"")
                .start(),
            Stack::builder().backends(limited).start(),
            Stack::builder().in_front_of(&backend).multi().start(),
            Stack::builder()
                .in_front_of(&backend)
                .gateway(&strict)
                .start(),
        );
        let expired_token = begin_polling(&limited.client()).await.token;
        until("a login to expire", || async {
            let check = limited
                .client()
                .post("/check")
                .param("token", &expired_token)
                .send()
                .await;
            (check.ok()["status"] == "expired").then_some(())
        })
        .await;
        let application = multi.create_application("off", &[]);
        assert!(
            multi
                .command(&["app", "disable", &application.ident])
                .status
                .success()
        );
        let disabled = multi.client_of(&application);
        Self {
            single,
            limited,
            multi,
            strict,
            _backend: backend,
            redirecting,
            expired_token,
            disabled,
        }
    }

    /// The answer with this code in this language, or the reason why no client can provoke it.
    #[expect(clippy::too_many_lines, reason = "one or two lines for each code")]
    async fn provoke(
        &self,
        code: ProblemCode,
        language: Language,
    ) -> Result<Response, &'static str> {
        let client = self.single.client();
        let signed = || client.get("/x").param("a", "1");
        let post = |name: &str, value: &str| client.post("/check").param(name, value);
        let form = "Content-Type: application/x-www-form-urlencoded";
        let raw =
            |method: &'static str, target: String, lines: Vec<String>, body: &'static [u8]| {
                let gateway = self.single.addresses().gateway;
                self.raw(gateway, language, method, target, lines, body)
            };
        let line = |text: &str| vec![text.to_owned()];
        let response = match code {
            ProblemCode::TargetInvalid => raw("GET", "/x%zz".into(), vec![], b"").await,
            ProblemCode::TargetAmbiguous => raw("GET", "//x".into(), vec![], b"").await,
            ProblemCode::ParamsMalformed => raw("GET", "/x?a=%zz".into(), vec![], b"").await,
            ProblemCode::ParamsTooMany => {
                raw("GET", format!("/x?{}", "a=1&".repeat(300)), vec![], b"").await
            }
            ProblemCode::ParamMissing => send_in(client.post("/check").signed(), language).await,
            ProblemCode::ParamInvalid => {
                send_in(post("token", "v1.x").param("wait", "99"), language).await
            }
            ProblemCode::ParamDuplicated => send_in(signed().query("time", "1"), language).await,
            ProblemCode::HeaderDuplicated => {
                send_in(client.get("/x").version("v1").version("v1"), language).await
            }
            ProblemCode::BodyNotAllowed => {
                raw("GET", "/x".into(), line("Content-Length: 1"), b"x").await
            }
            ProblemCode::AppMissing => send_in(self.multi.client().get("/x"), language).await,
            ProblemCode::VersionUnknown => {
                send_in(self.strict.client().get("/x").version("v9"), language).await
            }
            ProblemCode::TimeInvalid => send_in(signed().time("now"), language).await,
            ProblemCode::LoginMismatch => {
                let begun = client.get("/login").send().await;
                let state = Page {
                    url: "http://x".parse().unwrap(),
                    response: begun,
                };
                let state = state.redirect_param("state").unwrap();
                self.callback(language, &format!("state={state}&code=x"), None)
                    .await
            }
            ProblemCode::AuthorizationMissing => send_in(client.get("/user"), language).await,
            ProblemCode::AuthorizationMalformed => {
                send_in(client.get("/user").authorization("undefined"), language).await
            }
            ProblemCode::AuthorizationInvalid => {
                let unknown = "A".repeat(43);
                send_in(client.get("/user").authorization(&unknown), language).await
            }
            ProblemCode::TimeMissing => send_in(signed().without_time(), language).await,
            ProblemCode::TimeOutOfWindow => send_in(signed().later_by_ms(-90_000), language).await,
            ProblemCode::SignMissing => send_in(signed().without_sign(), language).await,
            ProblemCode::SignMismatch => send_in(signed().sign_given("0"), language).await,
            ProblemCode::PrefetchRefused => {
                let call = client.get("/login?state=v1.x&code=x").unsigned();
                send_in(call.header("Sec-Purpose", "prefetch"), language).await
            }
            ProblemCode::NetworkMismatch => {
                fn from<'c>(call: Call<'c>, address: &str) -> Call<'c> {
                    call.header("X-Forwarded-For", address)
                }
                let begun = from(client.post("/login").signed(), "198.51.100.1")
                    .send()
                    .await
                    .ok();
                let url = begun["authorize_url"].as_str().unwrap();
                let page = url.strip_prefix(&self.single.origin()).unwrap();
                let page = format!("{page}&utm_source=x");
                let shown = from(client.get(&page).unsigned(), "198.51.101.1")
                    .send()
                    .await;
                let confirm = shown.text().split("confirm=").nth(1).unwrap().to_owned();
                let confirm = format!("{page}&confirm={}", confirm.split('"').next().unwrap());
                let cookie = shown.header("set-cookie").unwrap();
                let call = client.get(&confirm).unsigned().header("Cookie", cookie);
                send_in(from(call, "198.51.101.1"), language).await
            }
            ProblemCode::AppDisabled => {
                until("the application to be disabled", || async {
                    let response = send_in(self.disabled.get("/x").param("a", "1"), language).await;
                    (response.status == 403).then_some(response)
                })
                .await
            }
            ProblemCode::LoginDenied => {
                let (cookie, state) = self.begin_redirect().await;
                let denial = format!("state={state}&error=access_denied");
                self.callback(language, &denial, Some(&cookie)).await
            }
            ProblemCode::ReturnToNotAllowed => {
                let call = client
                    .get("/login")
                    .param("return_to", "https://evil.example/");
                send_in(call, language).await
            }
            ProblemCode::GatewayRequired => {
                // Sent to the backend directly: the gateway answers 502 instead, since no client can fix the cause.
                let backend = format!("http://{}", self.single.addresses().v2);
                send_in(SignedClient::new(&backend, APP_KEY).get("/user"), language).await
            }
            ProblemCode::AppNotFound => {
                let unknown = self.multi.client().with_app(&"x".repeat(24));
                send_in(unknown.get("/x"), language).await
            }
            ProblemCode::NotFound => send_in(client.get("/nope"), language).await,
            ProblemCode::LoginUnknown => send_in(post("token", "v1.x"), language).await,
            ProblemCode::MethodNotAllowed => {
                send_in(client.call(Method::PUT, "/x"), language).await
            }
            ProblemCode::RequestTimeout => {
                let lines = vec![form.to_owned(), "Content-Length: 9".to_owned()];
                let gateway = self.strict.addresses().gateway;
                self.raw(gateway, language, "POST", "/x".into(), lines, b"a")
                    .await
            }
            ProblemCode::RequestReplayed => {
                // Sent to the version that is down, so that the first response is immediate.
                let strict = self.strict.client();
                let call = strict.get("/x").param("a", language.tag()).version("v2");
                call.send().await.problem(502, "backend_unreachable");
                send_in(call, language).await
            }
            ProblemCode::LoginPending => {
                let token = begin_polling(&client).await.token;
                send_in(client.post("/user/login").param("token", &token), language).await
            }
            ProblemCode::LoginUsed => {
                let (cookie, state) = self.begin_redirect().await;
                let denial = format!("state={state}&error=access_denied");
                self.callback(language, &denial, Some(&cookie)).await;
                self.callback(language, &denial, Some(&cookie)).await
            }
            ProblemCode::IdempotencyConflict => {
                let login = log_in_by_redirect(&client, "ada").await;
                let send = |event: &str| {
                    let call = client.post("/event/send").param("event", event);
                    call.param("idempotency_key", "key")
                        .authorization(credential(&login))
                };
                send("first").send().await.ok();
                send_in(send("second"), language).await
            }
            ProblemCode::LoginExpired => {
                let client = self.limited.client();
                send_in(
                    client
                        .post("/user/login")
                        .param("token", &self.expired_token),
                    language,
                )
                .await
            }
            ProblemCode::BodyTooLarge => {
                let lines = vec![form.to_owned(), "Content-Length: 70000".to_owned()];
                raw("POST", "/x".into(), lines, b"").await
            }
            ProblemCode::UriTooLong => {
                raw("GET", format!("/x?{}", "a".repeat(9000)), vec![], b"").await
            }
            ProblemCode::ContentTypeUnsupported => {
                raw("POST", "/x".into(), line("Content-Length: 1"), b"x").await
            }
            ProblemCode::RateLimited => {
                let limited = self.limited.client();
                let response = until("a second login within a second", || async {
                    let response = send_in(limited.post("/login").signed(), language).await;
                    (response.status == 429).then_some(response)
                })
                .await;
                assert!(
                    response.header("retry-after").is_some(),
                    "{}",
                    response.summary()
                );
                response
            }
            ProblemCode::HeadersTooLarge => {
                raw(
                    "GET",
                    "/x".into(),
                    vec![format!("X-Long: {}", "x".repeat(40_000))],
                    b"",
                )
                .await
            }
            ProblemCode::HttpsRequired => {
                let target = "/x?a=1&sign=0".into();
                self.raw(self.redirecting, language, "GET", target, vec![], b"")
                    .await
            }
            ProblemCode::UpgradeNotSupported => {
                let lines = ["Connection: upgrade", "Upgrade: websocket"];
                let lines = lines.map(str::to_owned).to_vec();
                raw("GET", "/x".into(), lines, b"").await
            }
            ProblemCode::BackendUnreachable => {
                send_in(self.strict.client().get("/x").version("v2"), language).await
            }
            ProblemCode::BridgeFailed => {
                let client = self.strict.client();
                let call = client
                    .get("/x")
                    .version("v6")
                    .query("a", language.tag())
                    .query("b", "2");
                send_in(call, language).await
            }
            ProblemCode::BackendTimeout => send_in(self.strict.client().get("/x"), language).await,
            ProblemCode::ProviderFailed => self.fail_at_provider("profile-500", language).await,
            ProblemCode::ProviderTimeout => self.fail_at_provider("token-slow", language).await,
            ProblemCode::StoreUnavailable => {
                return Err(
                    "see `an_unavailable_store_is_reported_in_every_language`: it needs a stack of its own",
                );
            }
            ProblemCode::GatewayStopping => {
                return Err("see `a_stop_is_reported_in_every_language`: it stops a gateway");
            }
            ProblemCode::Internal => {
                return Err("only a defect causes it; unit tests cover the mapping");
            }
            ProblemCode::VersionRetired => {
                send_in(self.strict.client().get("/x").version("v4"), language).await
            }
            ProblemCode::VersionBrownout => {
                send_in(self.strict.client().get("/x").version("v5"), language).await
            }
            ProblemCode::VersionContradictory => {
                let strict = self.strict.client();
                send_in(strict.get("/v7/x").version("v2"), language).await
            }
            ProblemCode::SpoolFull => {
                // More than a network's share, which is a quarter.
                let strict = self.strict.client();
                let large = strict.call(Method::POST, "/v7/x");
                let large = large.body("application/json", vec![b' '; 5 << 20]);
                send_in(large, language).await
            }
            ProblemCode::NoHealthyBackend => {
                let strict = self.strict.client();
                let call = || strict.get("/x").version("v3");
                // This call finds both addresses down, unless one in another language already has.
                call().send().await;
                send_in(call(), language).await
            }
        };
        Ok(response)
    }

    /// Sends a request that no client library would send, in a language.
    async fn raw(
        &self,
        address: SocketAddr,
        language: Language,
        method: &str,
        target: String,
        mut lines: Vec<String>,
        body: &[u8],
    ) -> Response {
        // The first line, since the end of a head that is too large is never read.
        lines.insert(0, format!("Acme-X-Language: {}", language.tag()));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut connection = RawConnection::open(address).await;
        connection
            .send(&request(method, &target, &lines, body))
            .await;
        let response = connection.response().await.unwrap();
        let mut headers = HeaderMap::new();
        for line in response.head.lines().skip(1) {
            if let Some((name, value)) = line.split_once(':') {
                let name: HeaderName = name.parse().unwrap();
                headers.append(name, HeaderValue::from_str(value.trim()).unwrap());
            }
        }
        let status = StatusCode::from_u16(response.status).unwrap();
        Response {
            status,
            headers,
            body: response.body,
        }
    }

    /// Begins a redirect login; returns its cookie as a header value, and its state.
    async fn begin_redirect(&self) -> (String, String) {
        let mut browser = Browser::for_data();
        let begun = browser.step(&self.single.url("/login")).await;
        let cookie = &browser.cookies()[0];
        (
            format!("{}={}", cookie.name(), cookie.value()),
            begun.redirect_param("state").unwrap(),
        )
    }

    /// Sends the provider's callback as a client that reads problem details.
    async fn callback(&self, language: Language, query: &str, cookie: Option<&str>) -> Response {
        let url = self.single.url(&format!("/login?{query}"));
        let mut request = http_client()
            .get(url)
            .header("Acme-X-Language", language.tag());
        if let Some(cookie) = cookie {
            request = request.header("cookie", cookie);
        }
        Response::read(request.send().await.unwrap()).await
    }

    /// The response to a polling client whose login failed at the provider.
    async fn fail_at_provider(&self, user: &str, language: Language) -> Response {
        let client = self.single.client();
        let begun = begin_polling(&client).await;
        let mut browser = Browser::for_data();
        let provider = confirm_polling(&mut browser, &begun).await;
        browser
            .decide_and_follow(&provider, user, Decision::Allow)
            .await;
        send_in(
            client.post("/user/login").param("token", &begun.token),
            language,
        )
        .await
    }
}

async fn send_in(call: Call<'_>, language: Language) -> Response {
    call.language(language.tag()).send().await
}

#[tokio::test]
async fn every_code_can_be_provoked_in_five_languages() {
    let world = World::start().await;
    let mut excused = BTreeMap::new();
    let mut wrong = Vec::new();
    for code in ProblemCode::ALL {
        let all = Language::ALL.map(|language| world.provoke(*code, language));
        let [en, zh_cn, zh_tw, ja, ko] = all;
        let responses: [_; 5] = tokio::join!(en, zh_cn, zh_tw, ja, ko).into();
        for (language, response) in Language::ALL.into_iter().zip(responses) {
            match response {
                Ok(response) => wrong.extend(judge(*code, language, &response)),
                Err(reason) => {
                    excused.insert(code.as_str(), reason);
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    let excused: Vec<_> = excused.into_keys().collect();
    assert_eq!(
        excused,
        ["gateway_stopping", "internal", "store_unavailable"]
    );
}

/// What is wrong with a response that should have that code in that language.
fn judge(code: ProblemCode, language: Language, response: &Response) -> Option<String> {
    let expected = Problem::new(code, language, "x");
    let found: serde_json::Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let about = format!("{} in {}", code.as_str(), language.tag());
    if response.status != code.status() || found["code"] != code.as_str() {
        return Some(format!("{about}: {}", response.summary()));
    }
    if found["title"] != expected.title {
        return Some(format!("{about}: its title is {}", found["title"]));
    }
    if response.header("content-language") != Some(language.tag()) {
        return Some(format!(
            "{about}: Content-Language is {:?}",
            response.header("content-language")
        ));
    }
    if response.header("content-type") != Some("application/problem+json") {
        return Some(format!(
            "{about}: Content-Type is {:?}",
            response.header("content-type")
        ));
    }
    if found["detail"]
        .as_str()
        .is_none_or(|detail| detail.is_empty() || detail.contains("{$"))
    {
        return Some(format!("{about}: its detail is {}", found["detail"]));
    }
    if found["type"] != code.type_uri() {
        return Some(format!("{about}: its type is {}", found["type"]));
    }
    let missing = response.missing_help(&found)?;
    Some(format!("{about}: {missing} is missing or wrong"))
}

#[tokio::test]
async fn an_unavailable_store_is_reported_in_every_language() {
    let stack = Stack::start().await;
    let client = stack.client();
    log_in_by_redirect(&client, "ada").await;
    // Another process holds the store's lock.
    let lock = stack.store().lock();
    let call = || client.post("/login").signed();
    assert_reported_in_every_language(ProblemCode::StoreUnavailable, call).await;
    drop(lock);
    begin_polling(&client).await;
}

#[tokio::test]
async fn a_stop_is_reported_in_every_language() {
    let backend = RecordingBackend::start().await;
    backend.behave(Behaviour::responding(Delivery::Never));
    let stack = Stack::builder().gateway("[shutdown]\ngrace_seconds = 3");
    let mut stack = stack.in_front_of(&backend).start().await;
    let client = stack.client();
    let stop = async {
        backend.request_number(Language::ALL.len()).await;
        stack.running(Program::Gateway).terminate();
    };
    let call = || client.get("/x");
    let reported = assert_reported_in_every_language(ProblemCode::GatewayStopping, call);
    tokio::join!(reported, stop);
}

/// Sends the call in each language at the same time; each response must report the problem in its language.
async fn assert_reported_in_every_language<'c>(code: ProblemCode, call: impl Fn() -> Call<'c>) {
    let all = Language::ALL.map(|language| send_in(call(), language));
    let [en, zh_cn, zh_tw, ja, ko] = all;
    let responses: [_; 5] = tokio::join!(en, zh_cn, zh_tw, ja, ko).into();
    let wrong: Vec<_> = Language::ALL
        .into_iter()
        .zip(responses)
        .filter_map(|(language, response)| judge(code, language, &response))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_language_is_chosen_as_the_contract_says() {
    let stack = Stack::start().await;
    let client = stack.client();
    for (header, accepted, language) in [
        (Some("ZH-tw"), "ja", "zh-TW"),
        (Some("zh"), "ja", "zh-CN"),
        (Some("zh-Hans-CN"), "ja", "zh-CN"),
        (Some("zh_CN.UTF-8"), "ja", "zh-CN"),
        (Some("zh-HK"), "ja", "zh-TW"),
        (Some("zh-yue-HK"), "ja", "zh-TW"),
        (Some("ja-JP"), "ko", "ja"),
        (Some("ko-KR"), "ja", "ko"),
        (Some("en-GB"), "ja", "en"),
        (Some("fr, ko;q=0.5"), "ja", "ko"),
        (Some("fr"), "ja-JP, en;q=0.5", "ja"),
        (Some(""), "zh-Hant", "zh-TW"),
        (Some("fr"), "de", "en"),
        (None, "en;q=0.3, zh-SG;q=0.7", "zh-CN"),
        (None, "fr, *;q=0.1", "en"),
        (None, "fr\nko;q=0.5", "ko"),
        (Some("fr"), "en;q=0.3\nde, ja", "ja"),
    ] {
        // The gateway rejects some, the login service the others; each as data and as a page.
        for (target, accept, status, code) in [
            ("/user", "application/json", 401, "authorization_missing"),
            ("/user?a=1", "application/json", 403, "time_missing"),
            (
                "/login?state=v1.x&code=y",
                "application/json",
                404,
                "login_unknown",
            ),
            (
                "/login?state=v1.x&code=y",
                "text/html",
                404,
                "login_unknown",
            ),
            ("/login?a=1", "text/html", 403, "time_missing"),
        ] {
            let call = client.get(target).header("Accept", accept);
            let lines = accepted.lines();
            let call = lines.fold(call, |call, line| call.header("Accept-Language", line));
            let call = header
                .into_iter()
                .fold(call, |call, tag| call.language(tag));
            let response = call.send().await;
            response.rejected(status, code);
            let given = response.header("content-language");
            assert_eq!(given, Some(language), "{header:?}, {accepted}: {target}");
        }
    }
}

#[tokio::test]
async fn a_browser_is_shown_a_page_with_the_code() {
    let stack = Stack::start().await;
    for (accept, language) in [("ja;q=0.9", "ja"), ("zh-Hant", "zh-TW"), ("fr", "en")] {
        // The gateway rejects one, the backend the other.
        for (target, status, code) in [
            ("/login?a=1", 403, "time_missing"),
            ("/login?state=v1.x&code=y", 404, "login_unknown"),
        ] {
            let page = Browser::with_language(accept)
                .step(&stack.url(target))
                .await;
            let media = page.response.header("content-type").unwrap();
            assert!(media.starts_with("text/html"), "{target}: {media}");
            page.response.rejected(status, code);
            assert_eq!(
                page.response.header("content-language"),
                Some(language),
                "{target}"
            );
            assert!(
                page.text()
                    .contains(page.response.header("x-request-id").unwrap()),
                "{target}"
            );
            let policy = page.response.header("content-security-policy").unwrap();
            assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        }
    }
}
