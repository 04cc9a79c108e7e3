//! Claims: when they end, what is told then, and what comes too late.

use super::*;

#[tokio::test]
async fn an_outcome_that_comes_after_the_end_is_dropped() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let cookie = LoginCookie::generate();
    let state = begun(&logins, &cookie).await;
    assert!(claim(&logins, &state, &cookie.hash(), later(599)).await);
    let failed = Outcome::Failed(FailureReason::ProviderTimeout);
    assert!(
        !logins
            .finish(&state, failed, times(later(600), later(720)))
            .await
            .unwrap()
    );
    let found = logins.find(&state).await.unwrap().unwrap();
    assert!(matches!(found.status, Status::Exchanging(_)));
    assert!(matches!(found.progress(later(600)), Progress::Expired));
}

#[tokio::test]
async fn a_claim_that_is_never_finished_fails_the_login() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let cookie = LoginCookie::generate();
    let state = begun(&logins, &cookie).await;
    assert!(claim(&logins, &state, &cookie.hash(), later(5)).await);
    let found = logins.find(&state).await.unwrap().unwrap();
    assert!(matches!(found.progress(later(34)), Progress::Pending { until } if until == later(35)));
    for (seconds, is_told) in [(35, true), (154, true), (155, false)] {
        match found.progress(later(seconds)) {
            Progress::Failed(FailureReason::ProviderFailed) => assert!(is_told, "{seconds}"),
            Progress::Expired => assert!(!is_told, "{seconds}"),
            other => panic!("{seconds}: {other:?}"),
        }
    }
    let denied = || Outcome::Failed(FailureReason::AccessDenied);
    let finish = |at| logins.finish(&state, denied(), times(later(at), later(at + 120)));
    assert!(
        !finish(35).await.unwrap(),
        "others were told that it failed"
    );
    assert!(!claim(&logins, &state, &cookie.hash(), later(36)).await);
    assert!(finish(34).await.unwrap());
}

#[tokio::test]
async fn an_outcome_that_may_be_stored_after_the_claims_end_is_not() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let cookie = LoginCookie::generate();
    let state = begun(&logins, &cookie).await;
    assert!(claim(&logins, &state, &cookie.hash(), NOW).await);
    let denied = || Outcome::Failed(FailureReason::AccessDenied);
    let finish = |stored_by| {
        let times = FinishTimes {
            at: later(24),
            stored_by: later(stored_by),
            claimable_until: later(144),
        };
        logins.finish(&state, denied(), times)
    };
    assert!(!finish(30).await.unwrap());
    assert!(finish(29).await.unwrap());
    // Only its answer was late.
    assert!(finish(30).await.unwrap());
}

#[tokio::test]
async fn what_is_stored_by_when_depends_on_what_ends_the_claim() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let terms = ClaimTerms::of(crate::testing::config("").store());
    for (claimed_at, stored_by) in [(1, 31), (590, 25)] {
        let cookie = LoginCookie::generate();
        let state = begun(&logins, &cookie).await;
        assert!(claim(&logins, &state, &cookie.hash(), later(claimed_at)).await);
        let login = logins.find(&state).await.unwrap().unwrap();
        assert_eq!(terms.stored_by(&login, later(25)), later(stored_by));
    }
}

#[tokio::test]
async fn a_claim_of_an_older_release_ends_with_its_login() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let cookie = LoginCookie::generate();
    let state = begun(&logins, &cookie).await;
    assert!(claim(&logins, &state, &cookie.hash(), NOW).await);
    let older = "UPDATE logins SET claimed_until = NULL, claimable_until = NULL";
    store.execute(older).await;
    let found = logins.find(&state).await.unwrap().unwrap();
    assert!(matches!(
        found.progress(later(599)),
        Progress::Pending { .. }
    ));
    assert!(matches!(found.progress(later(600)), Progress::Expired));
    let denied = Outcome::Failed(FailureReason::AccessDenied);
    let finished = logins.finish(&state, denied, times(later(599), later(719)));
    assert!(finished.await.unwrap());
}
