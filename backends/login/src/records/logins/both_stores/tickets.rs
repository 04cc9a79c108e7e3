//! Tickets: redeemable once, by one application, until they expire.

use signpost_store::tables::credentials;

use super::*;
use crate::records::credentials::Credential;

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_concurrent_requests_redeems_a_ticket() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let ticket = finished_with_ticket(&store, &logins).await;
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let (logins, ticket) = (logins.clone(), ticket.hash(None));
            tokio::spawn(async move {
                logins
                    .redeem(&ticket, APP, (&random_credential(), LIFETIME), NOW)
                    .await
                    .unwrap()
            })
        })
        .collect();
    let mut redeemed = 0;
    for task in tasks {
        match task.await.unwrap() {
            Redemption::Redeemed(completion) => {
                assert_eq!(completion.account.username.as_str(), "user");
                redeemed += 1;
            }
            Redemption::AlreadyUsed => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(redeemed, 1);
}

#[tokio::test]
async fn a_ticket_is_redeemed_together_with_its_credential() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let find = async |credential: &Credential| {
        let hash = credential.hash();
        let claims = credentials::find(store.store(), &hash, NOW).await;
        claims.unwrap()
    };
    let ticket = finished_with_ticket(&store, &logins).await.hash(None);
    let [late, first, second] = std::array::from_fn(|_| random_credential());
    let redeem = |credential, at| logins.redeem(&ticket, APP, (credential, LIFETIME), at);
    assert!(matches!(
        redeem(&late, later(60)).await.unwrap(),
        Redemption::Expired
    ));
    // The second call is a retry, as after a lost response.
    for at in [later(1), later(61)] {
        let Redemption::Redeemed(completion) = redeem(&first, at).await.unwrap() else {
            panic!("the ticket is valid")
        };
        assert_eq!(completion.finished_at, NOW);
        assert_eq!(completion.account.username.as_str(), "user");
        assert!(completion.created);
    }
    assert!(matches!(
        redeem(&second, later(1)).await.unwrap(),
        Redemption::AlreadyUsed
    ));
    let kept = find(&first).await.unwrap();
    assert_eq!(kept.account.username.as_str(), "user");
    assert_eq!(kept.application, APP);
    assert_eq!(kept.expires_at, later(1000));
    for refused in [late, second] {
        assert!(find(&refused).await.is_none());
    }
}

#[tokio::test]
async fn a_ticket_whose_credential_cannot_be_stored_is_not_redeemed() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let ticket = finished_with_ticket(&store, &logins).await.hash(None);
    store
        .execute("ALTER TABLE credentials RENAME TO away")
        .await;
    assert!(
        logins
            .redeem(&ticket, APP, (&random_credential(), LIFETIME), NOW)
            .await
            .is_err()
    );
    store
        .execute("ALTER TABLE away RENAME TO credentials")
        .await;
    assert!(matches!(
        logins
            .redeem(&ticket, APP, (&random_credential(), LIFETIME), NOW)
            .await
            .unwrap(),
        Redemption::Redeemed(_)
    ));
}

#[tokio::test]
async fn a_ticket_is_valid_for_one_application_until_it_expires() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let ticket = finished_with_ticket(&store, &logins).await.hash(None);
    let other = AppId::new(8);
    assert!(matches!(
        logins
            .redeem(&ticket, other, (&random_credential(), LIFETIME), NOW)
            .await
            .unwrap(),
        Redemption::Unknown
    ));
    assert!(matches!(
        logins
            .redeem(
                &Ticket::generate().hash(None),
                APP,
                (&random_credential(), LIFETIME),
                NOW
            )
            .await
            .unwrap(),
        Redemption::Unknown
    ));
    assert!(matches!(
        logins
            .redeem(&ticket, APP, (&random_credential(), LIFETIME), later(60))
            .await
            .unwrap(),
        Redemption::Expired
    ));
    assert!(matches!(
        logins
            .redeem(&ticket, APP, (&random_credential(), LIFETIME), later(59))
            .await
            .unwrap(),
        Redemption::Redeemed(_)
    ));
    assert!(matches!(
        logins
            .redeem(&ticket, APP, (&random_credential(), LIFETIME), later(60))
            .await
            .unwrap(),
        Redemption::AlreadyUsed
    ));
}

async fn finished_with_ticket(store: &TestStore, logins: &Logins) -> Ticket {
    let (cookie, ticket) = (LoginCookie::generate(), Ticket::generate());
    let state = begun(logins, &cookie).await;
    assert!(claim(logins, &state, &cookie.hash(), NOW).await);
    let account = store.account("user").await;
    let outcome = Outcome::Complete {
        account: account.clone(),
        created: true,
        ticket: Some((ticket.hash(None), later(60))),
    };
    assert!(
        logins
            .finish(&state, outcome, times(NOW, later(120)))
            .await
            .unwrap()
    );
    ticket
}
