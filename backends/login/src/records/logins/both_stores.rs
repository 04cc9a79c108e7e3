//! The state machine, on a real store.

use std::time::Duration;

use super::*;
use crate::{
    records::credentials::{CredentialClaims, NewCredential, random_credential},
    testing::TestStore,
};

mod claims;
mod plans;
mod tickets;

const APP: AppId = AppId::new(7);
const NOW: Timestamp = Timestamp::from_millis(1_000_000);
fn later(seconds: u64) -> Timestamp {
    NOW.plus(Duration::from_secs(seconds))
}

fn polling() -> Login {
    Login {
        state: LoginToken::generate(&"v1".parse().unwrap()).state(),
        application: APP,
        mode: Mode::Polling {
            user_code: UserCode::generate(),
            begun: Begun::new([192, 0, 2, 1].into(), NOW),
        },
        provider: Choice::Fixed("sandbox".parse().unwrap()),
        hints: Hints::default(),
        cookie: None,
        expires_at: later(600),
        status: Status::Pending,
    }
}

/// A redirect login, as read from its cookie.
fn redirect() -> Login {
    Login {
        mode: Mode::Redirect {
            return_to: Some("https://app.example/".parse().unwrap()),
        },
        cookie: Some(LoginCookie::generate().hash()),
        ..polling()
    }
}

/// A polling login whose browser is at the provider, with this cookie.
async fn begun(logins: &Logins, cookie: &LoginCookie) -> StateHash {
    let login = polling();
    let state = *login.state.hash();
    assert!(logins.insert(&login, NOW).await.unwrap());
    assert!(
        logins
            .bind(&state, &cookie.hash(), None, NOW)
            .await
            .unwrap()
    );
    state
}

fn claim_at(now: Timestamp) -> Claim {
    let timeouts = ClaimTimeouts::for_store(&crate::testing::config("").store);
    timeouts.new_claim(now, later(600), Duration::from_secs(120))
}

/// Claims as a callback at `now`, for a login that expires after ten minutes.
async fn claim(logins: &Logins, state: &StateHash, cookie: &CookieHash, now: Timestamp) -> bool {
    let claim = claim_at(now);
    let provider = "sandbox".parse().unwrap();
    let claimed = logins.claim(state, cookie, Some(&provider), claim, now);
    claimed.await.unwrap()
}

/// As [`claim`], for a redirect login.
async fn claim_redirect(logins: &Logins, login: &Login) -> bool {
    let claimed = Login {
        status: Status::Exchanging(claim_at(NOW)),
        ..login.clone()
    };
    logins.insert(&claimed, NOW).await.unwrap()
}

/// The times of an outcome that is stored at once.
fn times(at: Timestamp, claimable_until: Timestamp) -> FinishTimes {
    FinishTimes {
        finished_at: at,
        at,
        deadline: at,
        claimable_until,
    }
}

/// How long the credential of a ticket is valid.
const LIFETIME: Duration = Duration::from_secs(1000);

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
    logins.unclaim(state).await.unwrap();
    assert!(logins.find(state).await.unwrap().is_none());
    assert!(claim_redirect(&logins, &login).await);
    let failed = Outcome::Failed(FailureReason::ProviderFailed);
    let finished = logins.finish(state, failed, times(NOW, later(120)));
    assert!(finished.await.unwrap());
    logins.unclaim(state).await.unwrap();
    let found = logins.find(state).await.unwrap().unwrap();
    assert!(matches!(found.status, Status::Failed { .. }));
}

#[tokio::test]
async fn all_processes_share_one_seal_key() {
    let store = TestStore::new().await;
    let (one, other) = (
        store.stores().logins,
        store.of_another_process().await.logins,
    );
    let seal_key = async |logins: &Logins| {
        let key = logins.seal_key(SealKey::generate(), NOW).await.unwrap();
        *key.as_bytes()
    };
    let (first, second) = tokio::join!(seal_key(&one), seal_key(&other));
    assert_eq!(first, second);
    assert_eq!(seal_key(&one).await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_concurrent_callbacks_claims_the_login() {
    let store = TestStore::new().await;
    let cookie = LoginCookie::generate();
    let handles = [
        store.stores().logins,
        store.of_another_process().await.logins,
    ];
    let state = begun(&handles[0], &cookie).await;
    let tasks: Vec<_> = (0..20)
        .map(|index| {
            let logins = handles[index % 2].clone();
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
async fn only_the_last_cookie_can_claim() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let [first, second] = std::array::from_fn(|_| LoginCookie::generate());
    let state = begun(&logins, &first).await;
    assert!(
        logins
            .bind(&state, &second.hash(), None, NOW)
            .await
            .unwrap()
    );
    assert!(!claim(&logins, &state, &first.hash(), NOW).await);
    assert!(claim(&logins, &state, &second.hash(), NOW).await);
}

#[tokio::test]
async fn a_login_that_was_not_confirmed_cannot_be_claimed() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let login = polling();
    let state = *login.state.hash();
    assert!(logins.insert(&login, NOW).await.unwrap());
    assert!(!claim(&logins, &state, &LoginCookie::generate().hash(), NOW).await);
}

#[tokio::test]
async fn a_claimed_or_expired_login_cannot_be_bound() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let cookie = LoginCookie::generate();
    let state = begun(&logins, &cookie).await;
    let other = LoginCookie::generate().hash();
    assert!(!logins.bind(&state, &other, None, later(600)).await.unwrap());
    assert!(!claim(&logins, &state, &cookie.hash(), later(600)).await);
    assert!(claim(&logins, &state, &cookie.hash(), NOW).await);
    assert!(!logins.bind(&state, &other, None, NOW).await.unwrap());
}

#[tokio::test]
async fn the_first_outcome_is_final_and_claimable_for_a_while() {
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
    let account = store.account("user").await;
    let complete = Outcome::Complete {
        account: account.clone(),
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
async fn storing_the_same_outcome_again_succeeds() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let cookie = LoginCookie::generate();
    let state = begun(&logins, &cookie).await;
    assert!(claim(&logins, &state, &cookie.hash(), NOW).await);
    let account = store.account("user").await;
    let ticket = Ticket::generate().hash(None);
    let complete = |created| Outcome::Complete {
        account: account.clone(),
        created,
        ticket: Some((ticket, later(60))),
    };
    let finish = |outcome, at| {
        let times = FinishTimes {
            finished_at: NOW,
            ..times(later(at), later(at + 120))
        };
        logins.finish(&state, outcome, times)
    };
    assert!(finish(complete(true), 0).await.unwrap());
    assert!(matches!(
        logins
            .redeem(&ticket, APP, (&random_credential(), LIFETIME), NOW)
            .await
            .unwrap(),
        Redemption::Redeemed(_)
    ));
    // Even after the end of the claim, since the outcome was stored before.
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
        .redeem(&ticket, APP, (&random_credential(), LIFETIME), NOW)
        .await
        .unwrap();
    assert!(
        matches!(again, Redemption::AlreadyUsed),
        "a spent ticket stays spent"
    );
}

#[tokio::test]
async fn an_outcome_that_an_operator_has_ended_yields_no_credential() {
    let store = TestStore::new().await;
    let (logins, credentials) = (store.stores().logins, store.stores().credentials);
    for is_ended in [false, true] {
        let cookie = LoginCookie::generate();
        let state = begun(&logins, &cookie).await;
        assert!(claim(&logins, &state, &cookie.hash(), NOW).await);
        let account = store.account("user").await;
        let complete = || Outcome::Complete {
            account: account.clone(),
            created: false,
            ticket: None,
        };
        let times = times(NOW, later(120));
        assert!(logins.finish(&state, complete(), times).await.unwrap());
        if is_ended {
            let end = "UPDATE logins SET claimable_until = 0 WHERE status = 'complete'";
            store.execute(end).await;
            // A repetition whose first response was lost does not bring it back.
            assert!(!logins.finish(&state, complete(), times).await.unwrap());
        }
        let credential = random_credential();
        let new = NewCredential {
            hash: credential.hash(),
            login: credential.login_hash(),
            logged_in: CredentialClaims {
                account,
                application: APP,
                expires_at: later(1000),
            },
            created_at: NOW,
            outcome: Some(*state.as_bytes()),
        };
        for _ in 0..2 {
            credentials.insert(new.clone()).await.unwrap();
        }
        let found = credentials.check(&credential, APP, NOW).await.unwrap();
        assert_eq!(found.is_none(), is_ended);
    }
}

#[tokio::test]
async fn a_completed_login_is_remembered_for_its_client() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let complete = Outcome::Complete {
        account: store.account("user").await,
        created: true,
        ticket: None,
    };
    let failed = Outcome::Failed(FailureReason::AccessDenied);
    let (login, times) = (polling(), times(NOW, later(120)));
    let state = login.state.hash();
    logins.see_finished(&login, &failed, times);
    assert!(logins.seen(state).is_none());
    logins.see_finished(&login, &complete, times);
    let seen = logins.seen(state).unwrap();
    assert!(matches!(seen.progress(NOW), Progress::Complete(completion) if completion.created));
    assert!(matches!(seen.progress(later(120)), Progress::Expired));
    logins.forget(state);
    assert!(logins.seen(state).is_none());
    let by_ticket = redirect();
    logins.see_finished(&by_ticket, &complete, times);
    assert!(logins.seen(by_ticket.state.hash()).is_none());
}

#[tokio::test]
async fn expired_logins_are_swept_up_to_the_limit() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    for _ in 0..3 {
        assert!(logins.insert(&polling(), NOW).await.unwrap());
    }
    let sweep = |before, limit| logins.sweep(before, before, limit);
    assert_eq!(sweep(later(600), 10).await.unwrap(), 0);
    assert_eq!(sweep(later(601), 2).await.unwrap(), 2);
    assert_eq!(sweep(later(601), 2).await.unwrap(), 1);
}

#[tokio::test]
async fn a_redirect_login_that_was_not_completed_is_swept_when_it_expires() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let [claimed, failed, complete] = std::array::from_fn(|_| redirect());
    for login in [&claimed, &failed, &complete] {
        assert!(claim_redirect(&logins, login).await);
    }
    let account = store.account("user").await;
    let outcome = Outcome::Complete {
        account: account.clone(),
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
    for (login, is_stored) in [(claimed, false), (failed, false), (complete, true)] {
        let found = logins.find(login.state.hash()).await.unwrap();
        assert_eq!(found.is_some(), is_stored);
    }
}
