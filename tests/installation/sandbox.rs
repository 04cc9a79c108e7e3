//! The sandbox provider on its own: it is as strict as a real provider.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use end_to_end::{
    browser::{Browser, Decision},
    program::Program,
    response::Response,
    signed_client::http_client,
    stack::Stack,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

const SECRET: &str = "sandbox-only-secret";

async fn provider() -> (Stack, String) {
    let stack = Stack::builder().only_provider().start().await;
    let base = format!("http://{}", stack.addresses().provider);
    (stack, base)
}

/// Returns a code for ada, issued by the provider's page.
async fn code(base: &str, further: &str) -> String {
    let mut browser = Browser::default();
    let target = format!("client_id=signpost-demo&response_type=code&state=s&{further}");
    let page = browser
        .open(&format!("{base}/site/oauth2/authorize?{target}"))
        .await;
    let back = browser.decide(&page, "ada", Decision::Allow).await;
    assert_eq!(back.redirect_param("state").as_deref(), Some("s"));
    back.redirect_param("code").unwrap()
}

async fn exchange(base: &str, secret: &str, form: &[(&str, &str)]) -> Response {
    let request = http_client()
        .post(format!("{base}/site/oauth2/access_token"))
        .basic_auth("signpost-demo", Some(secret))
        .form(form);
    Response::read(request.send().await.unwrap()).await
}

async fn error(base: &str, form: &[(&str, &str)]) -> Value {
    let response = exchange(base, SECRET, form).await;
    assert_eq!(response.status, 400, "{}", response.text());
    response.json()["error"].clone()
}

#[tokio::test]
async fn a_code_becomes_a_profile() {
    let (_stack, base) = provider().await;
    let code = code(&base, "").await;
    let form = [("grant_type", "authorization_code"), ("code", &*code)];
    let exchanged = exchange(&base, SECRET, &form).await.ok();
    let profile = http_client()
        .get(format!("{base}/2.0/user"))
        .bearer_auth(exchanged["access_token"].as_str().unwrap());
    let profile = Response::read(profile.send().await.unwrap()).await.ok();
    let uuid = profile["uuid"].as_str().unwrap();
    assert!(uuid.starts_with('{') && uuid.ends_with('}'), "{uuid}");
    assert_eq!(profile["display_name"], "Ada Lovelace");
    // A code is valid once.
    assert_eq!(error(&base, &form).await, "invalid_grant");
}

#[tokio::test]
async fn the_client_must_know_its_secret() {
    let (_stack, base) = provider().await;
    let code = code(&base, "").await;
    let form = [("grant_type", "authorization_code"), ("code", &*code)];
    let response = exchange(&base, "another", &form).await;
    assert_eq!(response.status, 401);
    assert_eq!(response.json()["error"], "invalid_client");
    assert!(
        response
            .header("www-authenticate")
            .unwrap()
            .starts_with("Basic")
    );
}

#[tokio::test]
async fn the_exchange_must_repeat_or_omit_the_redirect_uri() {
    let (stack, base) = provider().await;
    let callback = stack.url("/login/sub");
    let grant = ("grant_type", "authorization_code");

    let given = code(&base, &format!("redirect_uri={callback}")).await;
    assert_eq!(
        error(&base, &[grant, ("code", &given)]).await,
        "invalid_grant"
    );
    let given = code(&base, &format!("redirect_uri={callback}")).await;
    exchange(
        &base,
        SECRET,
        &[grant, ("code", &given), ("redirect_uri", &callback)],
    )
    .await
    .ok();

    let absent = code(&base, "").await;
    let form = [grant, ("code", &*absent), ("redirect_uri", &*callback)];
    assert_eq!(error(&base, &form).await, "invalid_grant");

    let mut browser = Browser::default();
    let elsewhere = "client_id=signpost-demo&response_type=code&redirect_uri=http://127.0.0.1:1/";
    let page = browser
        .open(&format!("{base}/site/oauth2/authorize?{elsewhere}"))
        .await;
    assert_eq!(page.response.status, 400);
}

#[tokio::test]
async fn a_challenge_needs_its_verifier() {
    let (_stack, base) = provider().await;
    let verifier = "a-verifier-of-at-least-forty-three-characters";
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
    let challenged = format!("code_challenge={challenge}&code_challenge_method=S256");
    let grant = ("grant_type", "authorization_code");

    let code_ = code(&base, &challenged).await;
    assert_eq!(
        error(&base, &[grant, ("code", &code_)]).await,
        "invalid_grant"
    );
    let code_ = code(&base, &challenged).await;
    exchange(
        &base,
        SECRET,
        &[grant, ("code", &code_), ("code_verifier", verifier)],
    )
    .await
    .ok();
    let code_ = code(&base, "").await;
    let stray = [grant, ("code", &*code_), ("code_verifier", verifier)];
    assert_eq!(error(&base, &stray).await, "invalid_grant");
}

#[tokio::test]
async fn a_code_expires() {
    let stack = Stack::builder()
        .only_provider()
        .provider(&["--code-seconds=0"])
        .start()
        .await;
    let base = format!("http://{}", stack.addresses().provider);
    let code = code(&base, "").await;
    let form = [("grant_type", "authorization_code"), ("code", &*code)];
    assert_eq!(error(&base, &form).await, "invalid_grant");
}

#[tokio::test]
async fn deny_redirects_with_access_denied_and_iss() {
    let issuer = "--issuer=https://provider.example";
    let stack = Stack::builder()
        .only_provider()
        .provider(&[issuer])
        .start()
        .await;
    let base = format!("http://{}", stack.addresses().provider);
    let mut browser = Browser::default();
    let target = "client_id=signpost-demo&response_type=code&state=s";
    let page = browser
        .open(&format!("{base}/site/oauth2/authorize?{target}"))
        .await;
    let back = browser.decide(&page, "ada", Decision::Deny).await;
    assert_eq!(
        back.redirect_param("error").as_deref(),
        Some("access_denied")
    );
    assert_eq!(back.redirect_param("state").as_deref(), Some("s"));
    assert_eq!(
        back.redirect_param("iss").as_deref(),
        Some("https://provider.example")
    );
    assert_eq!(stack.provider_counts().await["decide"], 1);
}

/// As process 1 of a container it would otherwise ignore the signal, and be killed after the grace period.
#[tokio::test]
async fn it_ends_by_itself_on_sigterm() {
    let (mut stack, _) = provider().await;
    stack.running(Program::Provider).terminate();
    assert!(stack.wait_for_exit(Program::Provider).await.success());
}
