//! Claims: when they end, the status afterwards, and outcomes that come too late.

use super::*;

#[tokio::test]
async fn an_outcome_after_the_end_of_the_login_is_rejected() {
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
    for (seconds, is_claimable) in [(35, true), (154, true), (155, false)] {
        match found.progress(later(seconds)) {
            Progress::Failed(FailureReason::ProviderFailed) => assert!(is_claimable, "{seconds}"),
            Progress::Expired => assert!(!is_claimable, "{seconds}"),
            other => panic!("{seconds}: {other:?}"),
        }
    }
    let denied = || Outcome::Failed(FailureReason::AccessDenied);
    let finish = |at| logins.finish(&state, denied(), times(later(at), later(at + 120)));
    assert!(!finish(35).await.unwrap(), "it was reported as failed");
    assert!(!claim(&logins, &state, &cookie.hash(), later(36)).await);
    assert!(finish(34).await.unwrap());
}

#[tokio::test]
async fn an_outcome_whose_deadline_is_after_the_claims_end_is_rejected() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let cookie = LoginCookie::generate();
    let state = begun(&logins, &cookie).await;
    assert!(claim(&logins, &state, &cookie.hash(), NOW).await);
    let denied = || Outcome::Failed(FailureReason::AccessDenied);
    let finish = |deadline| {
        let times = FinishTimes {
            finished_at: later(24),
            at: later(24),
            deadline: later(deadline),
            claimable_until: later(144),
        };
        logins.finish(&state, denied(), times)
    };
    assert!(!finish(30).await.unwrap());
    assert!(finish(29).await.unwrap());
    // Stored before, so only the response was late.
    assert!(finish(30).await.unwrap());
}

#[tokio::test]
async fn the_deadline_depends_on_what_ends_the_claim() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let timeouts = ClaimTimeouts::for_store(&crate::testing::config("").store);
    for (claimed_at, deadline) in [(1, 31), (590, 25)] {
        let cookie = LoginCookie::generate();
        let state = begun(&logins, &cookie).await;
        assert!(claim(&logins, &state, &cookie.hash(), later(claimed_at)).await);
        let login = logins.find(&state).await.unwrap().unwrap();
        assert_eq!(timeouts.store_deadline(&login, later(25)), later(deadline));
    }
}
