//! Logins in a real browser.

use end_to_end::{
    certificates::{Authority, public_key_fingerprint},
    logins::{PollingLogin, begin_polling, check},
    port::free_address,
    program::Program,
    real_browser::{Key, RealBrowser},
    signed_client::SignedClient,
    stack::Stack,
    waiting::{WAIT_TIMEOUT, until, within},
};
use serde_json::json;

/// Begins a polling login, and opens its page in a browser.
async fn open_polling(client: &SignedClient) -> (RealBrowser, PollingLogin) {
    let browser = RealBrowser::start("en").await;
    let begun = begin_polling(client).await;
    browser.open(&begun.authorize_url).await;
    browser.wait_for_text(&begun.user_code).await;
    (browser, begun)
}

/// The address of the page's link that cancels the login.
async fn cancel_address(browser: &RealBrowser) -> String {
    let script = "return document.querySelector('.cancel a').href";
    let address = browser.run(script).await;
    address.as_str().unwrap().to_owned()
}

/// The gateway serves the page that redirect logins return to.
const RETURN_TO: &str = "[application]\nreturn_to = [\"http://$GATEWAY\"]";

/// The address where a login begins that returns there.
fn begin_returning(stack: &Stack) -> String {
    let return_to = stack.url("/problems/app_missing");
    stack.client().login_url(&[("return_to", &return_to)])
}

#[tokio::test]
async fn a_person_logs_in_by_redirect_and_goes_back() {
    let stack = Stack::builder().backends(RETURN_TO).start().await;
    let browser = RealBrowser::start("en").await;
    browser.open(&begin_returning(&stack)).await;
    browser.wait_for_text("Sign in to the sandbox").await;
    browser.click("button[value=allow]").await;
    browser.wait_for_text("app_missing").await;
    let address = browser.address().await;
    assert!(address.contains("?ticket="), "{address}");
    browser.back().await;
    browser.wait_for_text("Sign in to the sandbox").await;
    browser.click("button[value=allow]").await;
    browser.wait_for_text("This login is finished").await;
    browser.reload().await;
    browser.wait_for_text("This login is finished").await;
    assert_eq!(stack.provider_counts().await["token"], 1);
}

#[tokio::test]
async fn a_browsers_login_without_return_to_does_not_begin() {
    let stack = Stack::start().await;
    let browser = RealBrowser::start("en").await;
    browser.open(&stack.url("/login")).await;
    let page = browser.wait_for_text("This link does not work").await;
    assert!(page.contains("\"return_to\" is required"), "{page}");
    assert_eq!(stack.provider_counts().await["authorize"], 0);
}

#[tokio::test]
async fn reload_and_back_after_a_login_are_no_errors() {
    let stack = Stack::start().await;
    let client = stack.client();
    let browser = RealBrowser::start("en").await;
    let other = RealBrowser::start("en").await;
    for (button, outcome) in [
        ("allow", "You are logged in"),
        ("deny", "Nobody was logged in"),
    ] {
        let begun = begin_polling(&client).await;
        browser.open(&begun.authorize_url).await;
        browser.click("main a.button").await;
        browser.wait_for_text("Sign in to the sandbox").await;
        browser.click(&format!("button[value={button}]")).await;
        browser.wait_for_text(outcome).await;
        let callback = browser.address().await;
        browser.reload().await;
        browser.wait_for_text(outcome).await;
        // The provider's page, and the page of the login.
        browser.back().await;
        browser.wait_for_text("Sign in to the sandbox").await;
        browser.back().await;
        browser.wait_for_text(outcome).await;
        assert_eq!(browser.address().await, begun.authorize_url);
        other.open(&callback).await;
        other.wait_for_text("login_used").await;
    }
    assert_eq!(stack.provider_counts().await["token"], 1);
}

#[tokio::test]
async fn a_person_cancels_in_an_earlier_tab() {
    let stack = Stack::start().await;
    let client = stack.client();
    let (browser, begun) = open_polling(&client).await;
    let cancel = cancel_address(&browser).await;
    // Another tab has the same cookies.
    browser.open(&begun.authorize_url).await;
    browser.click("main a.button").await;
    browser.wait_for_text("Sign in to the sandbox").await;
    browser.open(&cancel).await;
    browser.wait_for_text("Nobody was logged in").await;
    assert_eq!(check(&client, &begun.token).await["status"], "failed");
    let (browser, begun) = open_polling(&client).await;
    let cancel = cancel_address(&browser).await;
    browser.click("main a.button").await;
    browser.wait_for_text("Sign in to the sandbox").await;
    browser.click("button[value=allow]").await;
    browser.wait_for_text("You are logged in").await;
    browser.open(&cancel).await;
    let late = browser.wait_for_text("can no longer be cancelled").await;
    assert!(!late.contains("You are logged in"), "{late}");
    assert_eq!(check(&client, &begun.token).await["status"], "complete");
}

#[tokio::test]
async fn a_browser_that_prefetches_a_link_of_a_login_uses_up_nothing() {
    let stack = Stack::start().await;
    let client = stack.client();
    let (browser, begun) = open_polling(&client).await;
    let cancel = cancel_address(&browser).await;
    browser.click("main a.button").await;
    browser.wait_for_text("Sign in to the sandbox").await;
    let prefetch = format!(
        "const link = document.createElement('link');\
         link.rel = 'prefetch';\
         link.href = '{cancel}';\
         document.head.append(link);"
    );
    browser.run(&prefetch).await;
    until("the prefetch to be refused", || async {
        let log = stack.log(Program::Gateway);
        log.contains("prefetch_refused").then_some(())
    })
    .await;
    assert_eq!(check(&client, &begun.token).await["status"], "pending");
    browser.open(&cancel).await;
    browser.wait_for_text("Nobody was logged in").await;
    assert_eq!(check(&client, &begun.token).await["status"], "failed");
}

#[tokio::test]
async fn a_person_who_allows_twice_waits_for_the_outcome() {
    let builder = Stack::builder().backends(RETURN_TO);
    let stack = builder.provider(&["--slow-seconds=6"]).start().await;
    // Again, if the browser was too slow for the provider, or the provider for the login.
    for round in 1..=3 {
        let browser = RealBrowser::start("en").await;
        browser.open(&begin_returning(&stack)).await;
        browser.wait_for_text("Sign in to the sandbox").await;
        // The second time, the login is being completed: the provider has begun to exchange the code.
        let script = format!(
            "setTimeout(async () => {{\
             const form = document.forms[0];\
             form.elements.user.value = 'token-slow';\
             const allow = form.querySelector('button[value=allow]');\
             form.requestSubmit(allow);\
             const counts = async () => (await fetch('/_sandbox/counts')).json();\
             while ((await counts()).token !== {round}) {{}}\
             form.requestSubmit(allow);\
             }})"
        );
        browser.run(&script).await;
        let finished = within(WAIT_TIMEOUT, || async {
            let text = browser.text().await;
            text.contains("This login is finished").then_some(())
        });
        let is_finished = finished.await.is_some();
        assert_eq!(stack.provider_counts().await["token"], round);
        if is_finished {
            return;
        }
    }
    panic!("no second callback has waited for the outcome of the first");
}

#[tokio::test]
async fn a_person_without_a_mouse_confirms_or_cancels() {
    let stack = Stack::start().await;
    let client = stack.client();
    let (browser, _) = open_polling(&client).await;
    let focus = "const focus = document.activeElement;\
                 return [focus.closest('.button, .cancel').classList[0], getComputedStyle(focus).outlineWidth]";
    for focused in ["button", "cancel"] {
        browser.press(&[Key::Tab]).await;
        assert_eq!(browser.run(focus).await, json!([focused, "3px"]));
    }
    browser.press(&[Key::Enter]).await;
    browser.wait_for_text("Nobody was logged in").await;
    let begun = begin_polling(&client).await;
    browser.open(&begun.authorize_url).await;
    browser.press(&[Key::Tab, Key::Enter]).await;
    browser.wait_for_text("Sign in to the sandbox").await;
}

/// Opens the page of a polling login, and presses its button and Allow; returns the address of the page's link that
/// cancels the login.
async fn complete(browser: &RealBrowser, stack: &Stack, begun: &PollingLogin) -> String {
    browser.open(&begun.authorize_url).await;
    let cancel = cancel_address(browser).await;
    browser.click("main a.button").await;
    browser.wait_for_text("Sign in to the sandbox").await;
    browser.click("button[value=allow]").await;
    let login = stack.url("/login");
    until("the last page", || async {
        let address = browser.address().await;
        (address.starts_with(&login) && address.contains("code=")).then_some(())
    })
    .await;
    cancel
}

/// The lines of the page that end inside a word: between two Korean syllables, in a Japanese word of katakana, or before
/// a small kana.
const BROKEN_WORDS: &str = r"
    const broken = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    const top = index => {
        range.setStart(texts.currentNode, index);
        range.setEnd(texts.currentNode, index + 1);
        return range.getClientRects()[0]?.top;
    };
    while (texts.nextNode()) {
        for (const { index } of texts.currentNode.data.matchAll(/(?=[가-힣]{2}|[ァ-ヶー]{2}|.[ぁぃぅぇぉっゃゅょー])/g))
            if (top(index + 1) > top(index) + 5) broken.push(texts.currentNode.data.slice(0, index + 1));
    }
    return broken;";

#[tokio::test]
async fn every_page_fits_every_screen_in_every_language() {
    let stack = Stack::start().await;
    let client = stack.client();
    let browser = RealBrowser::start("en").await;
    for language in ["en", "zh-CN", "zh-TW", "ja", "ko"] {
        browser.prefer(language).await;
        let begun = begin_polling(&client).await;
        let completed = begin_polling(&client).await;
        let too_late = complete(&browser, &stack, &completed).await;
        let cancelled = begin_polling(&client).await;
        browser.open(&cancelled.authorize_url).await;
        let pages = [
            ("confirm", begun.authorize_url),
            ("done", completed.authorize_url),
            ("too_late", too_late),
            ("cancelled", cancel_address(&browser).await),
            ("unknown", stack.url("/login?state=v1.forged&code=x")),
            ("mismatch", stack.url("/login?time=1&sign=x")),
            ("incomplete", stack.url("/login")),
            ("return_to", client.login_url(&[("return_to", "x")])),
            ("missing", stack.url("/login?a=1")),
            ("problem", stack.url("/problems/sign_mismatch")),
        ];
        for (name, url) in pages {
            browser.open(&url).await;
            assert_eq!(browser.language().await, language);
            for (width, is_dark) in [(360, false), (1280, true)] {
                browser.show_as(width, is_dark).await;
                let script = "const page = document.documentElement;\
                              return [innerWidth, page.scrollWidth - page.clientWidth];";
                let widths = browser.run(script).await;
                assert_eq!(widths, json!([width, 0]), "{name} in {language}");
                let broken = browser.run(BROKEN_WORDS).await;
                assert_eq!(broken, json!([]), "{name} in {language}");
            }
        }
    }
    let errors = browser.console_errors().await;
    let is_policy = |error: &&String| error.contains("Policy");
    let errors: Vec<_> = errors.iter().filter(is_policy).collect();
    assert!(errors.is_empty(), "{errors:?}");
    // The first page without an icon is not ours: for that one the browser requests `/favicon.ico`.
    let icon = "http.path=/favicon.ico";
    let log = stack.log(Program::Gateway);
    assert!(!log.contains(icon), "{log}");
    browser.open(&stack.url("/nothing")).await;
    stack.log_with(Program::Gateway, icon).await;
}

#[tokio::test]
async fn a_person_who_did_not_start_the_login_cancels_it() {
    let stack = Stack::start().await;
    let client = stack.client();
    let (browser, begun) = open_polling(&client).await;
    browser.click(".cancel a").await;
    browser.wait_for_text("Nobody was logged in").await;
    let checked = check(&client, &begun.token).await;
    assert_eq!(checked["reason"], "access_denied", "{checked}");
    browser.open(&browser.address().await).await;
    browser.wait_for_text("Nobody was logged in").await;
}

#[tokio::test]
async fn a_person_confirms_a_polling_login_in_two_languages() {
    let stack = Stack::start().await;
    for language in ["en", "zh-CN"] {
        let browser = RealBrowser::start(language).await;
        let client = stack.client();
        let begun = begin_polling(&client).await;
        browser.open(&begun.authorize_url).await;
        browser.wait_for_text(&begun.user_code).await;
        assert_eq!(browser.language().await, language);
        assert!(
            browser.picture().await.len() > 3000,
            "the page is not empty"
        );
        complete(&browser, &stack, &begun).await;
        assert_eq!(browser.language().await, language);
        assert_eq!(
            browser.console_errors().await,
            Vec::<String>::new(),
            "in {language}"
        );
        assert_eq!(check(&client, &begun.token).await["status"], "complete");
    }
}

#[tokio::test]
async fn a_person_logs_in_over_tls_and_http_2() {
    let authority = Authority::new("Test authority");
    let certificate = authority.issue(&["127.0.0.1"]);
    let tls = free_address();
    let public_url = format!("public_url = 'https://{tls}'\n");
    let stack = Stack::builder()
        .file("tls.pem", &certificate.certificate)
        .file("tls.key", &certificate.key)
        .gateway(&format!(
            "{public_url}[[listen]]\naddress = '$LISTEN'\n\
             [[listen]]\naddress = '{tls}'\nprotocols = ['http/1.1', 'h2']\n\
             tls.certificates = [{{ certificate = '$FOLDER/tls.pem', key = '$FOLDER/tls.key' }}]"
        ))
        .backends(&public_url)
        .provider(&[&format!("--callback=https://{tls}/login")])
        .start()
        .await;
    let fingerprint = public_key_fingerprint(&certificate);
    let browser = RealBrowser::start_trusting("en", &fingerprint).await;
    let protocol = "return performance.getEntriesByType('navigation')[0].nextHopProtocol";
    let client = stack.client();
    let begun = begin_polling(&client).await;
    let origin = format!("https://{tls}/login");
    assert!(
        begun.authorize_url.starts_with(&origin),
        "{}",
        begun.authorize_url
    );
    browser.open(&begun.authorize_url).await;
    browser.wait_for_text(&begun.user_code).await;
    assert_eq!(browser.run(protocol).await, "h2");
    browser.click("main a").await;
    browser.wait_for_text("Sign in to the sandbox").await;
    browser.click("button[value=allow]").await;
    until("the last page", || async {
        let address = browser.address().await;
        (address.starts_with(&origin) && address.contains("code=")).then_some(())
    })
    .await;
    assert_eq!(browser.run(protocol).await, "h2");
    assert_eq!(browser.console_errors().await, Vec::<String>::new());
    // The `__Host-` cookie of the login came back over https.
    assert_eq!(check(&client, &begun.token).await["status"], "complete");
}

#[tokio::test]
async fn opening_an_attackers_link_does_not_complete_the_login() {
    let stack = Stack::start().await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    let victim = RealBrowser::start("en").await;
    victim.open(&begun.authorize_url).await;
    victim.wait_for_text(&begun.user_code).await;
    // Without a click on the button the browser does not go to the provider.
    assert!(
        victim
            .address()
            .await
            .starts_with(&stack.url("/login?state="))
    );
    assert_eq!(check(&client, &begun.token).await["status"], "pending");
}

#[tokio::test]
async fn an_error_page_is_in_the_browsers_language() {
    let stack = Stack::start().await;
    let browser = RealBrowser::start("ja").await;
    browser
        .open(&stack.url("/login?state=v1.forged&code=x"))
        .await;
    browser.wait_for_text("login_unknown").await;
    assert_eq!(browser.language().await, "ja");
    // The gateway's own errors are pages like the login's.
    browser.open(&stack.url("/login?a=1")).await;
    browser.wait_for_text("time_missing").await;
    assert_eq!(browser.language().await, "ja");
}
