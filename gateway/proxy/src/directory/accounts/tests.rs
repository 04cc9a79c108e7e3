//! What the stores find, what is cached, and how many lookups strangers can cause.

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use signpost_kit::clock::{ManualClock, Timestamp};
use signpost_protocol::app::AppId;
use signpost_protocol::credential::{Credential, CredentialHash};
use signpost_store::{Change, Store, StoreError, Topic, testing::TestStore};
use tokio::{sync::Semaphore, task::JoinSet};

use super::{directory::AccountDirectory, lookups::TURN_TIMEOUT, *};

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_000_000);
const APP: AppId = AppId::new(3);
const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

/// A store with these credentials, which may stall or fail.
#[derive(Default)]
pub(crate) struct FakeStore {
    claims: Mutex<Vec<(CredentialHash, CredentialClaims)>>,
    fails: AtomicBool,
    /// Number of all calls, and of those in flight.
    calls: AtomicUsize,
    in_flight: AtomicUsize,
    /// If it stalls, each call needs a permit.
    stall: Option<Semaphore>,
}

impl FakeStore {
    pub(crate) fn with(credential: &Credential, application: AppId, expires_at: Timestamp) -> Self {
        let claims = CredentialClaims {
            account: Account::new(7, "{ada} 100%", "bitbucket"),
            application,
            expires_at,
        };
        Self {
            claims: Mutex::new(vec![(credential.hash(), claims)]),
            ..Self::default()
        }
    }

    fn stalled() -> Self {
        Self {
            stall: Some(Semaphore::new(0)),
            ..Self::default()
        }
    }

    pub(crate) fn fail(&self, fails: bool) {
        self.fails.store(fails, Ordering::SeqCst);
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }

    fn response(&self, calls: usize) {
        self.stall.as_ref().unwrap().add_permits(calls);
    }

    pub(crate) fn directory(self: &Arc<Self>) -> AccountDirectory {
        let clock = Arc::new(ManualClock::default());
        AccountDirectory::with_store(Arc::clone(self) as Arc<dyn AccountStore>, 4, clock)
    }
}

#[async_trait]
impl AccountStore for FakeStore {
    async fn find(
        &self,
        hash: CredentialHash,
        _: Timestamp,
    ) -> Result<Option<CredentialClaims>, StoreError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        if let Some(stall) = &self.stall {
            stall.acquire().await.unwrap().forget();
        }
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        if self.fails.load(Ordering::SeqCst) {
            return Err(StoreError::Busy);
        }
        let claims = self.claims.lock().unwrap();
        let mut all = claims.iter();
        let found = all.find(|(known, _)| *known == hash);
        Ok(found.map(|(_, claims)| claims.clone()))
    }
}

pub(crate) fn credential(number: u8) -> Credential {
    Credential::from_bytes([number; 32])
}

fn hash(number: usize) -> CredentialHash {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    Credential::from_bytes(bytes).hash()
}

fn address(number: u16) -> IpAddr {
    let [high, low] = number.to_be_bytes();
    IpAddr::from([10, 0, high, low])
}

/// Lets all tasks of the runtime run until none can go on.
async fn settle() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn usernames_are_percent_encoded_so_that_none_looks_like_another() {
    for (text, value) in [
        ("{fdee430d-0000}", "{fdee430d-0000}"),
        ("ada@example.org", "ada@example.org"),
        ("a b", "a%20b"),
        ("a%20b", "a%2520b"),
        (" \t", "%20%09"),
        ("é", "%C3%A9"),
        ("e\u{301}", "e%CC%81"),
        (
            "a\r\nX-Gateway-Account-Id: 1",
            "a%0D%0AX-Gateway-Account-Id:%201",
        ),
        ("\u{7f}\u{1}", "%7F%01"),
    ] {
        assert_eq!(&*percent_encoded(text), value);
    }
}

/// It runs on SQLite and on Postgres.
mod both_stores {
    use super::*;

    #[tokio::test]
    async fn the_store_finds_valid_credentials_with_their_accounts() {
        let test = TestStore::chosen();
        let store = test.open().await;
        let [valid, expired, revoked] = [1, 2, 3].map(credential);
        let (before, later) = (NOW.as_millis(), NOW.as_millis() + 1);
        let rows = [
            (valid.hash(), later, None),
            (expired.hash(), before, None),
            (revoked.hash(), later, Some(before)),
        ];
        for (hash, expires_at, revoked_at) in rows {
            insert(&store, hash, expires_at, revoked_at).await;
        }
        let directory = AccountDirectory::new(&store);
        let found = directory.find(valid.hash(), CLIENT, NOW).await.unwrap();
        let found = found.unwrap();
        assert_eq!(&*found.account.username, "{ada}%20%25");
        assert_eq!(&*found.account.provider, "bitbucket");
        assert!(!found.account.id.is_empty());
        assert_eq!(
            (found.application, found.expires_at.as_millis()),
            (APP, later)
        );
        for unknown in [expired, revoked, credential(4)] {
            let found = directory.find(unknown.hash(), CLIENT, NOW).await.unwrap();
            assert!(found.is_none());
        }
    }

    /// Inserts a credential of the account `{ada} %` as the login service does.
    async fn insert(store: &Store, hash: CredentialHash, expires_at: i64, revoked_at: Option<i64>) {
        let accounts = "INSERT INTO accounts (provider, username, created_at) \
                    VALUES ('bitbucket', '{ada} %', 0) ON CONFLICT DO NOTHING";
        let credentials = "INSERT INTO credentials (hash, login_hash, account_id, application_id, created_at, expires_at, revoked_at) \
                       SELECT $1, $1, id, 3, 0, $2, $3 FROM accounts";
        match store {
            Store::Sqlite(database) => {
                let inserted = database.write(move |transaction| {
                    transaction.execute(accounts, [])?;
                    let values = rusqlite::params![hash.as_bytes(), expires_at, revoked_at];
                    transaction.execute(credentials, values)
                });
                inserted.await.unwrap();
            }
            Store::Postgres(database) => {
                let session = database.session().await.unwrap();
                session.execute(accounts, &[]).await.unwrap();
                let hash = hash.as_bytes().as_slice();
                let values: signpost_store::postgres::Parameters<'_> =
                    &[&hash, &expires_at, &revoked_at];
                session.execute(credentials, values).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_valid_credential_is_cached_until_it_changes_and_an_unknown_one_never_is() {
    let known = credential(1);
    let store = Arc::new(FakeStore::with(&known, APP, NOW));
    let directory = store.directory();
    let (hash, sent) = (known.hash(), known.encode());
    let cached = || directory.cached(sent.as_bytes()).is_some();
    assert!(!cached());
    for _ in 0..3 {
        let found = directory.find(hash, CLIENT, NOW).await.unwrap();
        assert!(found.is_some());
        // By its hash, then by the header's value.
        assert!(cached() && cached());
    }
    for other in [
        &sent.as_bytes()[1..],
        b"",
        &[0xff; 43],
        sent.to_lowercase().as_bytes(),
    ] {
        assert!(directory.cached(other).is_none());
    }
    assert!(
        directory
            .cached(format!("Bearer {}", *sent).as_bytes())
            .is_some()
    );
    assert_eq!(store.calls(), 1);
    let unknown = credential(2).hash();
    for _ in 0..3 {
        assert!(
            directory
                .find(unknown, CLIENT, NOW)
                .await
                .unwrap()
                .is_none()
        );
    }
    assert_eq!(store.calls(), 4);
    // After a return of the feed it is read again, and used if the store does not answer.
    directory.on_change(&Change::Lost);
    assert!(cached());
    directory.on_change(&Change::Restored);
    assert!(!cached());
    store.fail(true);
    for _ in 0..2 {
        let found = directory.find(hash, CLIENT, NOW).await.unwrap();
        assert!(found.is_some() && !cached());
    }
    store.fail(false);
    directory.on_change(&Change::Item {
        topic: Topic::Credential,
        key: hash.as_bytes().to_vec(),
    });
    assert!(!cached());
    store.fail(true);
    assert!(directory.find(hash, CLIENT, NOW).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_random_credentials_leaves_half_of_the_calls_and_evicts_nobody() {
    let known = credential(1);
    let store = Arc::new(FakeStore::with(&known, APP, NOW));
    let directory = Arc::new(store.directory());
    directory.find(known.hash(), CLIENT, NOW).await.unwrap();
    let stalled = Arc::new(FakeStore::stalled());
    let flooded = Arc::new(AccountDirectory::with_store(
        Arc::clone(&stalled) as Arc<dyn AccountStore>,
        4,
        Arc::new(ManualClock::default()),
    ));
    let mut flood = JoinSet::new();
    for number in 0..5_000 {
        directory.find(hash(number), CLIENT, NOW).await.unwrap();
        let (flooded, client) = (Arc::clone(&flooded), address(number as u16 % 500));
        flood.spawn(async move { flooded.find(hash(number), client, NOW).await.is_err() });
    }
    assert!(directory.cached(known.encode().as_bytes()).is_some());
    settle().await;
    assert_eq!(stalled.in_flight(), 2);
    tokio::time::advance(TURN_TIMEOUT).await;
    settle().await;
    // Those that have their turn go on; all others have failed.
    stalled.response(2);
    let failed = flood.join_all().await;
    assert_eq!(failed.iter().filter(|failed| **failed).count(), 4_998);
    assert_eq!(stalled.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_network_that_floods_lets_others_go_first() {
    let stalled = Arc::new(FakeStore::stalled());
    let directory = Arc::new(stalled.directory());
    let mut flood = JoinSet::new();
    for number in 0..1_000 {
        let directory = Arc::clone(&directory);
        flood.spawn(async move { directory.find(hash(number), CLIENT, NOW).await.is_ok() });
    }
    settle().await;
    // Of many networks, hardly one shares the lane of the flood.
    let mut others = JoinSet::new();
    for number in 0..20_u16 {
        let directory = Arc::clone(&directory);
        let hash = hash(10_000 + usize::from(number));
        others.spawn(async move { directory.find(hash, address(number), NOW).await.is_ok() });
    }
    settle().await;
    // Four lookups of the flood came first; one network in 64 may share the lane with it.
    stalled.response(4 + 20 + 4);
    settle().await;
    let mut served = 0;
    while let Some(done) = others.try_join_next() {
        served += usize::from(done.unwrap());
    }
    assert!(served >= 17, "{served} of 20");
}

#[tokio::test(start_paused = true)]
async fn a_turn_ends_with_the_lookup_even_if_the_client_leaves_and_is_never_lost() {
    let stalled = Arc::new(FakeStore::stalled());
    let directory = Arc::new(stalled.directory());
    for number in 0..100 {
        let lookup = directory.find(hash(number), address(number as u16), NOW);
        let left = tokio::time::timeout(Duration::from_millis(1), lookup).await;
        assert!(left.is_err());
        settle().await;
    }
    // All clients left, but two lookups are still in the store.
    assert_eq!((stalled.in_flight(), stalled.calls()), (2, 2));
    stalled.response(2);
    settle().await;
    stalled.response(3);
    for number in 200..203 {
        let found = directory.find(hash(number), CLIENT, NOW).await;
        assert!(found.unwrap().is_none());
    }
    assert_eq!((stalled.in_flight(), stalled.calls()), (0, 5));
}
