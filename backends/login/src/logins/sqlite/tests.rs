//! The state machine, on real files.

use std::{sync::Arc, time::Duration};

use super::*;
use crate::{
    logins::{FailureReason, LoginCookie, LoginToken, Progress, Status, Ticket, UserCode},
    testing::TestStore,
};

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

async fn begun(logins: &SqliteLogins, login: NewLogin) -> StateHash {
    let hash = *login.state.hash();
    assert_eq!(logins.begin(login, BOUNDS).await.unwrap(), Begun::Stored);
    hash
}

fn bound(cookie: &LoginCookie, stage: CookieStage) -> BoundCookie {
    BoundCookie {
        hash: cookie.hash(),
        stage,
    }
}

#[tokio::test]
async fn a_login_reads_back_as_it_was_begun() {
    let store = TestStore::new();
    let logins = SqliteLogins::new(store.database());
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
    assert!(matches!(found.progress(later(599)), Progress::Pending));
    assert!(matches!(found.progress(later(600)), Progress::Expired));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_callbacks_at_once_one_claims() {
    let store = TestStore::new();
    let cookie = LoginCookie::generate();
    let state = begun(&SqliteLogins::new(store.database()), redirect(&cookie)).await;
    let tasks: Vec<_> = (0..20)
        .map(|place| {
            let logins = Arc::new(SqliteLogins::new(store.open(place % 2 == 0)));
            let cookie = cookie.hash();
            tokio::spawn(async move { logins.claim(&state, &cookie, NOW).await.unwrap() })
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
    let store = TestStore::new();
    let logins = SqliteLogins::new(store.database());
    let state = begun(&logins, polling()).await;
    let [shown, other_tab, confirmed] = std::array::from_fn(|_| LoginCookie::generate());
    assert!(!logins.claim(&state, &shown.hash(), NOW).await.unwrap());
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
    assert!(!logins.claim(&state, &shown.hash(), NOW).await.unwrap());
    assert!(logins.claim(&state, &confirmed.hash(), NOW).await.unwrap());
}

#[tokio::test]
async fn a_claimed_or_expired_login_is_bound_no_more() {
    let store = TestStore::new();
    let logins = SqliteLogins::new(store.database());
    let cookie = LoginCookie::generate();
    let state = begun(&logins, redirect(&cookie)).await;
    let shown = bound(&LoginCookie::generate(), CookieStage::Shown);
    assert!(!logins.bind(&state, None, shown, later(600)).await.unwrap());
    assert!(
        !logins
            .claim(&state, &cookie.hash(), later(600))
            .await
            .unwrap()
    );
    assert!(logins.claim(&state, &cookie.hash(), NOW).await.unwrap());
    assert!(!logins.bind(&state, None, shown, NOW).await.unwrap());
}

#[tokio::test]
async fn the_first_outcome_stands_and_is_told_for_a_while() {
    let store = TestStore::new();
    let logins = SqliteLogins::new(store.database());
    let cookie = LoginCookie::generate();
    let state = begun(&logins, redirect(&cookie)).await;
    let failed = Outcome::Failed(FailureReason::ProviderTimeout);
    assert!(
        !logins
            .finish(&state, failed.clone(), NOW, later(120))
            .await
            .unwrap(),
        "not claimed yet"
    );
    assert!(logins.claim(&state, &cookie.hash(), NOW).await.unwrap());
    assert!(
        logins
            .finish(&state, failed, NOW, later(120))
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
            .finish(&state, complete, NOW, later(120))
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
async fn an_outcome_that_comes_after_the_end_is_dropped() {
    let store = TestStore::new();
    let logins = SqliteLogins::new(store.database());
    let cookie = LoginCookie::generate();
    let state = begun(&logins, redirect(&cookie)).await;
    assert!(
        logins
            .claim(&state, &cookie.hash(), later(599))
            .await
            .unwrap()
    );
    let failed = Outcome::Failed(FailureReason::ProviderTimeout);
    assert!(
        !logins
            .finish(&state, failed, later(600), later(720))
            .await
            .unwrap()
    );
    let found = logins.find(&state).await.unwrap().unwrap();
    assert!(matches!(found.status, Status::Exchanging));
    assert!(matches!(found.progress(later(600)), Progress::Expired));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_serves_one_of_many() {
    let store = TestStore::new();
    let logins = Arc::new(SqliteLogins::new(store.database()));
    let ticket = finished_with_ticket(&store, &logins).await;
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let (logins, ticket) = (Arc::clone(&logins), ticket.hash());
            tokio::spawn(async move { logins.redeem(&ticket, APP, NOW).await.unwrap() })
        })
        .collect();
    let mut served = 0;
    for task in tasks {
        match task.await.unwrap() {
            Redeemed::Now(completion) => {
                assert_eq!(completion.account.username.as_str(), "person");
                served += 1;
            }
            Redeemed::Before => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(served, 1);
}

#[tokio::test]
async fn a_ticket_is_one_applications_and_ages() {
    let store = TestStore::new();
    let logins = SqliteLogins::new(store.database());
    let ticket = finished_with_ticket(&store, &logins).await.hash();
    let other = AppId::new(8);
    assert!(matches!(
        logins.redeem(&ticket, other, NOW).await.unwrap(),
        Redeemed::Unknown
    ));
    assert!(matches!(
        logins
            .redeem(&Ticket::generate().hash(), APP, NOW)
            .await
            .unwrap(),
        Redeemed::Unknown
    ));
    assert!(matches!(
        logins.redeem(&ticket, APP, later(60)).await.unwrap(),
        Redeemed::TooLate
    ));
    assert!(matches!(
        logins.redeem(&ticket, APP, later(59)).await.unwrap(),
        Redeemed::Now(_)
    ));
    assert!(matches!(
        logins.redeem(&ticket, APP, later(60)).await.unwrap(),
        Redeemed::Before
    ));
}

#[tokio::test]
async fn pending_logins_are_bounded_and_room_comes_back() {
    let store = TestStore::new();
    let logins = SqliteLogins::new(store.database());
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
    logins
        .claim(&first_hash, &cookie.hash(), NOW)
        .await
        .unwrap();
    logins
        .finish(
            &first_hash,
            Outcome::Failed(FailureReason::AccessDenied),
            NOW,
            later(9),
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
    let store = TestStore::new();
    let logins = SqliteLogins::new(store.database());
    for _ in 0..3 {
        begun(&logins, polling()).await;
    }
    assert_eq!(logins.sweep(later(600), 10).await.unwrap(), 0);
    assert_eq!(logins.sweep(later(601), 2).await.unwrap(), 2);
    assert_eq!(logins.sweep(later(601), 2).await.unwrap(), 1);
}

async fn finished_with_ticket(store: &TestStore, logins: &SqliteLogins) -> Ticket {
    let (cookie, ticket) = (LoginCookie::generate(), Ticket::generate());
    let state = begun(logins, redirect(&cookie)).await;
    assert!(logins.claim(&state, &cookie.hash(), NOW).await.unwrap());
    let account = store.account("person").await;
    let outcome = Outcome::Complete {
        account: account.id,
        created: true,
        ticket: Some((ticket.hash(), later(60))),
    };
    assert!(
        logins
            .finish(&state, outcome, NOW, later(120))
            .await
            .unwrap()
    );
    ticket
}
