//! Every login of an account or application ends, no other one does, and every process is notified of each credential.

use std::{
    collections::HashSet,
    sync::mpsc::{self, Receiver},
};

use signpost_protocol::credential::CredentialHash;

use super::*;
use crate::{
    Change, Topic,
    changes::Watch,
    tables::{
        accounts::{Username, find_id},
        credentials,
    },
    testing::{CHANGE_TIMEOUT, TestStore},
};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const DEADLINE: Duration = CHANGE_TIMEOUT;

/// Accounts 1 and 2.
async fn with_accounts(test: &TestStore) -> Store {
    let store = test.open().await;
    for username in ["ada", "grace"] {
        let insert = "INSERT INTO accounts (provider, username, created_at) VALUES ('one', $1, $2)";
        store.execute(insert, values![username, NOW]).await.unwrap();
    }
    store
}

/// A hash of 32 bytes, unique for its kind and number. Hashes are not ordered by number.
fn hash(kind: u8, number: usize) -> [u8; 32] {
    let mut hash = [kind; 32];
    let number = u64::try_from(number).unwrap();
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash[..8].copy_from_slice(&mixed.to_be_bytes());
    hash[8..16].copy_from_slice(&number.to_be_bytes());
    hash
}

/// Inserts credentials with these numbers. Every third one is renewed.
async fn insert(store: &Store, account: i64, application: i64, numbers: std::ops::Range<usize>) {
    let row = |number: usize| {
        let previous = number.is_multiple_of(3).then(|| hash(2, number).to_vec());
        values![
            &hash(1, number),
            &hash(3, number),
            account,
            application,
            NOW,
            NOW.plus(Duration::from_secs(60)),
            previous,
        ]
    };
    let columns =
        "hash, login_hash, account_id, application_id, created_at, expires_at, previous_hash";
    let batch = Batch {
        sql: format!("INSERT INTO credentials ({columns}) SELECT {columns} FROM {{given}}"),
        columns: "hash bytea, login_hash bytea, account_id bigint, application_id bigint, created_at bigint, \
                  expires_at bigint, previous_hash bytea",
        rows: numbers.map(row).collect(),
    };
    store.write_batch::<()>(batch).await.unwrap();
}

/// Inserts the outcome of a redirect login, with a ticket.
async fn insert_outcome(store: &Store, account: i64, application: i64, claimable_until: Timestamp) {
    let number = usize::try_from(account * 10 + application).unwrap();
    let insert = "INSERT INTO logins (state_hash, version, application_id, mode, provider, status, account_id, finished_at, \
                  claimable_until, ticket_hash, ticket_until, created_at, expires_at) \
                  VALUES ($1, 'v1', $2, 'redirect', 'one', 'complete', $3, $4, $5, $6, $5, $4, $4)";
    let (state, ticket) = (hash(4, number), hash(5, number));
    let values = values![&state, application, account, NOW, claimable_until, &ticket];
    store.execute(insert, values).await.unwrap();
}

fn watched(store: &Store) -> (Receiver<Change>, Watch) {
    let (sender, receiver) = mpsc::channel();
    let watch = store.watch(Duration::default, move |change| {
        let _ = sender.send(change);
    });
    (receiver, watch.unwrap())
}

/// Account and application of each credential that is valid.
async fn valid(store: &Store) -> Vec<(i64, i64)> {
    let query = "SELECT account_id * 10 + application_id FROM credentials WHERE revoked_at IS NULL ORDER BY 1";
    let rows: Vec<(i64,)> = store.rows(query, Vec::new()).await.unwrap();
    rows.into_iter()
        .map(|(one,)| (one / 10, one % 10))
        .collect()
}

async fn outcomes(store: &Store) -> i64 {
    let query = "SELECT count(*) FROM logins WHERE claimable_until > 0 AND ticket_until > 0";
    let count: Option<(i64,)> = store.row(query, Vec::new()).await.unwrap();
    count.unwrap().0
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_of_an_account_or_application_end_and_no_others() {
    let ada = AccountId::new(1);
    for (whose, left) in [
        (Whose::Account(ada, None), &[(2, 7), (2, 8)][..]),
        (
            Whose::Account(ada, Some(AppId::new(7))),
            &[(1, 8), (2, 7), (2, 8)],
        ),
        (Whose::Application(AppId::new(7)), &[(1, 8), (2, 8)]),
        (
            Whose::Account(AccountId::new(3), None),
            &[(1, 7), (1, 8), (2, 7), (2, 8)],
        ),
        (
            Whose::Application(AppId::new(9)),
            &[(1, 7), (1, 8), (2, 7), (2, 8)],
        ),
    ] {
        let test = TestStore::chosen();
        let store = with_accounts(&test).await;
        for (number, (account, application)) in
            [(1, 7), (1, 8), (2, 7), (2, 8)].into_iter().enumerate()
        {
            insert(&store, account, application, number..number + 1).await;
            insert_outcome(
                &store,
                account,
                application,
                NOW.plus(Duration::from_secs(1)),
            )
            .await;
        }
        let ended = end(&store, whose, NOW).await.unwrap();
        assert_eq!(valid(&store).await, left, "{whose:?}");
        assert_eq!(ended, 4 - left.len());
        assert_eq!(outcomes(&store).await, i64::try_from(left.len()).unwrap());
        assert_eq!(end(&store, whose, NOW).await.unwrap(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_ends_even_where_a_clock_is_behind() {
    let test = TestStore::chosen();
    let store = with_accounts(&test).await;
    let almost = NOW.minus(CLOCK_DIFFERENCE);
    insert_outcome(&store, 1, 7, almost.plus(Duration::from_millis(1))).await;
    insert_outcome(&store, 1, 8, almost).await;
    let (changes, _watch) = watched(&store);
    end(&store, Whose::Account(AccountId::new(1), None), NOW)
        .await
        .unwrap();
    assert_eq!(outcomes(&store).await, 1, "the other one has long ended");
    let expected = Change::Item {
        topic: Topic::Login,
        key: hash(4, 17).to_vec(),
    };
    assert_eq!(changes.recv_timeout(DEADLINE).unwrap(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_process_is_notified_of_each_hash_by_few_entries() {
    const NUMBER: usize = 2 * BATCH + 1;
    let test = TestStore::chosen();
    let store = with_accounts(&test).await;
    insert(&store, 1, 7, 0..NUMBER).await;
    insert(&store, 2, 8, NUMBER..NUMBER + 10).await;
    let other = test.open().await;
    let (changes, _watch) = watched(&other);
    let ended = end(&store, Whose::Application(AppId::new(7)), NOW).await;
    assert_eq!(ended.unwrap(), NUMBER);
    let present = (0..NUMBER).map(|number| hash(1, number));
    let renewed = (0..NUMBER).step_by(3).map(|number| hash(2, number));
    let mut missing: HashSet<_> = present
        .chain(renewed)
        .map(CredentialHash::from_bytes)
        .collect();
    let mut entries = 0;
    while !missing.is_empty() {
        let Change::Item {
            topic: Topic::Credential,
            key,
        } = changes.recv_timeout(DEADLINE).unwrap()
        else {
            panic!("another change");
        };
        entries += 1;
        for hash in credentials::changed(&key).unwrap() {
            assert!(missing.remove(&hash), "twice, or of another application");
        }
    }
    assert_eq!(entries, 2 * BATCH.div_ceil(50) + 1);
    for number in [0, 1] {
        let hash = CredentialHash::from_bytes(hash(1, number));
        let found = credentials::find(&other, &hash, NOW).await.unwrap();
        assert!(found.is_none());
    }
}

/// A renewal changes the credential, which is the primary key.
#[tokio::test(flavor = "multi_thread")]
async fn renewals_meanwhile_keep_no_login() {
    const NUMBER: usize = 3 * BATCH;
    let test = TestStore::chosen();
    let store = with_accounts(&test).await;
    insert(&store, 1, 7, 0..NUMBER).await;
    let other = test.open().await;
    let renewals = tokio::spawn(async move {
        let mut renewed = 0;
        for number in 0..NUMBER {
            let renew = "UPDATE credentials SET hash = $1, previous_hash = hash WHERE hash = $2 AND revoked_at IS NULL";
            // The new one comes before all others.
            let mut new = hash(6, number);
            new[..8].fill(0);
            let values = values![&new, &hash(1, number)];
            renewed += other.execute(renew, values).await.unwrap();
        }
        renewed
    });
    while !renewals.is_finished() {
        end(&store, Whose::Application(AppId::new(7)), NOW)
            .await
            .unwrap();
        assert_eq!(valid(&store).await, []);
    }
    renewals.await.unwrap();
}

#[tokio::test]
async fn an_account_is_found_by_provider_and_username() {
    let test = TestStore::chosen();
    let store = with_accounts(&test).await;
    for (provider, username, expected) in [
        ("one", "grace", Some(2)),
        ("two", "grace", None),
        ("one", "Grace", None),
    ] {
        let username = Username::new(username.to_owned()).unwrap();
        let found = find_id(&store, provider, &username).await.unwrap();
        assert_eq!(found.map(AccountId::get), expected);
    }
}
