//! A login through each kind of provider, in the shape that the provider documents: the sandbox stands in for them, since
//! the real ones cannot be reached by a test. CONTRACT 8.

use end_to_end::{
    browser::{Browser, Decision, param},
    logins::{begin_polling, check, credential, until_well},
    program::{Program, output_text},
    real_browser::{Key, RealBrowser},
    response::Response,
    stack::Stack,
};
use sandbox_provider::user::User;
use serde_json::json;

/// Every kind below the sandbox, and no default.
const KINDS: [(&str, &str); 7] = [
    ("github", "kind = 'github'\nurl = 'http://$PROVIDER/github'"),
    ("gitlab", "kind = 'gitlab'\nurl = 'http://$PROVIDER/gitlab'"),
    ("gitea", "kind = 'gitea'\nurl = 'http://$PROVIDER/gitea'"),
    (
        "google",
        "kind = 'google'\nissuer = 'http://$PROVIDER/google'",
    ),
    (
        "microsoft",
        "kind = 'microsoft'\nissuer = 'http://$PROVIDER/microsoft/00000000-0000-4000-8000-000000000001/v2.0'",
    ),
    ("company", "kind = 'oidc'\nissuer = 'http://$PROVIDER/oidc'"),
    (
        "other",
        "kind = 'oauth2'\nauthorize_url = 'http://$PROVIDER/gitlab/oauth/authorize'\n\
         token_url = 'http://$PROVIDER/gitlab/oauth/token'\nuser_url = 'http://$PROVIDER/gitlab/api/v4/user'\n\
         scopes = ['read_user']\nclient_auth = 'post'\nid_field = 'username'\ndisplay_name_field = 'name'",
    ),
];

/// A stack with all of them beside the sandbox's root, which is "bitbucket".
async fn start() -> Stack {
    start_with("").await
}

/// The same, with these keys besides.
async fn start_with(more: &str) -> Stack {
    let client = "client_id = 'signpost-demo'\nclient_secret = 'sandbox-only-secret'\n";
    let table = |(name, keys): &(&str, &str)| format!("[providers.{name}]\n{keys}\n{client}");
    let tables: String = KINDS.iter().map(table).collect();
    let builder = Stack::builder().backends(&format!("{tables}{more}"));
    let stack = builder.start().await;
    for name in names() {
        until_well(&stack.client(), name).await;
    }
    stack
}

fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(name, _)| *name)
}

/// A whole redirect login of a client that takes data: the last response.
async fn log_in(stack: &Stack, provider: &str, user: &str) -> Response {
    let mut browser = Browser::for_data();
    let url = stack.client().login_url(&[("provider", provider)]);
    let page = browser.open(&url).await;
    let last = browser.decide_and_follow(&page, user, Decision::Allow);
    last.await.response
}

#[tokio::test]
async fn a_login_through_each_kind_of_provider_identifies_the_user() {
    let stack = start().await;
    // More digits than a float has, where the identifier is a number; and a name that only the record has.
    let grace = User::named("grace").unwrap();
    let [number, uuid] = [grace.number().to_string(), grace.bare_uuid()];
    for name in names() {
        let login = log_in(&stack, name, "grace").await.ok();
        let account = &login["account"];
        assert_eq!(account["type"], name, "{login}");
        assert_eq!(account["display_name"], "Grace Hopper", "{login}");
        match name {
            "github" | "gitlab" | "gitea" => assert_eq!(account["username"], number),
            "company" => assert_eq!(account["username"], uuid),
            "other" => assert_eq!(account["username"], "grace"),
            _ => assert!(account["username"].as_str().unwrap().len() > 20, "{login}"),
        }
        let again = log_in(&stack, name, "grace").await.ok();
        assert_eq!(
            (&again["created"], &again["account"]),
            (&json!(false), account)
        );
        let client = stack.client();
        let user = client.get("/user").version("v2");
        let user = user.authorization(credential(&again)).send().await.ok();
        assert_eq!(user["provider"], name, "{user}");
    }
    // The same number at three providers, and yet seven people.
    let accounts = stack.store().query("SELECT count(*) FROM accounts");
    assert_eq!(accounts.number(), 7);
    // A user without a name of one's own is shown by the login name.
    let joao = log_in(&stack, "github", "joao").await.ok();
    assert_eq!(joao["account"]["display_name"], "joao");
}

#[tokio::test]
async fn a_user_chooses_one_of_all_by_polling() {
    let stack = start().await;
    let client = stack.client();
    for name in ["google", "gitea"] {
        let begun = begin_polling(&client).await;
        let mut browser = Browser::default();
        let page = browser.open(&begun.authorize_url).await;
        assert!(page.text().contains(&begun.user_code), "{}", page.text());
        let links = page.links();
        let buttons: Vec<_> = links
            .iter()
            .filter_map(|link| param(link, "provider"))
            .collect();
        assert_eq!(buttons.len(), 8, "{buttons:?}");
        let chosen = |link: &&url::Url| param(link, "provider").is_some_and(|one| one == name);
        let provider = browser
            .open(links.iter().find(chosen).unwrap().as_str())
            .await;
        let done = browser
            .decide_and_follow(&provider, "ada", Decision::Allow)
            .await;
        assert_eq!(done.response.status, 200, "{}", done.text());
        let checked = check(&client, &begun.token).await;
        assert_eq!(checked["login"]["account"]["type"], name, "{checked}");
    }
}

#[tokio::test]
async fn errors_of_each_kind_have_their_meaning() {
    let stack = start().await;
    for name in names() {
        for (user, status, code) in [
            ("error-invalid_scope", 502, "provider_failed"),
            ("error-unauthorized_client", 502, "provider_failed"),
            ("error-temporarily_unavailable", 502, "provider_failed"),
            // GitHub answers it with status 200.
            ("token-refused", 502, "provider_failed"),
        ] {
            let failed = log_in(&stack, name, user).await;
            failed.rejected(status, code);
        }
        let mut browser = Browser::for_data();
        let url = stack.client().login_url(&[("provider", name)]);
        let page = browser.open(&url).await;
        let denied = browser
            .decide_and_follow(&page, "ada", Decision::Deny)
            .await;
        denied.response.rejected(403, "login_denied");
    }
    let log = stack.log(Program::V1);
    for expected in [
        "invalid_scope: compare client_id, scopes",
        "unauthorized_client: compare",
        "the provider is unavailable: temporarily_unavailable",
    ] {
        assert!(log.contains(expected), "{expected}\n{log}");
    }
    assert!(!log.contains("sandbox-only-secret"));
    let accounts = stack.store().query("SELECT count(*) FROM accounts");
    assert_eq!(accounts.number(), 0);
}

#[tokio::test]
async fn no_id_token_that_is_not_right_logs_anybody_in() {
    let stack = start().await;
    for name in ["google", "microsoft", "company"] {
        for user in User::untrusted() {
            let failed = log_in(&stack, name, &user.name).await;
            // A login that needs the next fetch of the keys can time out on a busy machine.
            let is_fetched = ["id-unknown-key", "id-other-signature"].contains(&&*user.name);
            match is_fetched && failed.status == 504 {
                true => failed.rejected(504, "provider_timeout"),
                false => failed.rejected(502, "provider_failed"),
            }
        }
        // An unknown key has the keys fetched again, not for each login.
        let counts = stack.provider_counts().await;
        let fetched = counts[name_of(name)]["keys"].as_u64().unwrap();
        assert!((1..=10).contains(&fetched), "{counts}");
    }
    for expected in ["audience", "nonce", "expired", "signature"] {
        stack.log_with(Program::V1, expected).await;
    }
    let accounts = stack.store().query("SELECT count(*) FROM accounts");
    assert_eq!(accounts.number(), 0);
    log_in(&stack, "google", "ada").await.ok();
}

/// What the sandbox counts for a provider by this name.
fn name_of(provider: &str) -> &str {
    match provider {
        "company" => "oidc",
        same => same,
    }
}

#[tokio::test]
async fn check_online_says_what_would_fail_at_the_first_login() {
    let stack = start().await;
    let check = |more: &str| {
        let own = std::fs::read_to_string(stack.config(Program::V1)).unwrap();
        std::fs::write(
            stack.folder().join("changed.toml"),
            format!("{own}\n{more}"),
        )
        .unwrap();
        let arguments = ["check", "--online", "--config", "changed.toml"];
        let output = Program::V1.run(stack.folder(), &arguments);
        (output.status.success(), output_text(&output))
    };
    let (is_well, text) = check("");
    assert!(is_well, "{text}");
    for name in names().chain(["bitbucket"]) {
        assert!(text.contains(&format!("providers.{name}: OK")), "{text}");
    }
    let provider = stack.addresses().provider;
    let common = format!(
        "[providers.common]\nkind = 'oidc'\nissuer = 'http://{provider}/microsoft/common/v2.0'\nclient_id = 'x'\n\
         client_secret = 'y'\n[providers.wrong]\nkind = 'github'\nurl = 'http://{provider}/github'\n\
         client_id = 'signpost-demo'\nclient_secret = 'hunter2'\n"
    );
    let (is_well, text) = check(&common);
    assert!(!is_well, "{text}");
    for (name, expected) in [
        ("common", "tenant"),
        ("wrong", "incorrect_client_credentials"),
    ] {
        let start = format!("providers.{name}: ");
        let mut lines = text.lines();
        let line = lines.find(|line| line.starts_with(&start)).expect(&text);
        assert!(line.contains(expected), "{line}");
    }
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn accounts_of_a_provider_that_is_gone_are_reported() {
    let stack = start().await;
    log_in(&stack, "github", "ada").await.ok();
    let file = stack.config(Program::V1);
    let own = std::fs::read_to_string(&file).unwrap();
    let check = |text: &str| {
        std::fs::write(stack.folder().join("renamed.toml"), text).unwrap();
        let output = Program::V1.run(stack.folder(), &["check", "--config", "renamed.toml"]);
        assert!(output.status.success(), "{}", output_text(&output));
        output_text(&output)
    };
    assert!(!check(&own).contains("accounts of the provider"));
    let renamed = check(&own.replace("[providers.github]", "[providers.hub]"));
    let warning = "warning: accounts of the provider \"github\" exist";
    assert!(renamed.contains(warning), "{renamed}");
}

#[tokio::test]
async fn a_person_chooses_by_the_keyboard_on_a_phone_goes_back_and_chooses_another() {
    let stack = start_with(
        "[application]\nreturn_to = [\"http://$GATEWAY\"]\n[providers.github.label]\nen = 'Code <R&D>'\nja = '社内のコード'\n",
    )
    .await;
    let return_to = stack.url("/problems/app_missing");
    let begin = || stack.client().login_url(&[("return_to", &return_to)]);
    let browser = RealBrowser::start("ja").await;
    browser.show_as(360, false).await;
    browser.open(&begin()).await;
    let page = browser.wait_for_text("社内のコード でログイン").await;
    for label in [
        "GitLab",
        "Gitea",
        "Google",
        "Microsoft",
        "company",
        "Bitbucket",
    ] {
        assert!(page.contains(&format!("{label} でログイン")), "{page}");
    }
    let width = browser
        .run("return document.documentElement.scrollWidth")
        .await;
    assert!(width.as_u64().unwrap() <= 360, "{width}");
    if let Some(folder) = std::env::var_os("SIGNPOST_PICTURES") {
        let file = std::path::Path::new(&folder).join("choose.png");
        std::fs::write(file, browser.picture().await).unwrap();
    }
    // By name: bitbucket, company, gitea.
    browser
        .press(&[Key::Tab, Key::Tab, Key::Tab, Key::Enter])
        .await;
    browser.wait_for_text("Sign in to the sandbox").await;
    assert!(browser.address().await.contains("/gitea/"));
    browser.back().await;
    browser.wait_for_text("GitLab でログイン").await;
    browser.click("a[href$='provider=google']").await;
    browser.wait_for_text("Sign in to the sandbox").await;
    assert!(browser.address().await.contains("/google/"));
    browser.click("button[value=allow]").await;
    browser.wait_for_text("app_missing").await;
    let address = browser.address().await;
    assert!(address.contains("?ticket="), "{address}");
    assert_eq!(browser.console_errors().await, Vec::<String>::new());
    // The provider is unavailable: the page leads to it again.
    browser.open(&begin()).await;
    browser.click("a[href$='provider=gitlab']").await;
    browser.wait_for_text("Sign in to the sandbox").await;
    let choose = "document.querySelector('input[value=error-server_error]').checked = true";
    browser.run(choose).await;
    browser.click("button[value=allow]").await;
    browser.wait_for_text("やり直す").await;
    browser.click("a.button").await;
    browser.wait_for_text("Sign in to the sandbox").await;
    browser.click("button[value=allow]").await;
    browser.wait_for_text("app_missing").await;
}
