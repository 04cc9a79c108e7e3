//! Tickets: good once, for one application, for a while.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_serves_one_of_many() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let ticket = finished_with_ticket(&store, &logins).await;
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let (logins, ticket) = (Arc::clone(&logins), ticket.hash());
            tokio::spawn(async move {
                logins
                    .redeem(&ticket, APP, credential(), NOW)
                    .await
                    .unwrap()
            })
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
async fn a_ticket_is_spent_with_its_credential_or_not_at_all() {
    let store = TestStore::new().await;
    let stores = store.stores();
    let (logins, credentials) = (&stores.logins, &stores.credentials);
    let ticket = finished_with_ticket(&store, logins).await.hash();
    let [late, first, second] = std::array::from_fn(|_| credential());
    let redeem = |credential, at| logins.redeem(&ticket, APP, credential, at);
    assert!(matches!(
        redeem(late, later(60)).await.unwrap(),
        Redeemed::TooLate
    ));
    // The second time as if the answer had been lost.
    for at in [later(1), later(61)] {
        let Redeemed::Now(completion) = redeem(first, at).await.unwrap() else {
            panic!("it is good")
        };
        assert_eq!(completion.finished_at, NOW);
        assert_eq!(completion.account.username.as_str(), "person");
        assert!(completion.created);
    }
    assert!(matches!(
        redeem(second, later(1)).await.unwrap(),
        Redeemed::Before
    ));
    let kept = credentials.find(&first.hash, NOW).await.unwrap().unwrap();
    assert_eq!(kept.account.username.as_str(), "person");
    assert_eq!(kept.application, APP);
    assert_eq!(kept.expires_at, later(1000));
    for refused in [late, second] {
        assert!(
            credentials
                .find(&refused.hash, NOW)
                .await
                .unwrap()
                .is_none()
        );
    }
}

#[tokio::test]
async fn a_ticket_whose_credential_cannot_be_stored_is_not_spent() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let ticket = finished_with_ticket(&store, &logins).await.hash();
    store
        .execute("ALTER TABLE credentials RENAME TO away")
        .await;
    assert!(
        logins
            .redeem(&ticket, APP, credential(), NOW)
            .await
            .is_err()
    );
    store
        .execute("ALTER TABLE away RENAME TO credentials")
        .await;
    assert!(matches!(
        logins
            .redeem(&ticket, APP, credential(), NOW)
            .await
            .unwrap(),
        Redeemed::Now(_)
    ));
}

#[tokio::test]
async fn a_ticket_is_one_applications_and_ages() {
    let store = TestStore::new().await;
    let logins = store.stores().logins;
    let ticket = finished_with_ticket(&store, &logins).await.hash();
    let other = AppId::new(8);
    assert!(matches!(
        logins
            .redeem(&ticket, other, credential(), NOW)
            .await
            .unwrap(),
        Redeemed::Unknown
    ));
    assert!(matches!(
        logins
            .redeem(&Ticket::generate().hash(), APP, credential(), NOW)
            .await
            .unwrap(),
        Redeemed::Unknown
    ));
    assert!(matches!(
        logins
            .redeem(&ticket, APP, credential(), later(60))
            .await
            .unwrap(),
        Redeemed::TooLate
    ));
    assert!(matches!(
        logins
            .redeem(&ticket, APP, credential(), later(59))
            .await
            .unwrap(),
        Redeemed::Now(_)
    ));
    assert!(matches!(
        logins
            .redeem(&ticket, APP, credential(), later(60))
            .await
            .unwrap(),
        Redeemed::Before
    ));
}

async fn finished_with_ticket(store: &TestStore, logins: &Arc<dyn LoginStore>) -> Ticket {
    let (cookie, ticket) = (LoginCookie::generate(), Ticket::generate());
    let state = begun(logins, &cookie).await;
    assert!(claim(logins, &state, &cookie.hash(), NOW).await);
    let account = store.account("person").await;
    let outcome = Outcome::Complete {
        account: account.id,
        created: true,
        ticket: Some((ticket.hash(), later(60))),
    };
    assert!(
        logins
            .finish(&state, outcome, times(NOW, later(120)))
            .await
            .unwrap()
    );
    ticket
}
