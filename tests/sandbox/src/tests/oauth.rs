//! The providers without `OpenID Connect`.

use axum::http::{StatusCode, header};
use serde_json::{Value, json};

use super::{Client, POST_AUTH, Pairs, Received, basic_auth};
use crate::{fault::Fault, refusal::Refusal, user::User};

/// The paths of a provider, and the scope that its preset requests.
#[derive(Clone, Copy)]
struct At {
    authorize: &'static str,
    token: &'static str,
    user: &'static str,
    scope: &'static str,
    id_field: &'static str,
}

const BITBUCKET: At = At {
    authorize: "/site/oauth2/authorize",
    token: "/site/oauth2/access_token",
    user: "/2.0/user",
    scope: "",
    id_field: "uuid",
};
const GITHUB: At = At {
    authorize: "/github/login/oauth/authorize",
    token: "/github/login/oauth/access_token",
    user: "/github/api/v3/user",
    scope: "",
    id_field: "id",
};
const GITLAB: At = At {
    authorize: "/gitlab/oauth/authorize",
    token: "/gitlab/oauth/token",
    user: "/gitlab/api/v4/user",
    scope: "read_user",
    id_field: "id",
};
const GITEA: At = At {
    authorize: "/gitea/login/oauth/authorize",
    token: "/gitea/login/oauth/access_token",
    user: "/gitea/api/v1/user",
    scope: "read:user",
    id_field: "id",
};
const ALL: [At; 4] = [BITBUCKET, GITHUB, GITLAB, GITEA];

impl At {
    async fn exchange(self, client: &Client, user: &str, more: Pairs<'_>) -> Received {
        let scope = [("scope", self.scope)];
        let code = client.code(self.authorize, user, &scope).await;
        self.exchange_code(client, &code, more).await
    }

    async fn exchange_code(self, client: &Client, code: &str, more: Pairs<'_>) -> Received {
        let json = ("accept", "application/json");
        if self.authorize == BITBUCKET.authorize {
            let basic = basic_auth();
            let headers = [json, ("authorization", &*basic)];
            return client.exchange(self.token, code, &headers, more).await;
        }
        let form = [&POST_AUTH, more].concat();
        client.exchange(self.token, code, &[json], &form).await
    }

    async fn user(self, client: &Client, user: &str) -> Received {
        let token = self.exchange(client, user, &[]).await;
        assert_eq!(token.status, StatusCode::OK, "{token:?}");
        let bearer = format!("Bearer {}", token.json()["access_token"].as_str().unwrap());
        let headers = [("authorization", &*bearer), ("user-agent", "test")];
        client.get(self.user, &headers).await
    }
}

#[tokio::test]
async fn each_user_record_is_in_its_providers_form() {
    let client = Client::new();
    let ada = BITBUCKET.user(&client, "ada").await.json();
    assert_eq!(ada["uuid"], User::named("ada").unwrap().uuid());
    assert_eq!(ada["display_name"], "Ada Lovelace");
    let number = User::named("ada").unwrap().number();
    let ada = GITHUB.user(&client, "ada").await.json();
    assert_eq!(ada["id"], number);
    assert_eq!(ada["login"], "ada");
    assert_eq!(ada["name"], "Ada Lovelace");
    let ada = GITLAB.user(&client, "ada").await.json();
    assert_eq!(
        (&ada["id"], &ada["username"]),
        (&json!(number), &json!("ada"))
    );
    assert_eq!(ada["name"], "Ada Lovelace");
    let ada = GITEA.user(&client, "ada").await.json();
    assert_eq!((&ada["id"], &ada["login"]), (&json!(number), &json!("ada")));
    assert_eq!(ada["full_name"], "Ada Lovelace");
}

#[tokio::test]
async fn a_number_can_be_too_large_for_a_float_and_a_name_can_be_missing() {
    let client = Client::new();
    for at in [GITHUB, GITLAB, GITEA] {
        let grace = at.user(&client, "grace").await;
        assert!(grace.body.contains("\"id\":9007199254740993"), "{grace:?}");
    }
    assert_eq!(
        GITHUB.user(&client, "joao").await.json()["name"],
        Value::Null
    );
    assert_eq!(GITEA.user(&client, "joao").await.json()["full_name"], "");
}

#[tokio::test]
async fn denial_and_refusals_are_redirected_back() {
    let client = Client::new();
    for at in ALL {
        let scope = [("scope", at.scope)];
        let denied = client.decide(at.authorize, "ada", "deny", &scope).await;
        let denied = denied.callback();
        assert_eq!(denied["error"], "access_denied");
        assert_eq!(denied["state"], "a state");
        for refusal in Refusal::ALL {
            let user = format!("error-{}", refusal.code());
            let refused = client.decide(at.authorize, &user, "allow", &scope).await;
            let refused = refused.callback();
            assert_eq!(refused["error"], refusal.code());
            assert_eq!(refused["state"], "a state");
            assert!(!refused["error_description"].is_empty());
            assert!(!refused.contains_key("code"));
        }
    }
}

#[tokio::test]
async fn rejected_exchanges_are_worded_in_each_providers_form() {
    let client = Client::new();
    let wrong_verifier = ("code_verifier", "another");
    let wrong_callback = ("redirect_uri", "http://127.0.0.1:8080/other");
    let wrong_secret = ("client_secret", "another");
    let wrong_client = ("client_id", "another");
    for (at, more, status, error) in [
        (BITBUCKET, wrong_verifier, 400, "invalid_grant"),
        (BITBUCKET, ("grant_type", ""), 400, "unsupported_grant_type"),
        (GITHUB, wrong_verifier, 200, "bad_verification_code"),
        (GITHUB, wrong_callback, 200, "redirect_uri_mismatch"),
        (GITHUB, wrong_secret, 200, "incorrect_client_credentials"),
        (GITHUB, wrong_client, 200, "incorrect_client_credentials"),
        (GITLAB, wrong_verifier, 400, "invalid_grant"),
        (GITLAB, wrong_callback, 400, "invalid_grant"),
        (GITLAB, wrong_secret, 401, "invalid_client"),
        (GITEA, wrong_verifier, 400, "unauthorized_client"),
        (GITEA, wrong_callback, 400, "invalid_grant"),
        (GITEA, wrong_secret, 400, "unauthorized_client"),
        (GITEA, wrong_client, 400, "invalid_client"),
    ] {
        let rejected = at.exchange(&client, "ada", &[more]).await;
        assert_eq!(rejected.status, status, "{} {more:?}", at.token);
        assert_eq!(rejected.json()["error"], error, "{} {more:?}", at.token);
    }
}

#[tokio::test]
async fn a_code_is_exchanged_once_and_by_its_own_provider_only() {
    let client = Client::new();
    for (at, other) in [(BITBUCKET, GITHUB), (GITHUB, GITLAB), (GITLAB, GITEA)] {
        let scope = [("scope", at.scope)];
        let code = client.code(at.authorize, "ada", &scope).await;
        let elsewhere = other.exchange_code(&client, &code, &[]).await;
        assert!(elsewhere.json()["error"].is_string(), "{elsewhere:?}");
        let first = at.exchange_code(&client, &code, &[]).await;
        assert!(first.json()["access_token"].is_string(), "{first:?}");
        let second = at.exchange_code(&client, &code, &[]).await;
        assert!(second.json()["error"].is_string(), "{second:?}");
    }
}

#[tokio::test]
async fn each_provider_expects_the_clients_secret_in_its_place() {
    let client = Client::new();
    let basic = basic_auth();
    let basic = [("authorization", &*basic), ("accept", "application/json")];
    for (at, by_basic, by_post) in [
        (BITBUCKET, true, false),
        (GITHUB, false, true),
        (GITLAB, true, true),
        (GITEA, true, true),
    ] {
        let scope = [("scope", at.scope)];
        let code = client.code(at.authorize, "ada", &scope).await;
        let response = client.exchange(at.token, &code, &basic, &[]).await;
        let is_accepted = response.json()["access_token"].is_string();
        assert_eq!(is_accepted, by_basic, "{} {response:?}", at.token);
        let code = client.code(at.authorize, "ada", &scope).await;
        let json = [("accept", "application/json")];
        let response = client.exchange(at.token, &code, &json, &POST_AUTH).await;
        let is_accepted = response.json()["access_token"].is_string();
        assert_eq!(is_accepted, by_post, "{} {response:?}", at.token);
        // RFC 6749 section 2.3: never both.
        if by_basic && by_post {
            let response = client.exchange(at.token, &code, &basic, &POST_AUTH).await;
            assert_eq!(response.json()["error"], "invalid_request");
        }
    }
}

#[tokio::test]
async fn github_writes_a_form_unless_json_is_accepted() {
    let client = Client::new();
    let more = [("scope", "user:email read:org")];
    let code = client.code(GITHUB.authorize, "ada", &more).await;
    let form = client.exchange(GITHUB.token, &code, &[], &POST_AUTH).await;
    let media = form.header(header::CONTENT_TYPE);
    assert!(
        media.starts_with("application/x-www-form-urlencoded"),
        "{media}"
    );
    assert!(
        form.body.contains("scope=user%3Aemail%2Cread%3Aorg"),
        "{form:?}"
    );
    let again = client.exchange(GITHUB.token, &code, &[], &POST_AUTH).await;
    assert_eq!(again.status, StatusCode::OK);
    assert!(
        again.body.contains("error=bad_verification_code"),
        "{again:?}"
    );
    let json = GITHUB.exchange(&client, "ada", &[]).await;
    assert!(
        json.header(header::CONTENT_TYPE)
            .starts_with("application/json")
    );
}

#[tokio::test]
async fn a_request_for_the_user_is_rejected_in_each_providers_form() {
    let client = Client::new();
    let agent = ("user-agent", "test");
    let wrong = ("authorization", "Bearer another");
    assert_eq!(
        client.get(GITHUB.user, &[wrong]).await.status,
        StatusCode::FORBIDDEN
    );
    for (at, message) in [
        (GITHUB, "Bad credentials"),
        (GITLAB, "401 Unauthorized"),
        (GITEA, "token is required"),
    ] {
        let rejected = client.get(at.user, &[wrong, agent]).await;
        assert_eq!(rejected.status, StatusCode::UNAUTHORIZED);
        assert_eq!(rejected.json()["message"], message);
    }
    let bitbucket = client.get(BITBUCKET.user, &[wrong]).await;
    assert_eq!(bitbucket.status, StatusCode::UNAUTHORIZED);
    assert_eq!(bitbucket.json()["type"], "error");
}

#[tokio::test]
async fn gitlab_and_gitea_want_their_scope() {
    let client = Client::new();
    for scope in ["", "openid", "read_user api"] {
        let more = [("scope", scope)];
        let rejected = client.decide(GITLAB.authorize, "ada", "allow", &more).await;
        assert_eq!(rejected.callback()["error"], "invalid_scope", "{scope}");
    }
    let unrelated = At {
        scope: "read:repository",
        ..GITEA
    };
    let user = unrelated.user(&client, "ada").await;
    assert_eq!(user.status, StatusCode::FORBIDDEN);
    let unlimited = At { scope: "", ..GITEA };
    assert_eq!(unlimited.user(&client, "ada").await.status, StatusCode::OK);
}

#[tokio::test]
async fn another_callback_is_rejected() {
    let client = Client::new();
    let below = [("redirect_uri", "http://127.0.0.1:8080/login/v1")];
    for at in [GITLAB, GITEA] {
        let more = [("scope", at.scope), below[0]];
        let page = client.decide(at.authorize, "ada", "allow", &more).await;
        assert_eq!(page.status, StatusCode::BAD_REQUEST);
        let more = [("scope", at.scope), ("redirect_uri", "")];
        let page = client.decide(at.authorize, "ada", "allow", &more).await;
        assert_eq!(page.status, StatusCode::BAD_REQUEST);
    }
    let github = client
        .decide(GITHUB.authorize, "ada", "allow", &below)
        .await;
    assert_eq!(github.callback()["error"], "redirect_uri_mismatch");
    let absent = [("redirect_uri", "")];
    let github = client
        .decide(GITHUB.authorize, "ada", "allow", &absent)
        .await;
    assert!(github.callback().contains_key("code"));
    let bitbucket = client
        .decide(BITBUCKET.authorize, "ada", "allow", &below)
        .await;
    let location = bitbucket.header(header::LOCATION);
    assert!(
        location.starts_with("http://127.0.0.1:8080/login/v1?code="),
        "{location}"
    );
}

#[tokio::test]
async fn the_page_posts_the_request_back_to_its_own_address() {
    let client = Client::new();
    for at in ALL {
        let query = super::encode([
            ("client_id", "signpost-demo"),
            ("response_type", "code"),
            ("redirect_uri", super::CALLBACK),
            ("state", "<\">"),
            ("scope", at.scope),
        ]);
        let page = client.get(&format!("{}?{query}", at.authorize), &[]).await;
        assert_eq!(page.status, StatusCode::OK, "{page:?}");
        let action = format!("action=\"{}\"", at.authorize);
        assert!(page.body.contains(&action), "{page:?}");
        let state = "name=\"state\" value=\"&lt;&quot;&gt;\"";
        assert!(page.body.contains(state), "{page:?}");
        for user in User::faulty().into_iter().chain(User::refused()) {
            assert!(page.body.contains(&format!("value=\"{}\"", user.name)));
        }
        assert!(!page.body.contains("id-wrong-aud"));
    }
}

#[tokio::test]
async fn correct_json_can_have_the_content_type_of_html() {
    let client = Client::new();
    let user = format!("-{}", Fault::WrongType.name());
    for at in ALL {
        let token = at.exchange(&client, &format!("token{user}"), &[]).await;
        assert!(token.header(header::CONTENT_TYPE).starts_with("text/html"));
        assert!(token.json()["access_token"].is_string());
        let profile = at.user(&client, &format!("profile{user}")).await;
        assert!(
            profile
                .header(header::CONTENT_TYPE)
                .starts_with("text/html")
        );
        assert!(!profile.json()[at.id_field].is_null());
        let missing = at.user(&client, "profile-field-missing").await;
        assert!(missing.json()[at.id_field].is_null());
    }
}

#[tokio::test]
async fn a_rejected_code_has_each_providers_form_as_a_fault_too() {
    let client = Client::new();
    for (at, status, error) in [
        (BITBUCKET, 400, "invalid_grant"),
        (GITHUB, 200, "bad_verification_code"),
        (GITLAB, 400, "invalid_grant"),
        (GITEA, 400, "unauthorized_client"),
    ] {
        let refused = at.exchange(&client, "token-refused", &[]).await;
        assert_eq!(refused.status, status);
        assert_eq!(refused.json()["error"], error);
    }
}

#[tokio::test]
async fn calls_are_counted_for_each_provider() {
    let client = Client::new();
    GITHUB.user(&client, "ada").await;
    BITBUCKET.exchange(&client, "ada", &[]).await;
    let counts = client.get("/_sandbox/counts", &[]).await.json();
    let github = json!({
        "authorize": 0, "decide": 1, "token": 1, "profile": 1, "discovery": 0, "keys": 0,
    });
    assert_eq!(counts["github"], github);
    assert_eq!(counts["gitlab"]["decide"], 0);
    assert_eq!(
        (&counts["decide"], &counts["profile"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(counts["elsewhere"], 0);
}
