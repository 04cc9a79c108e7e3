//! A login is valid only for the application that began it. CONTRACT 8.

use end_to_end::{
    browser::{Browser, Decision},
    logins::{begin_polling, check, confirm_polling, credential, log_in_by_polling},
    stack::Stack,
    waiting::until,
};

#[tokio::test]
async fn a_token_is_unknown_to_another_application() {
    let stack = Stack::builder().multi().start().await;
    let one = stack.client_of(&stack.create_application("one", &[]));
    let two = stack.client_of(&stack.create_application("two", &[]));
    let begun = begin_polling(&one).await;
    two.post("/check")
        .param("token", &begun.token)
        .send()
        .await
        .problem(404, "login_unknown");
    two.post("/user/login")
        .param("token", &begun.token)
        .send()
        .await
        .problem(404, "login_unknown");
    let mut browser = Browser::default();
    let provider = confirm_polling(&mut browser, &begun).await;
    browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    for version in ["v1", "v2"] {
        let response = two
            .post("/check")
            .version(version)
            .param("token", &begun.token)
            .send()
            .await;
        response.problem(404, "login_unknown");
        let call = two
            .post("/user/login")
            .version(version)
            .param("token", &begun.token);
        call.send().await.problem(404, "login_unknown");
    }
    assert_eq!(check(&one, &begun.token).await["status"], "complete");
}

#[tokio::test]
async fn a_credential_is_invalid_for_another_application() {
    let stack = Stack::builder().multi().start().await;
    let one = stack.client_of(&stack.create_application("one", &[]));
    let two = stack.client_of(&stack.create_application("two", &[]));
    let login = log_in_by_polling(&one, "ada").await;
    let credential = credential(&login);
    for version in ["v1", "v2"] {
        let response = two
            .get("/user")
            .version(version)
            .authorization(credential)
            .send()
            .await;
        response.problem(401, "authorization_invalid");
        let event = two.post("/event/send").version(version).param("event", "x");
        event
            .authorization(credential)
            .send()
            .await
            .problem(401, "authorization_invalid");
        let logout = two
            .post("/user/logout")
            .version(version)
            .authorization(credential);
        logout.send().await.problem(401, "authorization_invalid");
    }
    one.get("/user").authorization(credential).send().await.ok();
}

#[tokio::test]
async fn a_ticket_is_unknown_to_another_application() {
    let stack = Stack::builder().multi().start().await;
    let origin = ["--return-to", "https://app.example"];
    let one = stack.client_of(&stack.create_application("one", &origin));
    let two = stack.client_of(&stack.create_application("two", &[]));
    let mut browser = Browser::default();
    let provider = browser
        .open(&one.login_url(&[("return_to", "https://app.example/")]))
        .await;
    let back = browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    let ticket = back.redirect_param("ticket").unwrap();
    two.post("/user/login")
        .param("ticket", &ticket)
        .send()
        .await
        .problem(404, "login_unknown");
    one.post("/user/login")
        .param("ticket", &ticket)
        .send()
        .await
        .ok();
    let response = two.get("/login").param("app", two.app.as_deref().unwrap());
    let response = response
        .param("return_to", "https://app.example/")
        .send()
        .await;
    response.problem(403, "return_to_not_allowed");
}

#[tokio::test]
async fn a_login_of_a_disabled_application_cannot_be_completed() {
    let stack = Stack::builder().multi().start().await;
    let application = stack.create_application("one", &[]);
    let client = stack.client_of(&application);
    let login = log_in_by_polling(&client, "grace").await;
    let (begun, other) = (begin_polling(&client).await, begin_polling(&client).await);
    let mut browser = Browser::default();
    let provider = confirm_polling(&mut browser, &begun).await;
    let back = browser.decide(&provider, "ada", Decision::Allow).await;
    assert!(
        stack
            .command(&["app", "disable", &application.ident])
            .status
            .success()
    );
    page_gets_status(&other.authorize_url, 403).await;
    browser
        .follow(back)
        .await
        .response
        .rejected(403, "app_disabled");
    let user = || client.get("/user").authorization(credential(&login));
    until("the application to be disabled", || async {
        (user().send().await.status == 403).then_some(())
    })
    .await;
    user().send().await.problem(403, "app_disabled");
    // Once it is enabled again, its credentials are valid again.
    assert!(
        stack
            .command(&["app", "enable", &application.ident])
            .status
            .success()
    );
    until("the application to be enabled", || async {
        (user().send().await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn deleting_an_application_ends_its_logins() {
    let stack = Stack::builder().multi().start().await;
    let application = stack.create_application("one", &[]);
    let client = stack.client_of(&application);
    log_in_by_polling(&client, "grace").await;
    let begun = begin_polling(&client).await;
    assert!(
        stack
            .command(&["app", "delete", &application.ident])
            .status
            .success()
    );
    page_gets_status(&begun.authorize_url, 404).await;
    until("the application to be deleted", || async {
        (client.get("/user").send().await.status == 404).then_some(())
    })
    .await;
}

/// Waits until the page of a polling login gets this status.
async fn page_gets_status(url: &str, status: u16) {
    until(&format!("the page to be {status}"), || async {
        (Browser::default().step(url).await.response.status == status).then_some(())
    })
    .await;
}
