//! Each provider by its documented responses, through the router.

use std::{collections::BTreeMap, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::connect_info::MockConnectInfo,
    http::{HeaderMap, Request, StatusCode, header},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;
use tower::ServiceExt;
use url::{Url, form_urlencoded};

use crate::{Settings, fault::PeerSocket, router};

mod oauth;
mod openid;

const CALLBACK: &str = "http://127.0.0.1:8080/login";
const HOST: &str = "127.0.0.1:7100";
/// RFC 7636 appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

type Pairs<'a> = &'a [(&'a str, &'a str)];

/// A response, read to its end.
#[derive(Debug)]
struct Received {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Received {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }

    fn header(&self, name: header::HeaderName) -> &str {
        self.headers[name].to_str().unwrap()
    }

    /// The parameters of the redirect to the callback.
    fn callback(&self) -> BTreeMap<String, String> {
        assert_eq!(self.status, StatusCode::FOUND, "{self:?}");
        let url = Url::parse(self.header(header::LOCATION)).unwrap();
        assert!(url.as_str().starts_with(CALLBACK), "{url}");
        url.query_pairs().into_owned().collect()
    }
}

/// The sandbox without a listener.
struct Client(Router);

impl Client {
    fn new() -> Self {
        Self::with_issuer(None)
    }

    fn with_issuer(issuer: Option<&str>) -> Self {
        let settings = Settings {
            client_id: "signpost-demo".to_owned(),
            client_secret: "sandbox-only-secret".to_owned(),
            callback: Url::parse(CALLBACK).unwrap(),
            issuer: issuer.map(str::to_owned),
            code_lifetime: Duration::from_secs(60),
            slowness: Duration::ZERO,
        };
        Self(router(settings).layer(MockConnectInfo(PeerSocket::default())))
    }

    async fn send(&self, method: &str, path: &str, headers: Pairs<'_>, body: String) -> Received {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, HOST);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body)).unwrap();
        let (head, body) = self.0.clone().oneshot(request).await.unwrap().into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        Received {
            status: head.status,
            headers: head.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    async fn get(&self, path: &str, headers: Pairs<'_>) -> Received {
        self.send("GET", path, headers, String::new()).await
    }

    /// Presses a button of the page. `more` replaces parameters of the request; an empty value removes one.
    async fn decide(&self, path: &str, user: &str, decision: &str, more: Pairs<'_>) -> Received {
        let mut form = BTreeMap::from([
            ("client_id", "signpost-demo"),
            ("response_type", "code"),
            ("redirect_uri", CALLBACK),
            ("state", "a state"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
            ("user", user),
            ("decision", decision),
        ]);
        form.extend(more.iter().copied());
        form.retain(|_, value| !value.is_empty());
        self.send("POST", path, &[], encode(form)).await
    }

    async fn code(&self, path: &str, user: &str, more: Pairs<'_>) -> String {
        let callback = self.decide(path, user, "allow", more).await.callback();
        assert_eq!(callback["state"], "a state");
        callback["code"].clone()
    }

    /// Exchanges a code. `more` as with [`Self::decide`].
    async fn exchange(
        &self,
        path: &str,
        code: &str,
        headers: Pairs<'_>,
        more: Pairs<'_>,
    ) -> Received {
        let mut form = BTreeMap::from([
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", CALLBACK),
            ("code_verifier", VERIFIER),
        ]);
        form.extend(more.iter().copied());
        form.retain(|_, value| !value.is_empty());
        let mut whole = vec![("content-type", "application/x-www-form-urlencoded")];
        whole.extend(headers);
        self.send("POST", path, &whole, encode(form)).await
    }
}

const POST_AUTH: [(&str, &str); 2] = [
    ("client_id", "signpost-demo"),
    ("client_secret", "sandbox-only-secret"),
];

fn basic_auth() -> String {
    let credentials = BASE64_STANDARD.encode("signpost-demo:sandbox-only-secret");
    format!("Basic {credentials}")
}

fn encode<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}
