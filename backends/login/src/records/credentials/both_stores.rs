//! Credentials in a real store.

use super::*;
use crate::testing::TestStore;

const APP: AppId = AppId::new(3);

async fn new_credential(
    store: &TestStore,
    credential: &Credential,
    now: Timestamp,
) -> NewCredential {
    let logged_in = CredentialClaims {
        account: store.account("user").await,
        application: APP,
        expires_at: now.plus(Duration::from_secs(60)),
    };
    NewCredential {
        hash: credential.hash(),
        login: credential.login_hash(),
        logged_in,
        created_at: now,
        outcome: None,
    }
}

async fn is_valid(
    credentials: &Credentials,
    credential: &Credential,
    application: AppId,
    now: Timestamp,
) -> bool {
    let found = credentials.check(credential, application, now).await;
    found.unwrap().is_some()
}

#[tokio::test]
async fn a_credential_is_valid_for_one_application_until_it_expires() {
    let store = TestStore::new().await;
    let credentials = store.stores().credentials;
    let (credential, now) = (random_credential(), Timestamp::from_millis(1_000_000));
    assert!(!is_valid(&credentials, &credential, APP, now).await);
    let new = new_credential(&store, &credential, now).await;
    credentials.insert(new).await.unwrap();
    let found = credentials
        .check(&credential, APP, now)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.account.username.as_str(), "user");
    assert!(!is_valid(&credentials, &credential, AppId::new(4), now).await);
    let later = now.plus(Duration::from_secs(60));
    assert!(!is_valid(&credentials, &credential, APP, later).await);
}

#[tokio::test]
async fn a_revoked_credential_is_invalid_even_if_it_is_inserted_again() {
    let store = TestStore::new().await;
    let credentials = store.stores().credentials;
    let (credential, now) = (random_credential(), Timestamp::from_millis(1_000_000));
    let new = new_credential(&store, &credential, now).await;
    credentials.insert(new.clone()).await.unwrap();
    assert!(is_valid(&credentials, &credential, APP, now).await);
    let revoked = credentials.revoke(&credential, APP, now).await.unwrap();
    assert_eq!(revoked, Some(new.logged_in.account.id));
    assert!(!is_valid(&credentials, &credential, APP, now).await);
    credentials.insert(new).await.unwrap();
    assert!(!is_valid(&credentials, &credential, APP, now).await);
}

const HOUR: Duration = Duration::from_secs(60 * 60);

/// Credentials of a process, with one in it that expires after an hour.
async fn with_one(store: &TestStore) -> (Credentials, Credential, NewCredential, Timestamp) {
    let credentials = store.stores().credentials;
    let (first, now) = (random_credential(), Timestamp::from_millis(1_000_000));
    let mut new = new_credential(store, &first, now).await;
    new.logged_in.expires_at = now.plus(HOUR);
    credentials.insert(new.clone()).await.unwrap();
    (credentials, first, new, now)
}

/// Renews a credential for an hour, of a login that may become three hours old.
async fn renew(
    credentials: &Credentials,
    credential: &Credential,
    now: Timestamp,
) -> Option<Renewed> {
    let lifetimes = Lifetimes {
        login: HOUR,
        claim: HOUR,
        ticket: HOUR,
        credential: HOUR,
        renewal: 3 * HOUR,
        event: None,
    };
    let renewed = credentials.renew(credential, &lifetimes, now).await;
    renewed.unwrap()
}

/// As `renew`, with success.
async fn renewed(
    credentials: &Credentials,
    credential: &Credential,
    now: Timestamp,
) -> (Credential, Timestamp) {
    match renew(credentials, credential, now).await {
        Some(Renewed::To(credential, expires_at)) => (credential, expires_at),
        Some(Renewed::TooSoon(wait)) => panic!("renewed too soon by {wait:?}"),
        None => panic!("not valid"),
    }
}

#[tokio::test]
async fn a_renewed_credential_ends_after_the_overlap() {
    let store = TestStore::new().await;
    let (credentials, first, new, now) = with_one(&store).await;
    // It is cached now.
    assert!(is_valid(&credentials, &first, APP, now).await);
    let begin = now.plus(Duration::from_secs(1));
    let (second, expires_at) = renewed(&credentials, &first, begin).await;
    assert_eq!(expires_at, begin.plus(HOUR));
    let found = credentials.check(&second, APP, begin).await.unwrap();
    let found = found.unwrap();
    assert_eq!(found.expires_at, expires_at);
    assert_eq!(found.account.id, new.logged_in.account.id);
    let over = begin.plus(RENEWAL_OVERLAP);
    let almost = over.minus(Duration::from_millis(1));
    // A repetition has the same result, and changes nothing.
    let (again, same) = renewed(&credentials, &first, almost).await;
    assert_eq!((again.hash(), same), (second.hash(), expires_at));
    assert!(is_valid(&credentials, &first, APP, almost).await);
    assert!(!is_valid(&credentials, &first, APP, over).await);
    assert!(!is_valid(&credentials, &second, AppId::new(4), over).await);
    assert!(renew(&credentials, &first, over).await.is_none());
    // The token of a polling login asks for the first one again.
    credentials.insert(new).await.unwrap();
    assert!(!is_valid(&credentials, &first, APP, over).await);
    assert!(is_valid(&credentials, &second, APP, over).await);
    assert_eq!(store.count("credentials").await, 1);
}

#[tokio::test]
async fn who_reads_the_store_after_the_overlap_cannot_compute_the_present_credential() {
    let store = TestStore::new().await;
    let (credentials, first, _, now) = with_one(&store).await;
    let (second, _) = renewed(&credentials, &first, now).await;
    let salt = async || {
        let read = "SELECT renewal_salt FROM credentials WHERE renewal_salt IS NOT NULL";
        let found: Option<([u8; LENGTH],)> = store.store().row(read, values![]).await.unwrap();
        found.map(|(salt,)| salt)
    };
    let over = now.plus(RENEWAL_OVERLAP);
    let almost = over.minus(Duration::from_millis(1));
    assert_eq!(credentials.sweep(almost, 10).await.unwrap(), 0);
    let (again, _) = renewed(&credentials, &first, almost).await;
    assert_eq!(again.hash(), second.hash());
    let computed = first.renewed(&salt().await.unwrap());
    assert_eq!(computed.hash(), second.hash());
    assert_eq!(credentials.sweep(over, 10).await.unwrap(), 1);
    assert_eq!(salt().await, None);
    assert_eq!(credentials.sweep(over, 10).await.unwrap(), 0);
    assert!(renew(&credentials, &first, over).await.is_none());
    let (third, _) = renewed(&credentials, &second, over).await;
    assert!(is_valid(&credentials, &third, APP, over).await);
}

#[tokio::test]
async fn a_credential_is_not_renewed_during_the_overlap_of_the_last_renewal() {
    let store = TestStore::new().await;
    let (credentials, first, _, now) = with_one(&store).await;
    let (second, _) = renewed(&credentials, &first, now).await;
    let later = now.plus(Duration::from_secs(20));
    let soon = renew(&credentials, &second, later).await;
    let Some(Renewed::TooSoon(wait)) = soon else {
        panic!("renewed again");
    };
    assert_eq!(wait, Duration::from_secs(40));
    let over = now.plus(RENEWAL_OVERLAP);
    let (third, _) = renewed(&credentials, &second, over).await;
    for (credential, expected) in [(&first, false), (&second, true), (&third, true)] {
        assert_eq!(
            is_valid(&credentials, credential, APP, over).await,
            expected
        );
    }
    assert_eq!(store.count("changes").await, 2);
}

#[tokio::test]
async fn renewals_end_with_the_age_of_the_login() {
    let store = TestStore::new().await;
    let (credentials, mut credential, new, now) = with_one(&store).await;
    let end = now.plus(3 * HOUR);
    for minutes in [59, 110, 150, 170] {
        let at = now.plus(Duration::from_secs(60 * minutes));
        let expected = at.plus(HOUR).min(end);
        let (next, expires_at) = renewed(&credentials, &credential, at).await;
        assert_eq!(expires_at, expected, "after {minutes} minutes");
        credential = next;
    }
    assert!(!is_valid(&credentials, &credential, APP, end).await);
    assert!(renew(&credentials, &credential, end).await.is_none());
    let revoked = credentials.revoke(&credential, APP, end).await.unwrap();
    assert!(revoked.is_none());
    credentials.insert(new).await.unwrap();
    assert_eq!(store.count("credentials").await, 1);
}

#[tokio::test]
async fn a_logout_with_any_credential_of_a_login_ends_all_at_once() {
    for out in 0..4 {
        let store = TestStore::new().await;
        let (credentials, first, _, mut now) = with_one(&store).await;
        let mut chain = vec![first];
        for index in 0..3 {
            now = now.plus(RENEWAL_OVERLAP);
            let (next, _) = renewed(&credentials, &chain[index], now).await;
            chain.push(next);
        }
        // The last two are cached.
        for (index, credential) in chain.iter().enumerate() {
            let expected = index >= 2;
            assert_eq!(is_valid(&credentials, credential, APP, now).await, expected);
        }
        let revoke = async |application| {
            let revoked = credentials.revoke(&chain[out], application, now).await;
            revoked.unwrap().is_some()
        };
        assert!(!revoke(AppId::new(4)).await);
        assert!(revoke(APP).await);
        assert!(!revoke(APP).await, "it has ended");
        for credential in &chain {
            assert!(!is_valid(&credentials, credential, APP, now).await);
            assert!(renew(&credentials, credential, now).await.is_none());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logout_during_a_renewal_ends_the_new_credential() {
    let store = TestStore::new().await;
    let other = store.of_another_process().await.credentials;
    let other = Arc::new(other);
    for _ in 0..20 {
        let (credentials, first, _, now) = with_one(&store).await;
        let task = {
            let (other, first) = (Arc::clone(&other), first.clone());
            tokio::spawn(async move { renew(&other, &first, now).await })
        };
        let revoked = credentials.revoke(&first, APP, now).await;
        assert!(revoked.unwrap().is_some());
        if let Some(Renewed::To(second, _)) = task.await.unwrap() {
            let found = credentials::find(&credentials.store, &second.hash(), now).await;
            assert!(found.unwrap().is_none());
        }
        let found = credentials::find(&credentials.store, &first.hash(), now).await;
        assert!(found.unwrap().is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_concurrent_renewals_have_one_result_and_write_once() {
    let store = TestStore::new().await;
    let (one, first, new, now) = with_one(&store).await;
    let other = store.of_another_process().await.credentials;
    let processes = [one, other].map(Arc::new);
    let tasks: Vec<_> = (0..50)
        .map(|index| {
            let (process, new) = (Arc::clone(&processes[index % 2]), new.clone());
            let first = first.clone();
            tokio::spawn(async move {
                // `/check` asks for the first one meanwhile.
                process.insert(new).await.unwrap();
                renewed(&process, &first, now).await.0.hash()
            })
        })
        .collect();
    let mut hashes = Vec::new();
    for task in tasks {
        hashes.push(task.await.unwrap());
    }
    assert!(hashes.iter().all(|hash| *hash == hashes[0]));
    let found = credentials::find(&processes[0].store, &hashes[0], now).await;
    assert!(found.unwrap().is_some());
    assert_eq!(store.count("credentials").await, 1);
    assert_eq!(store.count("changes").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_processes_learn_when_a_renewed_credential_ends() {
    let store = TestStore::new().await;
    let (credentials, first, _, now) = with_one(&store).await;
    let elsewhere = Arc::new(store.of_another_process().await.credentials);
    let watching = Arc::clone(&elsewhere);
    let watch = store.store().watch(Duration::default, move |change| {
        watching.on_change(&change);
    });
    let _watch = watch.unwrap();
    assert!(is_valid(&elsewhere, &first, APP, now).await);
    renewed(&credentials, &first, now).await;
    let over = now.plus(RENEWAL_OVERLAP);
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while is_valid(&elsewhere, &first, APP, over).await {
        assert!(std::time::Instant::now() < deadline, "still valid");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn expired_credentials_are_swept() {
    let store = TestStore::new().await;
    let credentials = store.stores().credentials;
    let now = Timestamp::from_millis(1_000_000);
    for _ in 0..3 {
        credentials
            .insert(new_credential(&store, &random_credential(), now).await)
            .await
            .unwrap();
    }
    assert_eq!(credentials.sweep(now, 10).await.unwrap(), 0);
    let later = now.plus(Duration::from_secs(60));
    assert_eq!(credentials.sweep(later, 2).await.unwrap(), 2);
    assert_eq!(credentials.sweep(later, 2).await.unwrap(), 1);
}

#[tokio::test]
async fn a_revoked_credential_is_swept_after_a_day() {
    let store = TestStore::new().await;
    let credentials = store.stores().credentials;
    let (credential, now) = (random_credential(), Timestamp::from_millis(1_000_000));
    let mut new = new_credential(&store, &credential, now).await;
    new.logged_in.expires_at = now.plus(Duration::from_secs(7 * 24 * 60 * 60));
    credentials.insert(new).await.unwrap();
    credentials.revoke(&credential, APP, now).await.unwrap();
    let day = Duration::from_secs(24 * 60 * 60);
    let almost = now.plus(day - Duration::from_millis(1));
    assert_eq!(credentials.sweep(almost, 10).await.unwrap(), 0);
    assert_eq!(credentials.sweep(now.plus(day), 10).await.unwrap(), 1);
}
