//! Several gateways and several backends of each version over one store.

use std::{collections::BTreeSet, time::Duration};

use end_to_end::{
    browser::{Browser, Decision},
    crowd::{Crowd, Damage},
    logins::{begin_polling, check, confirm_polling, credential, log_in_by_polling},
    program::Program,
    signed_client::SignedClient,
    stack::{Stack, StackBuilder},
    waiting::{until, within},
};
use tokio::task::JoinSet;

/// Two gateways, two of each version.
fn two_of_each() -> StackBuilder {
    Stack::builder()
        .several(Program::Gateway, 2)
        .several(Program::V1, 2)
        .several(Program::V2, 2)
}

/// Two gateways, each with a v1 of its own: the gateway called determines the backend.
fn apart() -> StackBuilder {
    Stack::builder()
        .several(Program::Gateway, 2)
        .several(Program::V1, 2)
        .only(
            Program::Gateway.number(0),
            "[versions.v1]\nbackends = [\"$V1\"]",
        )
        .only(
            Program::Gateway.number(1),
            "[versions.v1]\nbackends = [\"$V1-1\"]",
        )
}

/// A gateway that looks at a backend before it listens rejects requests until the next check: the stack starts it last.
#[tokio::test]
async fn a_stack_starts_with_healthy_backends() {
    let once = "health = { interval_seconds = 3600, timeout_seconds = 30, unhealthy_after = 1 }";
    let checked = format!("[versions.v1]\n{once}\n[versions.v2]\n{once}");
    let stack = two_of_each().gateway(&checked).start().await;
    for number in 0..8 {
        let client = stack.client_at(number % 2);
        let version = ["v1", "v2"][number / 2 % 2];
        let call = client.post("/login").version(version).signed();
        call.send().await.ok();
    }
}

#[tokio::test]
async fn a_login_begun_at_one_backend_is_completed_at_another() {
    let stack = apart().start().await;
    let begun = begin_polling(&stack.client_at(0)).await;
    let mut browser = Browser::default();
    browser.route_through(&stack.origin_of(0), &stack.origin_of(1));
    let provider = confirm_polling(&mut browser, &begun).await;
    let (client, token) = (stack.client_at(0), begun.token.clone());
    let mut poll = tokio::spawn(async move {
        let call = client.post("/check").param("token", &token);
        call.param("wait", "30").send().await.ok()
    });
    // One backend holds the check before the callback reaches the other one.
    let early = within(Duration::from_millis(200), || async {
        poll.is_finished().then_some(())
    });
    assert_eq!(early.await, None, "{:?}", (&mut poll).await);
    let done = browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    assert_eq!(done.response.status, 200, "{}", done.text());
    let checked = (&mut poll).await.unwrap();
    assert_eq!(checked["status"], "complete", "{checked}");
    // The credential is valid at both gateways, and the same.
    let given = credential(&checked["login"]);
    for gateway in [0, 1] {
        let client = stack.client_at(gateway);
        client.get("/user").authorization(given).send().await.ok();
        let again = check(&client, &begun.token).await;
        assert_eq!(credential(&again["login"]), given);
    }
}

#[tokio::test]
async fn a_logout_applies_at_every_gateway() {
    let stack = apart().start().await;
    let login = log_in_by_polling(&stack.client_at(0), "ada").await;
    let user = |client: SignedClient| {
        let given = credential(&login);
        async move { client.get("/user").authorization(given).send().await }
    };
    for gateway in [0, 1] {
        // Now each backend has it cached.
        user(stack.client_at(gateway)).await.ok();
    }
    let logout = stack.client_at(0);
    let logout = logout
        .post("/user/logout")
        .signed()
        .authorization(credential(&login));
    logout.send().await.ok();
    until("the other gateway to reject it", || async {
        (user(stack.client_at(1)).await.status == 401).then_some(())
    })
    .await;
    let refused = user(stack.client_at(1)).await;
    refused.problem(401, "authorization_invalid");
}

#[tokio::test]
async fn an_application_is_disabled_at_every_gateway() {
    let stack = Stack::builder()
        .several(Program::Gateway, 2)
        .multi()
        .start()
        .await;
    let application = stack.create_application("one", &[]);
    let call = |gateway| {
        let client = stack.client_of_at(&application, gateway);
        async move { client.post("/login").signed().send().await }
    };
    for gateway in [0, 1] {
        call(gateway).await.ok();
    }
    let disable = ["app", "disable", &application.ident];
    assert!(stack.command(&disable).status.success());
    for gateway in [0, 1] {
        until(&format!("gateway {gateway} to reject it"), || async {
            (call(gateway).await.status == 403).then_some(())
        })
        .await;
        call(gateway).await.problem(403, "app_disabled");
    }
}

#[tokio::test]
async fn processes_that_start_at_once_migrate_once() {
    let stack = Stack::builder()
        .several(Program::Gateway, 2)
        .several(Program::V1, 4)
        .several(Program::V2, 4)
        .multi()
        .start()
        .await;
    let history = |what| {
        let query = format!("SELECT count({what}) FROM migrations");
        stack.store().query(&query).number()
    };
    assert!(history("*") >= 1);
    assert_eq!(history("*"), history("DISTINCT number"));
}

#[tokio::test]
async fn a_program_that_is_too_old_for_the_store_says_so_and_does_not_start() {
    let mut stack = Stack::start().await;
    // As a later release would have migrated it: first so that older ones still work with it, then not.
    for (number, oldest, starts) in [(2, 0, true), (3, 3, false)] {
        stack.store().query(&format!(
            "INSERT INTO migrations (owner, number, name, sqlite, postgres, oldest, program) \
             VALUES ('signpost', {number}, 'V{number}__later', '', '', {oldest}, 'login-v3 0.9.4') RETURNING number"
        ));
        stack.kill(Program::V1);
        if starts {
            stack.restart(Program::V1).await;
            continue;
        }
        stack.restart_without_waiting(Program::V1);
        assert!(!stack.wait_for_exit(Program::V1).await.success());
        let log = stack.log(Program::V1);
        let reason = "login-v3 0.9.4 has migrated the store to V3__later of signpost. Programs need at least V3 of \
                      signpost now; this one ends with V1.";
        assert!(log.contains(reason), "{log}");
    }
}

/// Number of logins, and of the people they belong to.
const LOGINS: usize = 40;
const PEOPLE: usize = 8;

#[tokio::test]
async fn concurrent_first_logins_of_one_person_create_one_account() {
    let stack = two_of_each()
        .backends("[limits]\ncallbacks_burst = 1000\nprovider_calls = 10000")
        .start()
        .await;
    let mut preparing = JoinSet::new();
    for number in 0..LOGINS {
        let client = stack.client_at(number % 2);
        let (public, gateway) = (stack.origin_of(0), stack.origin_of(number % 2));
        preparing.spawn(async move {
            let version = ["v1", "v2"][number / 2 % 2];
            let begun = client.post("/login").version(version).signed().send().await;
            let token = begun.ok()["token"].as_str().unwrap().to_owned();
            let mut browser = Browser::default();
            browser.route_through(&public, &gateway);
            let url = begun.ok()["authorize_url"].as_str().unwrap().to_owned();
            let page = browser.open(&url).await;
            let provider = browser.confirm(&page).await;
            let user = format!("any:{}", number % PEOPLE);
            let back = browser.decide(&provider, &user, Decision::Allow).await;
            (client, token, browser, back, user)
        });
    }
    // Each login needs only its callback now, which looks up the account.
    let mut completing = JoinSet::new();
    for (client, token, mut browser, back, user) in preparing.join_all().await {
        completing.spawn(async move {
            let done = browser.follow(back).await;
            assert_eq!(done.response.status, 200, "{}", done.text());
            let checked = check(&client, &token).await;
            assert_eq!(checked["status"], "complete", "{checked}");
            (user, checked["login"]["created"] == true)
        });
    }
    let completed = completing.join_all().await;
    let new: Vec<_> = completed.iter().filter(|(_, is_new)| *is_new).collect();
    let people: BTreeSet<_> = new.iter().map(|(user, _)| user).collect();
    assert_eq!((new.len(), people.len()), (PEOPLE, PEOPLE), "{new:?}");
    let accounts = stack.store().query("SELECT count(*) FROM accounts");
    assert_eq!(accounts.number(), i64::try_from(PEOPLE).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_loses_only_its_own_requests() {
    // All browsers have one address.
    let limits = "[limits]\ncallbacks_burst = 100000";
    let mut stack = two_of_each().backends(limits).start().await;
    let crowd = Crowd::start(&stack, 8, None);
    crowd.wait_for_new_logins().await;
    let mut damage = Vec::new();
    // Not the first gateway: its address is the public one, with no load balancer in front.
    for instance in [
        Program::Gateway.number(1),
        Program::V1.number(0),
        Program::V2.number(1),
    ] {
        damage.push(Damage::during(|| stack.kill(instance)));
        crowd.wait_for_new_logins().await;
        stack.restart(instance).await;
    }
    crowd.wait_for_new_logins().await;
    let record = crowd.finish().await;
    let lost = record.failed_outside(&damage);
    assert!(lost.is_empty(), "{lost:#?}");
    record.assert_matches_store(stack.store(), &[]);
    record.assert_new_accounts_reported();
}
