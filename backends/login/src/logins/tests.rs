//! The state machine, on a real store.

use std::{sync::Arc, time::Duration};

use super::*;
use crate::{credentials::Credential, testing::TestStore};

mod claims;
mod plans;
mod tickets;

const APP: AppId = AppId::new(7);
const NOW: Timestamp = Timestamp::from_millis(1_000_000);
fn later(seconds: u64) -> Timestamp {
    NOW.plus(Duration::from_secs(seconds))
}

fn polling() -> NewPollingLogin {
    NewPollingLogin {
        state: LoginToken::generate(&"v1".parse().unwrap()).state(),
        application: APP,
        user_code: UserCode::generate(),
        provider: "sandbox".parse().unwrap(),
        created_at: NOW,
        expires_at: later(600),
    }
}

/// As its cookie brings it back.
fn redirect() -> Login {
    let polling = polling();
    Login {
        state: polling.state,
        application: APP,
        mode: Mode::Redirect {
            return_to: Some("https://app.example/".parse().unwrap()),
        },
        provider: polling.provider,
        cookie: Some(LoginCookie::generate().hash()),
        expires_at: later(600),
        status: Status::Pending,
    }
}

/// A polling login whose browser is at the provider, with this cookie.
async fn begun(logins: &Arc<dyn LoginStore>, cookie: &LoginCookie) -> StateHash {
    let login = polling();
    let state = *login.state.hash();
    logins.begin(login).await.unwrap();
    assert!(logins.bind(&state, &cookie.hash(), NOW).await.unwrap());
    state
}

fn terms_at(now: Timestamp) -> Claim {
    let terms = ClaimTerms::of(crate::testing::config("").store());
    terms.begin(now, later(600), Duration::from_secs(120))
}

/// As a callback at `now` does, of a login that expires after ten minutes.
async fn claim(
    logins: &Arc<dyn LoginStore>,
    state: &StateHash,
    cookie: &CookieHash,
    now: Timestamp,
) -> bool {
    let claim = terms_at(now);
    logins.claim(state, cookie, claim, now).await.unwrap()
}

/// The same of a redirect login.
async fn claim_redirect(logins: &Arc<dyn LoginStore>, login: &Login) -> bool {
    let claim = terms_at(NOW);
    logins.claim_redirect(login, claim, NOW).await.unwrap()
}

/// Of an outcome that is stored at once.
fn times(at: Timestamp, claimable_until: Timestamp) -> FinishTimes {
    FinishTimes {
        at,
        stored_by: at,
        claimable_until,
    }
}

/// Another one each time.
fn credential() -> TicketCredential {
    TicketCredential {
        hash: Credential::generate().hash(),
        lifetime: Duration::from_secs(1000),
    }
}

#[tokio::test]
async fn a_login_reads_back_as_it_was_begun() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let cookie = LoginCookie::generate();
    let state = begun(&logins, &cookie).await;
    let found = logins.find(&state).await.unwrap().unwrap();
    assert_eq!(*found.state.hash(), state);
    assert_eq!(found.application, APP);
    assert!(matches!(found.mode, Mode::Polling { .. }));
    assert!(found.is_bound_to(&cookie));
    assert!(!found.is_bound_to(&LoginCookie::generate()));
    assert!(matches!(
        found.progress(later(599)),
        Progress::Pending { .. }
    ));
    assert!(matches!(found.progress(later(600)), Progress::Expired));
}

#[tokio::test]
async fn a_redirect_login_is_stored_by_its_first_callback() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let login = redirect();
    let state = login.state.hash();
    assert!(logins.find(state).await.unwrap().is_none());
    assert!(claim_redirect(&logins, &login).await);
    assert!(!claim_redirect(&logins, &login).await);
    let found = logins.find(state).await.unwrap().unwrap();
    assert_eq!(found.state, login.state);
    assert_eq!(found.provider, login.provider);
    assert!(matches!(found.mode, Mode::Redirect { return_to: Some(_) }));
    assert!(matches!(found.status, Status::Exchanging(_)));
    logins.unclaim_redirect(state).await.unwrap();
    assert!(logins.find(state).await.unwrap().is_none());
    assert!(claim_redirect(&logins, &login).await);
    let failed = Outcome::Failed(FailureReason::ProviderFailed);
    let finished = logins.finish(state, failed, times(NOW, later(120)));
    assert!(finished.await.unwrap());
    logins.unclaim_redirect(state).await.unwrap();
    let found = logins.find(state).await.unwrap().unwrap();
    assert!(matches!(found.status, Status::Failed { .. }));
}

#[tokio::test]
async fn all_processes_seal_by_one_key() {
    let store = TestStore::new().await;
    let (one, other) = (store.stores().logins, store.another().await.logins);
    let seal_key = async |logins: &Arc<dyn LoginStore>| {
        let key = logins.seal_key(SealKey::generate(), NOW).await.unwrap();
        *key.as_bytes()
    };
    let (first, second) = tokio::join!(seal_key(&one), seal_key(&other));
    assert_eq!(first, second);
    assert_eq!(seal_key(&one).await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_callbacks_at_once_one_claims() {
    let store = TestStore::new().await;
    let cookie = LoginCookie::generate();
    let handles = [store.stores().logins, store.another().await.logins];
    let state = begun(&handles[0], &cookie).await;
    let tasks: Vec<_> = (0..20)
        .map(|place| {
            let logins = Arc::clone(&handles[place % 2]);
            let cookie = cookie.hash();
            tokio::spawn(async move { claim(&logins, &state, &cookie, NOW).await })
        })
        .collect();
    let mut claims = 0;
    for task in tasks {
        claims += usize::from(task.await.unwrap());
    }
    assert_eq!(claims, 1);
}

#[tokio::test]
async fn only_the_last_cookie_claims() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let [first, second] = std::array::from_fn(|_| LoginCookie::generate());
    let state = begun(&logins, &first).await;
    assert!(logins.bind(&state, &second.hash(), NOW).await.unwrap());
    assert!(!claim(&logins, &state, &first.hash(), NOW).await);
    assert!(claim(&logins, &state, &second.hash(), NOW).await);
}

#[tokio::test]
async fn a_login_that_was_not_confirmed_is_not_claimed() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let login = polling();
    let state = *login.state.hash();
    logins.begin(login).await.unwrap();
    assert!(!claim(&logins, &state, &LoginCookie::generate().hash(), NOW).await);
}

#[tokio::test]
async fn a_claimed_or_expired_login_is_bound_no_more() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let cookie = LoginCookie::generate();
    let state = begun(&logins, &cookie).await;
    let other = LoginCookie::generate().hash();
    assert!(!logins.bind(&state, &other, later(600)).await.unwrap());
    assert!(!claim(&logins, &state, &cookie.hash(), later(600)).await);
    assert!(claim(&logins, &state, &cookie.hash(), NOW).await);
    assert!(!logins.bind(&state, &other, NOW).await.unwrap());
}

#[tokio::test]
async fn the_first_outcome_stands_and_is_told_for_a_while() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let cookie = LoginCookie::generate();
    let state = begun(&logins, &cookie).await;
    let failed = Outcome::Failed(FailureReason::ProviderTimeout);
    assert!(
        !logins
            .finish(&state, failed.clone(), times(NOW, later(120)))
            .await
            .unwrap(),
        "not claimed yet"
    );
    assert!(claim(&logins, &state, &cookie.hash(), NOW).await);
    assert!(
        logins
            .finish(&state, failed, times(NOW, later(120)))
            .await
            .unwrap()
    );
    let account = store.account("person").await;
    let complete = Outcome::Complete {
        account: account.id,
        created: true,
        ticket: None,
    };
    assert!(
        !logins
            .finish(&state, complete, times(NOW, later(120)))
            .await
            .unwrap()
    );
    let found = logins.find(&state).await.unwrap().unwrap();
    assert!(matches!(
        found.progress(later(119)),
        Progress::Failed(FailureReason::ProviderTimeout)
    ));
    assert!(matches!(found.progress(later(120)), Progress::Expired));
}

#[tokio::test]
async fn the_same_outcome_again_is_answered_as_the_first_time() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let cookie = LoginCookie::generate();
    let state = begun(&logins, &cookie).await;
    assert!(claim(&logins, &state, &cookie.hash(), NOW).await);
    let account = store.account("person").await;
    let ticket = Ticket::generate().hash();
    let complete = |created| Outcome::Complete {
        account: account.id,
        created,
        ticket: Some((ticket, later(60))),
    };
    let finish = |outcome, at| logins.finish(&state, outcome, times(later(at), later(at + 120)));
    assert!(finish(complete(true), 0).await.unwrap());
    assert!(matches!(
        logins
            .redeem(&ticket, APP, credential(), NOW)
            .await
            .unwrap(),
        Redeemed::Now(_)
    ));
    // Even after the claim would have ended: it was stored before.
    assert!(finish(complete(true), 31).await.unwrap());
    let failed = Outcome::Failed(FailureReason::ProviderFailed);
    assert!(!finish(failed, 1).await.unwrap());
    let found = logins.find(&state).await.unwrap().unwrap();
    let Status::Complete(completion) = found.status else {
        panic!("{:?}", found.status)
    };
    assert_eq!(completion.finished_at, NOW);
    assert_eq!(completion.account, account);
    let again = logins
        .redeem(&ticket, APP, credential(), NOW)
        .await
        .unwrap();
    assert!(
        matches!(again, Redeemed::Before),
        "a spent ticket stays spent"
    );
}

#[tokio::test]
async fn old_logins_are_swept_a_few_at_a_time() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    for _ in 0..3 {
        logins.begin(polling()).await.unwrap();
    }
    let sweep = |before, limit| logins.sweep(before, before, limit);
    assert_eq!(sweep(later(600), 10).await.unwrap(), 0);
    assert_eq!(sweep(later(601), 2).await.unwrap(), 2);
    assert_eq!(sweep(later(601), 2).await.unwrap(), 1);
}

#[tokio::test]
async fn a_redirect_login_that_no_provider_vouched_for_goes_when_it_expires() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let [claimed, failed, complete] = std::array::from_fn(|_| redirect());
    for login in [&claimed, &failed, &complete] {
        assert!(claim_redirect(&logins, login).await);
    }
    let account = store.account("person").await;
    let outcome = Outcome::Complete {
        account: account.id,
        created: true,
        ticket: None,
    };
    for (login, outcome) in [
        (&failed, Outcome::Failed(FailureReason::ProviderFailed)),
        (&complete, outcome),
    ] {
        let finished = logins.finish(login.state.hash(), outcome, times(NOW, later(120)));
        assert!(finished.await.unwrap());
    }
    assert_eq!(logins.sweep(NOW, later(600), 10).await.unwrap(), 0);
    assert_eq!(logins.sweep(NOW, later(601), 10).await.unwrap(), 2);
    for (login, is_kept) in [(claimed, false), (failed, false), (complete, true)] {
        let found = logins.find(login.state.hash()).await.unwrap();
        assert_eq!(found.is_some(), is_kept);
    }
}
