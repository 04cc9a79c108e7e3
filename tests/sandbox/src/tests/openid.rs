//! The `OpenID` providers. ID tokens are verified here as a client would, with the published keys.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde_json::{Value, json};

use super::{CALLBACK, Client, HOST, POST_AUTH, Pairs, Received, basic_auth};
use crate::{id_token::IdFault, refusal::Refusal, shape::microsoft::TENANT_ID, user::User};

const GOOGLE: &str = "/google";
const MICROSOFT: &str = "/microsoft/00000000-0000-4000-8000-000000000001/v2.0";
const OIDC: &str = "/oidc";
const ALL: [&str; 3] = [GOOGLE, MICROSOFT, OIDC];

/// A client that has read the discovery document of the issuer at a path.
struct OpenIdClient {
    client: Client,
    document: Value,
}

impl OpenIdClient {
    async fn discover(path: &str) -> Self {
        Self::discover_with(Client::new(), path).await
    }

    async fn discover_with(client: Client, path: &str) -> Self {
        let path = format!("{path}/.well-known/openid-configuration");
        let document = client.get(&path, &[]).await.json();
        Self { client, document }
    }

    /// The path of an endpoint, from the document.
    fn path(&self, endpoint: &str) -> &str {
        let url = self.document[endpoint].as_str().unwrap();
        url.strip_prefix(&format!("http://{HOST}")).unwrap()
    }

    async fn decide(&self, user: &str, decision: &str, more: Pairs<'_>) -> Received {
        let request = [("scope", "openid profile email"), ("nonce", "a nonce")];
        let more = [&request, more].concat();
        let path = self.path("authorization_endpoint");
        self.client.decide(path, user, decision, &more).await
    }

    async fn callback(&self, user: &str) -> BTreeMap<String, String> {
        self.decide(user, "allow", &[]).await.callback()
    }

    async fn exchange(&self, user: &str, more: Pairs<'_>) -> Received {
        let code = self.callback(user).await["code"].clone();
        let path = self.path("token_endpoint");
        let methods = &self.document["token_endpoint_auth_methods_supported"];
        if methods == &json!(["client_secret_basic"]) {
            let basic = basic_auth();
            let basic = [("authorization", &*basic)];
            return self.client.exchange(path, &code, &basic, more).await;
        }
        let more = [&POST_AUTH, more].concat();
        self.client.exchange(path, &code, &[], &more).await
    }

    async fn id_token(&self, user: &str) -> String {
        let response = self.exchange(user, &[]).await;
        assert_eq!(response.status, StatusCode::OK, "{response:?}");
        response.json()["id_token"].as_str().unwrap().to_owned()
    }

    /// The claims, if the token is signed with a published key.
    async fn verify(&self, id_token: &str) -> Option<Value> {
        let (signed, signature) = id_token.rsplit_once('.').unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        let header = decoded(header);
        let keys = self.client.get(self.path("jwks_uri"), &[]).await.json();
        let keys = keys["keys"].as_array().unwrap();
        let key = keys.iter().find(|key| key["kid"] == header["kid"])?;
        let part = |name: &str| bytes(key[name].as_str().unwrap());
        let (message, signature) = (signed.as_bytes(), bytes(signature));
        let verified = match header["alg"].as_str()? {
            "RS256" => RsaPublicKeyComponents {
                n: part("n"),
                e: part("e"),
            }
            .verify(&RSA_PKCS1_2048_8192_SHA256, message, &signature),
            "ES256" => {
                let point = [vec![4], part("x"), part("y")].concat();
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, &signature)
            }
            "EdDSA" => UnparsedPublicKey::new(&ED25519, part("x")).verify(message, &signature),
            _ => return None,
        };
        verified.ok().map(|()| decoded(claims))
    }
}

fn bytes(encoded: &str) -> Vec<u8> {
    BASE64_URL_SAFE_NO_PAD.decode(encoded).unwrap()
}

fn decoded(part: &str) -> Value {
    serde_json::from_slice(&bytes(part)).unwrap()
}

#[tokio::test]
async fn each_issuer_documents_itself() {
    for path in ALL {
        let provider = OpenIdClient::discover(path).await;
        let issuer = format!("http://{HOST}{path}");
        assert_eq!(provider.document["issuer"], issuer);
        let claims = provider.verify(&provider.id_token("ada").await).await;
        let claims = claims.expect("the signature is valid");
        assert_eq!(claims["iss"], issuer);
        assert_eq!(claims["aud"], "signpost-demo");
        assert_eq!(claims["nonce"], "a nonce");
        let (issued, expires) = (claims["iat"].as_u64(), claims["exp"].as_u64());
        assert_eq!(expires, issued.map(|issued| issued + 3600));
    }
}

#[tokio::test]
async fn the_common_issuer_is_a_template() {
    let provider = OpenIdClient::discover("/microsoft/common/v2.0").await;
    let issuer = format!("http://{HOST}/microsoft/{{tenantid}}/v2.0");
    assert_eq!(provider.document["issuer"], issuer);
    let claims = provider.verify(&provider.id_token("ada").await).await;
    let issuer = format!("http://{HOST}{MICROSOFT}");
    assert_eq!(claims.expect("the signature is valid")["iss"], issuer);
    let unknown = "/microsoft/another/v2.0/.well-known/openid-configuration";
    let unknown = provider.client.get(unknown, &[]).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_claims_are_in_each_providers_form() {
    let google = OpenIdClient::discover(GOOGLE).await;
    let claims = google.verify(&google.id_token("ada").await).await.unwrap();
    assert_eq!(claims["azp"], "signpost-demo");
    assert_eq!(claims["name"], "Ada Lovelace");
    assert_eq!(claims["email"], "ada@sandbox.example");
    let subject = claims["sub"].as_str().unwrap();
    assert!(subject.len() == 21 && subject.bytes().all(|byte| byte.is_ascii_digit()));

    let microsoft = OpenIdClient::discover(MICROSOFT).await;
    let claims = microsoft.verify(&microsoft.id_token("ada").await).await;
    let claims = claims.unwrap();
    assert_eq!(claims["tid"], TENANT_ID);
    assert_eq!(claims["ver"], "2.0");
    assert_eq!(claims["oid"], User::named("ada").unwrap().bare_uuid());
    assert_ne!(claims["sub"], claims["oid"]);
    assert_eq!(claims["preferred_username"], "ada@sandbox.example");

    let oidc = OpenIdClient::discover(OIDC).await;
    let claims = oidc.verify(&oidc.id_token("ada").await).await.unwrap();
    assert_eq!(claims["sub"], User::named("ada").unwrap().bare_uuid());
    assert!(claims.get("name").is_none());
}

#[tokio::test]
async fn the_userinfo_has_the_id_tokens_subject_and_the_name() {
    for path in ALL {
        let provider = OpenIdClient::discover(path).await;
        let response = provider.exchange("ada", &[]).await.json();
        let claims = provider
            .verify(response["id_token"].as_str().unwrap())
            .await;
        let bearer = format!("Bearer {}", response["access_token"].as_str().unwrap());
        let userinfo = provider.path("userinfo_endpoint");
        let headers = [("authorization", &*bearer)];
        let user = provider.client.get(userinfo, &headers).await.json();
        assert_eq!(user["sub"], claims.unwrap()["sub"]);
        assert_eq!(user["name"], "Ada Lovelace");
        let rejected = provider.client.get(userinfo, &[]).await;
        assert_eq!(rejected.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn each_algorithm_is_published_and_used() {
    for (path, user, algorithm) in [
        (GOOGLE, "ada", "RS256"),
        (MICROSOFT, "ada", "RS256"),
        (OIDC, "ada", "ES256"),
        (OIDC, "grace", "EdDSA"),
    ] {
        let provider = OpenIdClient::discover(path).await;
        let id_token = provider.id_token(user).await;
        let (header, _) = id_token.split_once('.').unwrap();
        assert_eq!(decoded(header)["alg"], algorithm);
        assert!(provider.verify(&id_token).await.is_some());
        let offered = &provider.document["id_token_signing_alg_values_supported"];
        assert!(offered.as_array().unwrap().contains(&algorithm.into()));
    }
}

#[tokio::test]
async fn the_callback_has_each_providers_parameters() {
    let google = OpenIdClient::discover(GOOGLE).await;
    let callback = google
        .decide("ada", "allow", &[("prompt", "select_account")])
        .await;
    let callback = callback.callback();
    assert_eq!(callback["iss"], format!("http://{HOST}/google"));
    assert_eq!(callback["prompt"], "select_account");
    assert_eq!(callback["authuser"], "0");
    assert_eq!(callback["hd"], "sandbox.example");
    assert!(callback["scope"].starts_with("openid profile email https://"));
    assert!(callback["code"].contains('/'));

    let callback = OpenIdClient::discover(MICROSOFT)
        .await
        .callback("ada")
        .await;
    assert!(callback.contains_key("session_state"));
    assert!(!callback.contains_key("iss"));

    let oidc = OpenIdClient::discover(OIDC).await;
    let required = &oidc.document["authorization_response_iss_parameter_supported"];
    assert_eq!(required, &json!(true));
    let issuer = format!("http://{HOST}/oidc");
    assert_eq!(oidc.callback("ada").await["iss"], issuer);
    let denied = oidc.decide("ada", "deny", &[]).await.callback();
    assert_eq!(
        (&*denied["error"], &denied["iss"]),
        ("access_denied", &issuer)
    );

    let lying = Client::with_issuer(Some("https://another.example"));
    let lying = OpenIdClient::discover_with(lying, OIDC).await;
    assert_eq!(
        lying.callback("ada").await["iss"],
        "https://another.example"
    );
}

#[tokio::test]
async fn invalid_requests_are_redirected_back() {
    for path in ALL {
        let provider = OpenIdClient::discover(path).await;
        for (more, error) in [
            (("scope", "profile"), "invalid_scope"),
            (("scope", ""), "invalid_request"),
            (("prompt", "none"), "login_required"),
            (("prompt", "another"), "invalid_request"),
            (("response_type", "id_token"), "unsupported_response_type"),
            (("code_challenge_method", "plain"), "invalid_request"),
        ] {
            let rejected = provider.decide("ada", "allow", &[more]).await.callback();
            assert_eq!(rejected["error"], error, "{path} {more:?}");
            assert_eq!(rejected["state"], "a state");
        }
        for refusal in Refusal::ALL {
            let user = format!("error-{}", refusal.code());
            let refused = provider.callback(&user).await;
            assert_eq!(refused["error"], refusal.code());
            assert!(!refused["error_description"].is_empty());
        }
    }
    let microsoft = OpenIdClient::discover(MICROSOFT).await;
    let denied = microsoft.decide("ada", "deny", &[]).await.callback();
    assert_eq!(denied["error"], "access_denied");
    assert!(denied["error_description"].starts_with("AADSTS65004"));
}

#[tokio::test]
async fn rejected_exchanges_are_worded_in_each_providers_form() {
    let other_callback = format!("{CALLBACK}/other");
    let wrong_callback = ("redirect_uri", other_callback.as_str());
    let wrong_secret = ("client_secret", "another");
    let wrong_client = ("client_id", "another");
    let wrong_code = ("code", "another");
    for (path, more, status, error) in [
        (GOOGLE, wrong_code, 400, "invalid_grant"),
        (GOOGLE, wrong_secret, 401, "invalid_client"),
        (GOOGLE, wrong_callback, 400, "redirect_uri_mismatch"),
        (MICROSOFT, wrong_code, 400, "invalid_grant"),
        (MICROSOFT, wrong_secret, 401, "invalid_client"),
        (MICROSOFT, wrong_client, 400, "unauthorized_client"),
        (MICROSOFT, wrong_callback, 400, "invalid_grant"),
        (OIDC, wrong_code, 400, "invalid_grant"),
        (
            OIDC,
            ("grant_type", "password"),
            400,
            "unsupported_grant_type",
        ),
    ] {
        let provider = OpenIdClient::discover(path).await;
        let rejected = provider.exchange("ada", &[more]).await;
        assert_eq!(rejected.status, status, "{path} {more:?}");
        let body = rejected.json();
        assert_eq!(body["error"], error, "{path} {more:?}");
        if path == MICROSOFT {
            let code = body["error_codes"][0].as_u64().unwrap();
            let description = body["error_description"].as_str().unwrap();
            assert!(description.starts_with(&format!("AADSTS{code}: ")));
        }
    }
}

#[tokio::test]
async fn each_untrusted_id_token_has_its_fault_and_no_other() {
    for path in ALL {
        let provider = OpenIdClient::discover(path).await;
        let sound = provider.verify(&provider.id_token("ada").await).await;
        let sound = sound.expect("the signature is valid");
        for fault in IdFault::ALL {
            let user = format!("id-{}", fault.name());
            let response = provider.exchange(&user, &[]).await.json();
            let Some(id_token) = response["id_token"].as_str() else {
                assert_eq!(fault, IdFault::Missing);
                continue;
            };
            let [header, claims, signature] = id_token.split('.').collect::<Vec<_>>()[..] else {
                unreachable!("an ID token has three parts");
            };
            let (header, claims) = (decoded(header), decoded(claims));
            let is_signed = provider.verify(id_token).await.is_some();
            let claims_differ = ["iss", "aud", "nonce"].map(|name| claims[name] != sound[name]);
            let expected = match fault {
                IdFault::WrongIssuer => [true, false, false],
                IdFault::WrongAudience => [false, true, false],
                IdFault::WrongNonce => [false, false, true],
                _ => [false; 3],
            };
            assert_eq!(claims_differ, expected, "{path} {fault:?}");
            let is_expired = claims["exp"].as_u64() < sound["iat"].as_u64();
            assert_eq!(is_expired, fault == IdFault::Expired, "{path}");
            let has_subject = claims["sub"].is_string();
            assert_eq!(has_subject, fault != IdFault::NoSubject, "{path}");
            let unsigned = [
                IdFault::Unsigned,
                IdFault::Confused,
                IdFault::UnknownKey,
                IdFault::OtherSignature,
            ];
            assert_eq!(is_signed, !unsigned.contains(&fault), "{path} {fault:?}");
            assert_eq!(header["alg"] == "none", fault == IdFault::Unsigned);
            assert_eq!(signature.is_empty(), fault == IdFault::Unsigned);
            assert_eq!(header["alg"] == "HS256", fault == IdFault::Confused);
        }
    }
}

#[tokio::test]
async fn new_keys_replace_the_old_ones() {
    for (path, rotate) in [
        (GOOGLE, "/google/rotate-keys"),
        (MICROSOFT, "/microsoft/rotate-keys"),
        (OIDC, "/oidc/rotate-keys"),
    ] {
        let provider = OpenIdClient::discover(path).await;
        let old = provider.id_token("ada").await;
        assert!(provider.verify(&old).await.is_some());
        for _ in 0..2 {
            let rotated = provider
                .client
                .send("POST", rotate, &[], String::new())
                .await;
            assert_eq!(rotated.status, StatusCode::NO_CONTENT);
            assert!(provider.verify(&old).await.is_none(), "{path}");
            let new = provider.id_token("ada").await;
            assert!(provider.verify(&new).await.is_some(), "{path}");
        }
        let counts = provider.client.get("/_sandbox/counts", &[]).await.json();
        let name = rotate.trim_matches('/').split('/').next().unwrap();
        assert_eq!(counts[name]["discovery"], 1);
        assert!(counts[name]["keys"].as_u64().unwrap() >= 5);
    }
}

#[tokio::test]
async fn the_page_lists_the_untrusted_users() {
    let provider = OpenIdClient::discover(OIDC).await;
    let query = super::encode([
        ("client_id", "signpost-demo"),
        ("response_type", "code"),
        ("redirect_uri", CALLBACK),
        ("scope", "openid"),
        ("nonce", "a nonce"),
        ("login_hint", "ada"),
    ]);
    let page = format!("{}?{query}", provider.path("authorization_endpoint"));
    let page = provider.client.get(&page, &[]).await.body;
    for user in User::untrusted() {
        assert!(page.contains(&format!("value=\"{}\"", user.name)));
    }
    assert!(page.contains("name=\"nonce\" value=\"a nonce\""));
    assert!(page.contains("name=\"login_hint\" value=\"ada\""));
}
