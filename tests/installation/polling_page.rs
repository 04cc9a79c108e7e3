//! The page of a polling login: its languages and security headers. CONTRACT 6 and 8.

use end_to_end::{
    browser::{Browser, Decision},
    logins::{begin_polling, check, confirm_polling},
    stack::Stack,
};

#[tokio::test]
async fn the_page_is_in_the_browsers_language() {
    let stack = Stack::start().await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    let mut pages = Vec::new();
    for (accept, language) in [
        ("en-GB,en;q=0.8", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh-CN"),
        ("zh-TW", "zh-TW"),
        ("ja", "ja"),
        ("ko-KR", "ko"),
    ] {
        let page = Browser::with_language(accept)
            .open(&begun.authorize_url)
            .await;
        assert_eq!(page.response.status, 200);
        assert_eq!(page.response.header("content-language"), Some(language));
        assert!(
            page.text().contains(&format!("lang=\"{language}\"")),
            "{}",
            page.text()
        );
        assert!(page.text().contains(&begun.user_code), "{}", page.text());
        pages.push(page.text());
    }
    let page_count = pages.len();
    pages.sort();
    pages.dedup();
    assert_eq!(pages.len(), page_count, "two languages look the same");
}

#[tokio::test]
async fn a_whole_login_in_two_languages() {
    let stack = Stack::start().await;
    let client = stack.client();
    for accept in ["en", "zh-CN"] {
        let begun = begin_polling(&client).await;
        let mut browser = Browser::with_language(accept);
        let provider = confirm_polling(&mut browser, &begun).await;
        let done = browser
            .decide_and_follow(&provider, "lin", Decision::Allow)
            .await;
        assert_eq!(done.response.status, 200, "{}", done.text());
        assert_eq!(done.response.header("content-language"), Some(accept));
        assert_eq!(check(&client, &begun.token).await["status"], "complete");
    }
}

#[tokio::test]
async fn pages_have_security_headers() {
    let stack = Stack::start().await;
    let begun = begin_polling(&stack.client()).await;
    let mut browser = stack.browser();
    let page = browser.open(&begun.authorize_url).await;
    let unknown = browser.open(&stack.url("/login?state=v1.nope")).await;
    for page in [page, unknown] {
        let policy = page.response.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(
            !policy.contains("unsafe-inline") && !policy.contains("unsafe-eval"),
            "{policy}"
        );
        assert_eq!(
            page.response.header("x-content-type-options"),
            Some("nosniff")
        );
        assert_eq!(page.response.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(page.response.header("cache-control"), Some("no-store"));
        assert!(!page.text().contains("<script"), "{}", page.text());
    }
}

#[tokio::test]
async fn the_page_can_be_opened_again_before_it_is_confirmed() {
    let stack = Stack::start().await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    let mut browser = stack.browser();
    browser.open(&begun.authorize_url).await;
    let reloaded = browser.open(&begun.authorize_url).await;
    let provider = browser.confirm(&reloaded).await;
    browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    assert_eq!(check(&client, &begun.token).await["status"], "complete");
}

#[tokio::test]
async fn without_confirmation_the_page_redirects_at_once() {
    let stack = Stack::builder()
        .backends("[polling]\nconfirm = false")
        .start()
        .await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    let mut browser = stack.browser();
    let provider = browser.open(&begun.authorize_url).await;
    assert_eq!(provider.url.path(), "/site/oauth2/authorize");
    browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    assert_eq!(check(&client, &begun.token).await["status"], "complete");
}
