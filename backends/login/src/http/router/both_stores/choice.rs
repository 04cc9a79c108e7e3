//! The user chooses a provider on a page, in both modes, and tries again at one that is unavailable.

use super::*;

/// Two providers, and no default. The second one has an address of its own, so that its redirects can be told apart.
const SECOND: &str = "[providers.second]\nkind = \"oauth2\"\nauthorize_url = \"https://second.example/authorize\"\n\
    token_url = \"http://127.0.0.1:1/t\"\nuser_url = \"http://127.0.0.1:1/u\"\nid_field = \"id\"\nclient_id = \"i\"\n\
    client_secret = \"s\"\npass_on = [\"login_hint\"]\n";

/// Of RFC 7636 appendix B.
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// The page's links, in their order.
fn links(page: &Response) -> Vec<String> {
    assert_eq!(page.status, StatusCode::OK, "{}", page.body);
    let links = page.body.split("href=\"?").skip(1);
    let link = |rest: &str| rest.split('"').next().unwrap().replace("&amp;", "&");
    links.map(|rest| format!("/login?{}", link(rest))).collect()
}

/// Begins a redirect login without a provider, and returns the address of its page, and its cookie.
async fn begin(setup: &Setup) -> (String, String) {
    let target =
        format!("{WITH_RETURN_TO}&login_hint=ada%40example.org&code_challenge={CHALLENGE}");
    let html = [("accept", "text/html")];
    let begun = setup.call("GET", &target, &html).await;
    let page = begun.header(header::LOCATION).to_owned();
    let (_, path) = page.split_once("/login?state=").expect(&page);
    (format!("/login?state={path}"), begun.cookie())
}

#[tokio::test]
async fn a_browser_chooses_one_of_several_providers_in_a_redirect_login() {
    let setup = Setup::with(SECOND).await;
    let (page, cookie) = begin(&setup).await;
    let shown = setup.browse(&page, &cookie).await;
    let [first, second] = &links(&shown)[..] else {
        panic!("{}", shown.body);
    };
    assert!(first.ends_with("&provider=sandbox") && second.ends_with("&provider=second"));
    // Nothing is stored until a callback.
    assert_eq!(setup.store.count("logins").await, 0);
    // The user goes to one, comes back, and chooses the other: each choice is a login of its own.
    let other = setup.browse(second, &cookie).await;
    let to = other.header(header::LOCATION);
    assert!(to.starts_with("https://second.example/authorize?"), "{to}");
    assert!(to.contains("login_hint=ada%40example.org"), "{to}");
    let chosen = setup.browse(first, &cookie).await;
    assert!(!chosen.header(header::LOCATION).contains("login_hint"));
    let target = format!("/login?state={}&code=me", chosen.state());
    let done = setup.browse(&target, &chosen.cookie()).await;
    let (_, ticket) = done
        .header(header::LOCATION)
        .split_once("?ticket=")
        .unwrap();
    // The login is still bound to who began it.
    let exchange = format!("/user/login?ticket={ticket}");
    let refused = setup.call("POST", &exchange, &[]).await;
    refused.assert_problem(404, "login_unknown");
    let exchange = format!("{exchange}&code_verifier={VERIFIER}");
    assert_eq!(
        setup.call("POST", &exchange, &[]).await.status,
        StatusCode::OK
    );
    // The choice is in the state: the code of one provider does not get to another.
    assert!(!to.contains(&chosen.state()));
    let mixed = setup.browse(&target, &other.cookie()).await;
    mixed.assert_problem(409, "login_used");
}

#[tokio::test]
async fn the_page_of_a_redirect_login_belongs_to_its_browser() {
    let setup = Setup::with(SECOND).await;
    let (page, cookie) = begin(&setup).await;
    let choice = format!("{page}&provider=sandbox");
    for target in [&page, &choice] {
        setup
            .browse(target, "")
            .await
            .assert_problem(400, "login_mismatch");
    }
    let unknown = setup
        .browse(&format!("{page}&provider=other"), &cookie)
        .await;
    unknown.assert_problem(400, "param_invalid");
    // It was at no provider: no callback can be its own.
    for grant in ["code=me", "error=access_denied"] {
        let early = setup.browse(&format!("{page}&{grant}"), &cookie).await;
        early.assert_problem(400, "login_mismatch");
    }
    // The choice made, its state is fixed.
    let chosen = setup.browse(&choice, &cookie).await;
    let fixed = format!("/login?state={}&provider=second", chosen.state());
    let refused = setup.browse(&fixed, &chosen.cookie()).await;
    refused.assert_problem(400, "login_mismatch");
    setup.later(601);
    setup
        .browse(&choice, &cookie)
        .await
        .assert_problem(410, "login_expired");
}

#[tokio::test]
async fn a_program_cannot_choose_and_a_named_or_default_provider_needs_no_choice() {
    let setup = Setup::with(SECOND).await;
    let data = setup.call("GET", "/login", &[]).await;
    data.assert_problem(400, "param_missing");
    let html = [("accept", "text/html")];
    let named = format!("{WITH_RETURN_TO}&provider=sandbox");
    setup.call("GET", &named, &html).await.state();
    let with_default = format!("default_provider = \"sandbox\"\n{SECOND}");
    let setup = Setup::with(&with_default).await;
    setup.call("GET", WITH_RETURN_TO, &html).await.state();
}

#[tokio::test]
async fn a_client_need_not_choose_for_the_user_of_a_polling_login() {
    let setup = Setup::with(SECOND).await;
    let target = "/login?login_hint=ada%40example.org";
    let begun = setup.call("POST", target, &[]).await.json();
    let page = begun["authorize_url"].as_str().unwrap();
    let page = page.strip_prefix("http://127.0.0.1:8080").unwrap();
    let shown = setup.browse(page, "").await;
    assert!(shown.body.contains(begun["user_code"].as_str().unwrap()));
    let [first, second, _cancel] = &links(&shown)[..] else {
        panic!("{}", shown.body);
    };
    // Another browser's page has other links, and a choice needs the page.
    setup
        .browse(first, "")
        .await
        .assert_problem(400, "login_mismatch");
    let bare = format!("{page}&provider=sandbox");
    setup
        .browse(&bare, &shown.cookie())
        .await
        .assert_problem(400, "login_mismatch");
    let without = first.replace("&provider=sandbox", "");
    setup
        .browse(&without, &shown.cookie())
        .await
        .assert_problem(400, "param_missing");
    let other = setup.browse(second, &shown.cookie()).await;
    let to = other.header(header::LOCATION);
    assert!(to.starts_with("https://second.example/authorize?"), "{to}");
    assert!(to.contains("login_hint=ada%40example.org"), "{to}");
    // Back on the page, there is the whole choice again.
    let again = setup.browse(page, &shown.cookie()).await;
    assert_eq!(links(&again)[..2], links(&shown)[..2]);
    let chosen = setup.browse(first, &shown.cookie()).await;
    let target = format!("/login?state={}&code=me", chosen.state());
    assert_eq!(
        setup.browse(&target, &shown.cookie()).await.status,
        StatusCode::OK
    );
    let check = format!("/check?token={}", begun["token"].as_str().unwrap());
    let checked = setup.call("POST", &check, &[]).await.json();
    assert_eq!(checked["status"], "complete");
    assert_eq!(checked["login"]["account"]["username"], "{me}");
}

#[tokio::test]
async fn a_polling_login_can_be_cancelled_before_a_provider_is_chosen() {
    let setup = Setup::with(SECOND).await;
    let begun = setup.call("POST", "/login", &[]).await.json();
    let page = begun["authorize_url"].as_str().unwrap();
    let page = page.strip_prefix("http://127.0.0.1:8080").unwrap();
    let shown = setup.browse(page, "").await;
    let cancel = links(&shown).pop().unwrap();
    assert_eq!(
        setup.browse(&cancel, &shown.cookie()).await.status,
        StatusCode::OK
    );
    let check = format!("/check?token={}", begun["token"].as_str().unwrap());
    let checked = setup.call("POST", &check, &[]).await.json();
    assert_eq!(checked["reason"], "access_denied");
}

#[tokio::test]
async fn the_choice_needs_a_page_even_without_confirmation() {
    let setup = Setup::with(&format!("polling.confirm = false\n{SECOND}")).await;
    let begun = setup.call("POST", "/login", &[]).await.json();
    let page = begun["authorize_url"].as_str().unwrap();
    let page = page.strip_prefix("http://127.0.0.1:8080").unwrap();
    assert_eq!(links(&setup.browse(page, "").await).len(), 3);
}

#[tokio::test]
async fn a_provider_that_is_unavailable_ends_no_login() {
    let setup = Setup::new().await;
    for error in ["temporarily_unavailable", "server_error"] {
        let begun = setup.call("GET", WITH_RETURN_TO, &[]).await;
        let (state, cookie) = (begun.state(), begun.cookie());
        let target = format!("/login?state={state}&error={error}&error_description=x");
        let page = setup.browse(&target, &cookie).await;
        assert_eq!(page.status, StatusCode::BAD_GATEWAY, "{}", page.body);
        let back = "https://app.example/?error=provider_failed";
        assert!(page.body.contains(back), "{}", page.body);
        assert!(page.body.contains(&format!("href=\"?state={state}\"")));
        setup
            .browse(&target, "")
            .await
            .assert_problem(400, "login_mismatch");
        // A program gets the code.
        setup
            .follow(&target, &cookie)
            .await
            .assert_problem(502, "provider_failed");
        assert_eq!(setup.store.count("logins").await, 0);
        // The page's link leads to the provider again, with the same state; then the login succeeds.
        let again = setup
            .browse(&format!("/login?state={state}"), &cookie)
            .await;
        assert_eq!(again.state(), state);
        let code = format!("/login?state={state}&code=me");
        let done = setup.browse(&code, &cookie).await;
        assert!(done.header(header::LOCATION).contains("?ticket="));
        setup.store.execute("DELETE FROM logins").await;
    }
    let begun = setup.call("POST", "/login", &[]).await.json();
    let page = begun["authorize_url"].as_str().unwrap();
    let page = page.strip_prefix("http://127.0.0.1:8080").unwrap();
    let shown = setup.browse(page, "").await;
    let to = setup.browse(&links(&shown)[0], &shown.cookie()).await;
    let target = format!("/login?state={}&error=server_error", to.state());
    let failed = setup.browse(&target, &shown.cookie()).await;
    assert_eq!(failed.status, StatusCode::BAD_GATEWAY);
    let check = format!("/check?token={}", begun["token"].as_str().unwrap());
    let checked = setup.call("POST", &check, &[]).await.json();
    assert_eq!(checked["status"], "pending");
    assert_eq!(links(&setup.browse(page, &shown.cookie()).await).len(), 2);
}

#[tokio::test]
async fn hints_that_are_passed_on_are_checked() {
    let setup = Setup::with(SECOND).await;
    let long = "x".repeat(255);
    for bad in [
        "login_hint=",
        "login_hint=a%0Ab",
        &format!("login_hint={long}"),
    ] {
        let target = format!("/login?provider=second&{bad}");
        let refused = setup.call("POST", &target, &[]).await;
        refused.assert_problem(400, "param_invalid");
    }
    // No provider is sent this one, so it is unknown.
    let ignored = setup
        .call("POST", "/login?provider=second&prompt=x", &[])
        .await;
    assert_eq!(ignored.status, StatusCode::OK);
}

#[tokio::test]
async fn a_redirect_login_is_bound_by_s256_only() {
    let setup = Setup::new().await;
    let bound = format!("{WITH_RETURN_TO}&code_challenge={CHALLENGE}");
    let named = format!("{bound}&code_challenge_method=S256");
    for begins in [&bound, &named] {
        let begun = setup.call("GET", begins, &[]).await;
        assert_eq!(begun.status, StatusCode::FOUND, "{}", begun.body);
    }
    for method in ["plain", "s256", "", "S256&code_challenge_method=S256"] {
        let target = format!("{bound}&code_challenge_method={method}");
        let refused = setup.call("GET", &target, &[]).await;
        refused.assert_problem(400, "param_invalid");
    }
}

#[tokio::test]
async fn a_callback_of_its_own_keeps_a_code_from_other_providers() {
    let setup = Setup::with(SECOND).await;
    let shared = setup.call(
        "GET",
        "/login?return_to=https://app.example/&provider=sandbox",
        &[],
    );
    let shared = shared.await;
    // The attack: the browser was sent on to the other provider, whose code arrives with this login's state.
    let mixed = format!("/login?state={}&code=me&provider=second", shared.state());
    let refused = setup.browse(&mixed, &shared.cookie()).await;
    refused.assert_problem(400, "login_mismatch");
    let right = format!("/login?state={}&code=me&provider=sandbox", shared.state());
    let done = setup.browse(&right, &shared.cookie()).await;
    assert!(done.header(header::LOCATION).contains("?ticket="));
    let own = SECOND.replace("pass_on", "own_callback = true\npass_on");
    let setup = Setup::with(&own).await;
    let begun = setup.call(
        "GET",
        "/login?return_to=https://app.example/&provider=second",
        &[],
    );
    let begun = begun.await;
    let url = url::Url::parse(begun.header(header::LOCATION)).unwrap();
    let query: std::collections::BTreeMap<_, _> = url.query_pairs().into_owned().collect();
    assert_eq!(
        query["redirect_uri"],
        "http://127.0.0.1:8080/login?provider=second"
    );
    for (more, code) in [
        ("", "login_mismatch"),
        ("&provider=sandbox", "login_mismatch"),
        // Its token endpoint cannot be reached: the callback was accepted.
        ("&provider=second", "provider_failed"),
    ] {
        let target = format!("/login?state={}&code=me{more}", query["state"]);
        let response = setup.follow(&target, &begun.cookie()).await;
        if code == "provider_failed" {
            let location = response.header(header::LOCATION);
            assert_eq!(location, "https://app.example/?error=provider_failed");
        } else {
            response.assert_problem(400, code);
        }
    }
}

#[tokio::test]
async fn a_polling_login_goes_on_in_a_browser_with_many_newer_logins() {
    let setup = Setup::new().await;
    let begun = setup.call("POST", "/login", &[]).await.json();
    let page = begun["authorize_url"].as_str().unwrap();
    let page = page.strip_prefix("http://127.0.0.1:8080").unwrap();
    let shown = setup.browse(page, "").await;
    let mut cookies = vec![shown.cookie()];
    for _ in 0..9 {
        cookies.push(setup.call("GET", "/login", &[]).await.cookie());
    }
    let confirmed = setup.browse(&links(&shown)[0], &cookies.join("; ")).await;
    let own = shown.cookie();
    let name = own.split('=').next().unwrap();
    let set: Vec<_> = confirmed
        .headers
        .get_all(header::SET_COOKIE)
        .iter()
        .collect();
    let of_own = set
        .iter()
        .filter(|one| one.to_str().unwrap().starts_with(name));
    assert_eq!(of_own.count(), 1, "{set:?}");
    assert!(set[0].to_str().unwrap().starts_with(&own), "{set:?}");
}

#[tokio::test]
async fn a_confirmed_login_keeps_its_cookie_in_a_browser_with_many_newer_logins() {
    let setup = Setup::new().await;
    let begun = setup.call("POST", "/login", &[]).await.json();
    let page = begun["authorize_url"].as_str().unwrap();
    let page = page.strip_prefix("http://127.0.0.1:8080").unwrap();
    let shown = setup.browse(page, "").await;
    let confirmed = setup.browse(&links(&shown)[0], &shown.cookie()).await;
    let mut jar = Jar(vec![]);
    jar.take(&shown);
    jar.take(&confirmed);
    // The page again, in another tab.
    jar.take(&setup.browse(page, &jar.sent()).await);
    for number in 0..12 {
        let other = if number % 2 == 0 {
            let target = setup.call("POST", "/login", &[]).await.json();
            let target = target["authorize_url"].as_str().unwrap().to_owned();
            let target = target.strip_prefix("http://127.0.0.1:8080").unwrap();
            setup.browse(target, &jar.sent()).await
        } else {
            let headers = [("cookie", &*jar.sent())];
            setup.call("GET", "/login", &headers).await
        };
        jar.take(&other);
        assert!(jar.0.len() <= 8, "{:?}", jar.0);
    }
    // Logins at a provider are kept, too, before pages that open again.
    let sealed = jar.0.iter().filter(|(_, value)| value.len() > 80);
    assert_eq!(sealed.count(), 6);
    let target = format!("/login?state={}&code=me", confirmed.state());
    let done = setup.browse(&target, &jar.sent()).await;
    assert!(done.body.contains("You are logged in"), "{}", done.body);
    let check = format!("/check?token={}", begun["token"].as_str().unwrap());
    let checked = setup.call("POST", &check, &[]).await.json();
    assert_eq!(checked["status"], "complete");
    // Now it goes as any other that is finished.
    jar.take(&done);
    for _ in 0..2 {
        let headers = [("cookie", &*jar.sent())];
        jar.take(&setup.call("GET", "/login", &headers).await);
    }
    assert!(
        jar.0.iter().all(|(_, value)| value.len() > 80),
        "{:?}",
        jar.0
    );
}

/// The cookies of a browser, the oldest first, as browsers send them.
struct Jar(Vec<(String, String)>);

impl Jar {
    fn take(&mut self, response: &Response) {
        for set in response.headers.get_all(header::SET_COOKIE) {
            let set = set.to_str().unwrap();
            let (name, rest) = set.split_once('=').unwrap();
            let value = rest.split(';').next().unwrap().to_owned();
            let before = self.0.iter().position(|(known, _)| known == name);
            match before {
                Some(index) if set.contains("; Max-Age=0;") => drop(self.0.remove(index)),
                Some(index) => self.0[index].1 = value,
                None => self.0.push((name.to_owned(), value)),
            }
        }
    }

    fn sent(&self) -> String {
        let pairs = self.0.iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join("; ")
    }
}
