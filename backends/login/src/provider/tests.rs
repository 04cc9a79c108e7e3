//! Requests to a fake provider, and the results of its faults.

use std::sync::{Arc, Mutex};

use axum::{Router, body::Bytes, extract::Request, response::IntoResponse};

use super::*;
use crate::{
    records::logins::{FailureReason, LoginToken},
    testing,
};

/// Responds with `response`, and records all requests.
struct FakeProvider {
    address: String,
    requests: Arc<Mutex<Vec<(http::request::Parts, Bytes)>>>,
}

impl FakeProvider {
    async fn start<R: IntoResponse>(
        response: impl Fn(&str) -> R + Clone + Send + Sync + 'static,
    ) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let app = Router::new().fallback(move |request: Request| {
            let (response, seen) = (response.clone(), Arc::clone(&seen));
            async move {
                let (parts, body) = request.into_parts();
                let body = axum::body::to_bytes(body, 1 << 16).await.unwrap();
                let response = response(parts.uri.path()).into_response();
                seen.lock().unwrap().push((parts, body));
                response
            }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, requests }
    }

    fn provider(&self, more: &str) -> Provider {
        let provider = testing::config_text_with_provider(&self.address, more);
        let text = format!("prefix = \"Acme\"\n{provider}");
        let config = testing::parse(&text);
        let _ = rustls::crypto::ring::default_provider().install_default();
        let provider = &config.providers.all[0];
        Provider {
            config: provider.clone(),
            issuer: None,
            callback: callback(provider, &config.public_url),
            http: HttpClient::new(&Default::default()).unwrap(),
            metrics: Arc::default(),
        }
    }
}

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

const TOKEN: &str = r#"{"access_token":"at","token_type":"bearer","scopes":"account"}"#;

fn json(body: &'static str) -> impl IntoResponse + use<> {
    ([("content-type", "application/json")], body)
}

fn good(path: &str) -> impl IntoResponse + use<> {
    json(if path == "/2.0/user" {
        r#"{"uuid":"{me}","display_name":"Me"}"#
    } else {
        TOKEN
    })
}

fn pairs(query: &[u8]) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(query).into_owned().collect()
}

#[tokio::test]
async fn both_calls_have_the_parameters_of_the_contract() {
    let fake = FakeProvider::start(good).await;
    let provider = fake.provider("");
    let (state, cookie) = (
        LoginToken::generate(&"v1".parse().unwrap()).state(),
        LoginCookie::generate(),
    );
    let hints = Hints::default();
    let url = provider.authorize_url(&state, &cookie, &hints).await;
    let url = url.unwrap();
    assert!(
        url.as_str()
            .starts_with(&format!("{}/site/oauth2/authorize?", fake.address))
    );
    let query = pairs(url.query().unwrap().as_bytes());
    let keys: Vec<&str> = query.keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "client_id",
            "code_challenge",
            "code_challenge_method",
            "redirect_uri",
            "response_type",
            "state"
        ]
    );
    assert_eq!(query["state"], state.encode());
    assert_eq!(query["redirect_uri"], "http://127.0.0.1:8080/login");

    let user = provider
        .identify("the-code".to_owned(), &cookie, NOW, deadline())
        .await
        .unwrap();
    assert_eq!(user.username.as_str(), "{me}");
    assert_eq!(user.display_name.as_deref(), Some("Me"));
    let requests = fake.requests.lock().unwrap();
    let (token, form) = &requests[0];
    assert_eq!(
        (token.method.as_str(), token.uri.path()),
        ("POST", "/site/oauth2/access_token")
    );
    assert!(
        token.headers["authorization"]
            .to_str()
            .unwrap()
            .starts_with("Basic ")
    );
    let form = pairs(form);
    let keys: Vec<&str> = form.keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        ["code", "code_verifier", "grant_type", "redirect_uri"]
    );
    assert_eq!(form["redirect_uri"], query["redirect_uri"]);
    let (user, _) = &requests[1];
    assert_eq!(
        (user.method.as_str(), user.uri.path()),
        ("GET", "/2.0/user")
    );
    assert_eq!(user.headers["authorization"], "Bearer at");
}

#[tokio::test]
async fn redirect_uri_and_pkce_apply_to_both_calls() {
    let fake = FakeProvider::start(good).await;
    let provider = fake.provider("redirect_uri = false");
    let (state, cookie) = (
        LoginToken::generate(&"v1".parse().unwrap()).state(),
        LoginCookie::generate(),
    );
    let hints = Hints::default();
    let url = provider.authorize_url(&state, &cookie, &hints).await;
    let query = pairs(url.unwrap().query().unwrap().as_bytes());
    assert!(!query.contains_key("redirect_uri"));
    assert_eq!(query["code_challenge_method"], "S256");
    provider
        .identify("the-code".to_owned(), &cookie, NOW, deadline())
        .await
        .unwrap();
    let form = pairs(&fake.requests.lock().unwrap()[0].1);
    assert!(!form.contains_key("redirect_uri"));
    let challenge = secret::encode(&secret::sha256(form["code_verifier"].as_bytes()));
    assert_eq!(query["code_challenge"], challenge);
}

#[tokio::test]
async fn every_fault_fails_the_login() {
    use axum::response::{Redirect, Response};
    use http::StatusCode;

    type Respond = fn(&str) -> Response;
    let responses: [(&str, Respond); 9] = [
        ("token 500", |_| {
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }),
        ("token redirect", |_| {
            Redirect::temporary("/elsewhere").into_response()
        }),
        ("token not json", |_| json("<html>").into_response()),
        ("code refused", |_| {
            (
                StatusCode::BAD_REQUEST,
                json(r#"{"error":"invalid_grant"}"#),
            )
                .into_response()
        }),
        ("profile 500", |path| match path {
            "/2.0/user" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            _ => json(TOKEN).into_response(),
        }),
        ("profile redirect", |path| match path {
            "/2.0/user" => Redirect::temporary("/elsewhere").into_response(),
            _ => json(TOKEN).into_response(),
        }),
        ("profile not json", |path| match path {
            "/2.0/user" => json("[]").into_response(),
            _ => json(TOKEN).into_response(),
        }),
        ("no uuid", |path| match path {
            "/2.0/user" => json(r#"{"name":"x"}"#).into_response(),
            _ => json(TOKEN).into_response(),
        }),
        ("too large", |path| match path {
            "/2.0/user" => vec![b' '; (1 << 20) + 1].into_response(),
            _ => json(TOKEN).into_response(),
        }),
    ];
    for (name, response) in responses {
        let fake = FakeProvider::start(response).await;
        let fault = fake
            .provider("")
            .identify("c".to_owned(), &LoginCookie::generate(), NOW, deadline())
            .await
            .unwrap_err();
        assert_eq!(
            fault.reason(),
            FailureReason::ProviderFailed,
            "{name}: {fault}"
        );
        let followed = fake
            .requests
            .lock()
            .unwrap()
            .iter()
            .any(|(parts, _)| parts.uri.path() == "/elsewhere");
        assert!(!followed, "{name}");
    }
}

/// Of a token response only `error` and the access token are read.
#[tokio::test]
async fn what_is_not_used_of_a_token_response_can_be_anything() {
    for members in [
        "",
        r#","token_type":"Bearer","expires_in":"3600""#,
        r#","token_type":"BEARER","expires_in":null,"refresh_token":null"#,
        r#","token_type":null,"expires_in":1e999,"scope":["a",{}],"id_token":5"#,
        r#","error":null,"error_description":7,"\u0061\u0062":"\ud800""#,
    ] {
        let body: &'static str = format!(r#"{{"access_token":"at ~"{members}}}"#).leak();
        let fake = FakeProvider::start(move |path| match path {
            "/2.0/user" => json(r#"{"uuid":"{me}","balance":1e999}"#),
            _ => json(body),
        });
        let (fake, cookie) = (fake.await, LoginCookie::generate());
        let provider = fake.provider("");
        let identified = provider.identify("c".to_owned(), &cookie, NOW, deadline());
        assert_eq!(identified.await.unwrap().username.as_str(), "{me}");
        let requests = fake.requests.lock().unwrap();
        assert_eq!(requests[1].0.headers["authorization"], "Bearer at ~");
    }
    let unusable = "no usable access_token";
    for (body, expected) in [
        (r#"{"token_type":"bearer"}"#, unusable),
        (r#"{"access_token":""}"#, unusable),
        (r#"{"access_token":5}"#, unusable),
        (r#"{"access_token":null}"#, unusable),
        (r#"{"access_token":"a\nb"}"#, unusable),
        (r#"{"access_token":"é"}"#, unusable),
        (
            r#"{"access_token":"at","token_type":"mac"}"#,
            "another token_type than Bearer",
        ),
        (
            r#"{"access_token":"at","token_type":["bearer"]}"#,
            "another token_type than Bearer",
        ),
        (r#"{"access_token":"at","error":{}}"#, "malformed"),
        (r#"["access_token"]"#, "malformed"),
    ] {
        let fake = FakeProvider::start(move |_| json(body)).await;
        let (provider, cookie) = (fake.provider(""), LoginCookie::generate());
        let identified = provider.identify("c".to_owned(), &cookie, NOW, deadline());
        let fault = identified.await.unwrap_err().to_string();
        assert!(fault.contains(expected), "{body}: {fault}");
        assert_eq!(fake.requests.lock().unwrap().len(), 1, "{body}");
    }
}

#[tokio::test]
async fn a_number_that_identifies_a_user_keeps_its_digits() {
    for (record, expected) in [
        (
            r#"{"uuid":123456789012345678901234567890}"#,
            Some("123456789012345678901234567890"),
        ),
        (
            r#"{"uuid":-9223372036854775809}"#,
            Some("-9223372036854775809"),
        ),
        (r#"{"uuid":1.0}"#, None),
    ] {
        let fake = FakeProvider::start(move |path| match path {
            "/2.0/user" => json(record),
            _ => json(TOKEN),
        });
        let (fake, cookie) = (fake.await, LoginCookie::generate());
        let provider = fake.provider("");
        let identified = provider.identify("c".to_owned(), &cookie, NOW, deadline());
        match (identified.await, expected) {
            (Ok(user), expected) => assert_eq!(Some(user.username.as_str()), expected),
            (Err(fault), None) => assert!(fault.to_string().contains("whole number"), "{fault}"),
            (Err(fault), Some(_)) => panic!("{record}: {fault}"),
        }
    }
}

#[tokio::test]
async fn an_unreachable_provider_fails_the_login() {
    let fake = FakeProvider {
        address: "http://127.0.0.1:1".to_owned(),
        requests: Arc::default(),
    };
    let fault = fake
        .provider("")
        .identify("c".to_owned(), &LoginCookie::generate(), NOW, deadline())
        .await
        .unwrap_err();
    assert!(
        matches!(fault, ProviderFault::Unreachable { .. }),
        "{fault}"
    );
}

#[tokio::test]
async fn a_provider_that_does_not_respond_times_out() {
    // The system accepts connections for the listener, but nothing responds.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let fake = FakeProvider {
        address,
        requests: Arc::default(),
    };
    assert!(PROVIDER_TIMEOUT < Duration::from_secs(10));
    let provider = fake.provider("");
    let soon = Instant::now() + Duration::from_millis(50);
    let fault = provider
        .identify("c".to_owned(), &LoginCookie::generate(), NOW, soon)
        .await
        .unwrap_err();
    assert_eq!(fault.reason(), FailureReason::ProviderTimeout, "{fault}");
}

#[tokio::test]
async fn iss_is_compared_byte_by_byte() {
    let fake = FakeProvider {
        address: "http://127.0.0.1:1".to_owned(),
        requests: Arc::default(),
    };
    let by_default = fake.provider("");
    let accepts =
        async |provider: &Provider, iss| provider.accepts_issuer(iss, deadline()).await.unwrap();
    assert!(accepts(&by_default, None).await);
    assert!(accepts(&by_default, Some("http://127.0.0.1:1")).await);
    for other in [
        "",
        "http://127.0.0.1:1/",
        "http://127.0.0.1:2",
        "HTTP://127.0.0.1:1",
    ] {
        assert!(!accepts(&by_default, Some(other)).await, "{other}");
    }
    let named = fake.provider("issuer = \"https://id.example\"");
    assert!(accepts(&named, Some("https://id.example")).await);
}

#[tokio::test]
async fn an_error_with_status_200_is_a_failure() {
    let fake = FakeProvider::start(|_| json(r#"{"error":"bad_verification_code"}"#)).await;
    let provider = fake.provider("");
    let cookie = LoginCookie::generate();
    let identified = provider.identify("c".to_owned(), &cookie, NOW, deadline());
    let fault = identified.await.unwrap_err();
    assert!(
        matches!(&fault, ProviderFault::CodeRejected { error } if error == "bad_verification_code"),
        "{fault}"
    );
}

#[tokio::test]
async fn errors_are_named_only_if_they_are_words() {
    for (body, expected) in [
        (r#"{"error":"invalid_client"}"#, "invalid_client"),
        (r#"{"error":"the secret is hunter2"}"#, "another error"),
        (r#"{"error":"a\nb"}"#, "another error"),
        (r#"{"error":""}"#, "another error"),
    ] {
        let fake = FakeProvider::start(move |_| json(body)).await;
        let provider = fake.provider("");
        let cookie = LoginCookie::generate();
        let identified = provider.identify("c".to_owned(), &cookie, NOW, deadline());
        let fault = identified.await.unwrap_err().to_string();
        assert!(
            fault.contains(expected) && !fault.contains("hunter2"),
            "{fault}"
        );
    }
}

#[tokio::test]
async fn scopes_and_client_auth_are_as_configured_and_hints_as_passed_on() {
    let fake = FakeProvider::start(good).await;
    let more = "scopes = [\"a\", \"b:c\"]\nclient_auth = \"post\"\nprompt = \"consent\"\npass_on = [\"login_hint\"]";
    let provider = fake.provider(more);
    let (state, cookie) = (
        LoginToken::generate(&"v1".parse().unwrap()).state(),
        LoginCookie::generate(),
    );
    let hints = Hints::decode("login_hint=ada%40x&prompt=login");
    let url = provider.authorize_url(&state, &cookie, &hints).await;
    let query = pairs(url.unwrap().query().unwrap().as_bytes());
    assert_eq!(query["scope"], "a b:c");
    assert_eq!(query["login_hint"], "ada@x");
    assert_eq!(query["prompt"], "consent", "the client's is not passed on");
    assert!(!query.contains_key("nonce"));
    provider
        .identify("c".to_owned(), &cookie, NOW, deadline())
        .await
        .unwrap();
    let (token, form) = &fake.requests.lock().unwrap()[0];
    assert!(!token.headers.contains_key("authorization"));
    let form = pairs(form);
    assert_eq!(
        (&*form["client_id"], &*form["client_secret"]),
        ("id", "secret")
    );
}
