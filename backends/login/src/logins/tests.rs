//! The state machine, on a real store.

use std::{sync::Arc, time::Duration};

use super::*;
use crate::{credentials::Credential, testing::TestStore};

mod claims;
mod plans;
mod tickets;

const APP: AppId = AppId::new(7);
const NOW: Timestamp = Timestamp::from_millis(1_000_000);
const BOUNDS: PendingBounds = PendingBounds {
    per_application: 100,
    per_address: 100,
};

fn later(seconds: u64) -> Timestamp {
    NOW.plus(Duration::from_secs(seconds))
}

fn redirect(cookie: &LoginCookie) -> NewLogin {
    NewLogin {
        state: LoginToken::generate(&"v1".parse().unwrap()).state(),
        application: APP,
        mode: Mode::Redirect {
            return_to: Some("https://app.example/".parse().unwrap()),
        },
        provider: "sandbox".parse().unwrap(),
        cookie: Some(cookie.hash()),
        client_address: "192.0.2.1".parse::<std::net::IpAddr>().unwrap().into(),
        created_at: NOW,
        expires_at: later(600),
    }
}

fn polling() -> NewLogin {
    NewLogin {
        mode: Mode::Polling {
            user_code: UserCode::generate(),
        },
        cookie: None,
        ..redirect(&LoginCookie::generate())
    }
}

async fn begun(logins: &Arc<dyn LoginStore>, login: NewLogin) -> StateHash {
    let hash = *login.state.hash();
    assert_eq!(logins.begin(login, BOUNDS).await.unwrap(), Begun::Stored);
    hash
}

/// As a callback at `now` does, of a login that expires after ten minutes.
async fn claim(
    logins: &Arc<dyn LoginStore>,
    state: &StateHash,
    cookie: &CookieHash,
    now: Timestamp,
) -> bool {
    let terms = ClaimTerms::of(crate::testing::config("").store());
    let claim = terms.begin(now, later(600), Duration::from_secs(120));
    logins.claim(state, cookie, claim, now).await.unwrap()
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

fn bound(cookie: &LoginCookie, stage: CookieStage) -> BoundCookie {
    BoundCookie {
        hash: cookie.hash(),
        stage,
    }
}

#[tokio::test]
async fn a_login_reads_back_as_it_was_begun() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let cookie = LoginCookie::generate();
    let login = redirect(&cookie);
    let state = login.state.clone();
    begun(&logins, login).await;
    let found = logins.find(state.hash()).await.unwrap().unwrap();
    assert_eq!(found.state, state);
    assert_eq!(found.application, APP);
    assert!(matches!(found.mode, Mode::Redirect { return_to: Some(_) }));
    assert!(found.is_bound_to(&cookie, CookieStage::Authorizing));
    assert!(!found.is_bound_to(&cookie, CookieStage::Shown));
    assert!(matches!(
        found.progress(later(599)),
        Progress::Pending { .. }
    ));
    assert!(matches!(found.progress(later(600)), Progress::Expired));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_callbacks_at_once_one_claims() {
    let store = TestStore::new().await;
    let cookie = LoginCookie::generate();
    let handles = [store.stores().logins, store.another().await.logins];
    let state = begun(&handles[0], redirect(&cookie)).await;
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
    let state = begun(&logins, polling()).await;
    let [shown, other_tab, confirmed] = std::array::from_fn(|_| LoginCookie::generate());
    assert!(!claim(&logins, &state, &shown.hash(), NOW).await);
    assert!(
        logins
            .bind(&state, None, bound(&other_tab, CookieStage::Shown), NOW)
            .await
            .unwrap()
    );
    assert!(
        logins
            .bind(&state, None, bound(&shown, CookieStage::Shown), NOW)
            .await
            .unwrap()
    );
    let authorizing = bound(&confirmed, CookieStage::Authorizing);
    assert!(
        !logins
            .bind(&state, Some(other_tab.hash()), authorizing, NOW)
            .await
            .unwrap()
    );
    assert!(
        logins
            .bind(&state, Some(shown.hash()), authorizing, NOW)
            .await
            .unwrap()
    );
    assert!(
        !logins
            .bind(&state, Some(shown.hash()), authorizing, NOW)
            .await
            .unwrap()
    );
    assert!(!claim(&logins, &state, &shown.hash(), NOW).await);
    assert!(claim(&logins, &state, &confirmed.hash(), NOW).await);
}

#[tokio::test]
async fn a_claimed_or_expired_login_is_bound_no_more() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let cookie = LoginCookie::generate();
    let state = begun(&logins, redirect(&cookie)).await;
    let shown = bound(&LoginCookie::generate(), CookieStage::Shown);
    assert!(!logins.bind(&state, None, shown, later(600)).await.unwrap());
    assert!(!claim(&logins, &state, &cookie.hash(), later(600)).await);
    assert!(claim(&logins, &state, &cookie.hash(), NOW).await);
    assert!(!logins.bind(&state, None, shown, NOW).await.unwrap());
}

#[tokio::test]
async fn the_first_outcome_stands_and_is_told_for_a_while() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let cookie = LoginCookie::generate();
    let state = begun(&logins, redirect(&cookie)).await;
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
    let state = begun(&logins, redirect(&cookie)).await;
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
async fn pending_logins_are_bounded_and_room_comes_back() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let cookie = LoginCookie::generate();
    let by_address = PendingBounds {
        per_application: 100,
        per_address: 2,
    };
    let first = redirect(&cookie);
    let first_hash = *first.state.hash();
    assert_eq!(
        logins.begin(first, by_address).await.unwrap(),
        Begun::Stored
    );
    assert_eq!(
        logins.begin(polling(), by_address).await.unwrap(),
        Begun::Stored
    );
    let full = Begun::TooMany {
        free_at: later(600),
    };
    assert_eq!(logins.begin(polling(), by_address).await.unwrap(), full);
    let mut elsewhere = polling();
    elsewhere.client_address = "192.0.2.2".parse::<std::net::IpAddr>().unwrap().into();
    assert_eq!(
        logins.begin(elsewhere.clone(), by_address).await.unwrap(),
        Begun::Stored
    );
    let by_application = PendingBounds {
        per_application: 3,
        per_address: 100,
    };
    elsewhere.state = polling().state;
    assert_eq!(logins.begin(elsewhere, by_application).await.unwrap(), full);
    assert!(claim(&logins, &first_hash, &cookie.hash(), NOW).await);
    logins
        .finish(
            &first_hash,
            Outcome::Failed(FailureReason::AccessDenied),
            times(NOW, later(9)),
        )
        .await
        .unwrap();
    assert_eq!(
        logins.begin(polling(), by_address).await.unwrap(),
        Begun::Stored
    );
}

#[tokio::test]
async fn old_logins_are_swept_a_few_at_a_time() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    for _ in 0..3 {
        begun(&logins, polling()).await;
    }
    assert_eq!(logins.sweep(later(600), 10).await.unwrap(), 0);
    assert_eq!(logins.sweep(later(601), 2).await.unwrap(), 2);
    assert_eq!(logins.sweep(later(601), 2).await.unwrap(), 1);
}
