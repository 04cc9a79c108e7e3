//! The store is away for the moment in which a login's account or outcome is to be stored.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use gateway_protocol::app::AppId;
use signpost_store::StoreError;

use super::{
    polling::{begin, check, confirm},
    *,
};
use crate::{
    accounts::{AccountStore, Username},
    config::{ProviderKind, ProviderName},
    credentials::{CredentialHash, CredentialStore, LoggedIn, NewCredential},
    logins::{
        Claim, CookieHash, FinishTimes, Login, LoginStore, NewPollingLogin, Outcome, Redeemed,
        SealKey, StateHash, TicketCredential, TicketHash,
    },
};

/// Fails to find an account, to finish a login, to spend a ticket, or to keep a credential, as often as it is told to.
struct Stumbling<S: ?Sized> {
    store: Arc<S>,
    stumbles: Arc<AtomicU32>,
    /// Whether it is done all the same, and only the answer is lost.
    loses_answers: bool,
}

impl<S: ?Sized> Stumbling<S> {
    async fn ask<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let less = |left: u32| left.checked_sub(1);
        let order = Ordering::Relaxed;
        if self.stumbles.fetch_update(order, order, less).is_err() {
            return work.await;
        }
        if self.loses_answers {
            work.await?;
        }
        Err(StoreError::Interrupted)
    }
}

#[async_trait]
impl AccountStore for Stumbling<dyn AccountStore> {
    async fn find_or_create(
        &self,
        provider: &ProviderName,
        kind: &ProviderKind,
        username: &Username,
        now: Timestamp,
    ) -> Result<(Account, bool), StoreError> {
        self.ask(self.store.find_or_create(provider, kind, username, now))
            .await
    }
}

#[async_trait]
impl CredentialStore for Stumbling<dyn CredentialStore> {
    async fn keep(&self, credential: NewCredential) -> Result<(), StoreError> {
        self.ask(self.store.keep(credential)).await
    }

    async fn find(
        &self,
        hash: &CredentialHash,
        now: Timestamp,
    ) -> Result<Option<LoggedIn>, StoreError> {
        self.store.find(hash, now).await
    }

    async fn revoke(&self, hash: &CredentialHash, now: Timestamp) -> Result<(), StoreError> {
        self.store.revoke(hash, now).await
    }

    async fn sweep(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.store.sweep(now, limit).await
    }
}

#[async_trait]
impl LoginStore for Stumbling<dyn LoginStore> {
    async fn begin(&self, login: NewPollingLogin) -> Result<(), StoreError> {
        self.store.begin(login).await
    }

    async fn find(&self, state: &StateHash) -> Result<Option<Login>, StoreError> {
        self.store.find(state).await
    }

    async fn bind(
        &self,
        state: &StateHash,
        cookie: &CookieHash,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.store.bind(state, cookie, now).await
    }

    async fn claim_redirect(
        &self,
        login: &Login,
        claim: Claim,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.store.claim_redirect(login, claim, now).await
    }

    async fn unclaim_redirect(&self, state: &StateHash) -> Result<(), StoreError> {
        self.store.unclaim_redirect(state).await
    }

    async fn seal_key(&self, fresh: SealKey, now: Timestamp) -> Result<SealKey, StoreError> {
        self.store.seal_key(fresh, now).await
    }

    async fn claim(
        &self,
        state: &StateHash,
        cookie: &CookieHash,
        claim: Claim,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.store.claim(state, cookie, claim, now).await
    }

    async fn finish(
        &self,
        state: &StateHash,
        outcome: Outcome,
        times: FinishTimes,
    ) -> Result<bool, StoreError> {
        self.ask(self.store.finish(state, outcome, times)).await
    }

    async fn redeem(
        &self,
        ticket: &TicketHash,
        application: AppId,
        credential: TicketCredential,
        now: Timestamp,
    ) -> Result<Redeemed, StoreError> {
        let redeem = self.store.redeem(ticket, application, credential, now);
        self.ask(redeem).await
    }

    async fn sweep(
        &self,
        before: Timestamp,
        now: Timestamp,
        limit: usize,
    ) -> Result<usize, StoreError> {
        self.store.sweep(before, now, limit).await
    }
}

/// Over stores each of which stumbles as often where it matters.
async fn setup(stumbles: u32, loses_answers: bool) -> Setup {
    fn stumbling<S: ?Sized>(
        store: Arc<S>,
        stumbles: u32,
        loses_answers: bool,
    ) -> Arc<Stumbling<S>> {
        Arc::new(Stumbling {
            store,
            stumbles: Arc::new(AtomicU32::new(stumbles)),
            loses_answers,
        })
    }
    Setup::over("", |stores| Stores {
        logins: stumbling(stores.logins, stumbles, loses_answers),
        accounts: stumbling(stores.accounts, stumbles, loses_answers),
        credentials: stumbling(stores.credentials, stumbles, loses_answers),
        ..stores
    })
    .await
}

#[tokio::test]
async fn a_store_that_is_back_soon_has_the_outcome() {
    for loses_answers in [false, true] {
        for (grant, page, status, reason) in [
            ("code=me", 200, "complete", None),
            ("code=fail", 502, "failed", Some("provider_failed")),
            ("error=access_denied", 403, "failed", Some("access_denied")),
        ] {
            let setup = setup(2, loses_answers).await;
            let begun = begin(&setup).await;
            let cookie = confirm(&setup, &begun).await;
            let callback = format!("/login?state={}&{grant}", begun.state);
            let told = setup.browse(&callback, &cookie).await;
            assert_eq!(told.status.as_u16(), page, "{grant} {loses_answers}");
            let checked = settled(&setup, &begun.token).await;
            assert_eq!(checked["status"], status, "{grant} {loses_answers}");
            assert_eq!(
                checked["reason"].as_str(),
                reason,
                "{grant} {loses_answers}"
            );
            if status == "complete" {
                assert_eq!(checked["login"]["created"], true, "{loses_answers}");
            }
        }
    }
}

/// Asks until there is an answer, as a client would: nothing is lost by a 503 here.
async fn settled(setup: &Setup, token: &str) -> Value {
    let target = format!("/check?token={token}");
    for _ in 0..2 {
        let answer = setup.call("POST", &target, &[]).await;
        if answer.status == StatusCode::OK {
            return answer.json();
        }
        answer.assert_problem(503, "store_unavailable");
    }
    check(setup, token).await
}

#[tokio::test]
async fn a_credential_that_cannot_be_asked_for_again_is_stored_with_patience() {
    let setup = setup(2, false).await;
    let begun = setup.call("GET", "/login", &[]).await;
    let callback = format!("/login?state={}&code=me", begun.state());
    let done = setup.browse(&callback, &begun.cookie()).await.json();
    let authorization = done["authorization"].as_str().unwrap();
    let user = setup
        .call("GET", "/user", &[("acme-x-authorization", authorization)])
        .await;
    assert_eq!(user.json()["username"], "{me}");
}

#[tokio::test]
async fn a_ticket_whose_storing_was_not_answered_serves_once() {
    let setup = setup(1, true).await;
    let begun = setup
        .call("GET", "/login?return_to=https://app.example/", &[])
        .await;
    let callback = format!("/login?state={}&code=me", begun.state());
    let done = setup.browse(&callback, &begun.cookie()).await;
    let ticket = done
        .header(header::LOCATION)
        .strip_prefix("https://app.example/?ticket=")
        .unwrap();
    let redeem = format!("/user/login?ticket={ticket}");
    let result = setup.call("POST", &redeem, &[]).await.json();
    assert_eq!(result["account"]["username"], "{me}");
    setup
        .call("POST", &redeem, &[])
        .await
        .assert_problem(409, "login_used");
}

#[tokio::test]
async fn a_ticket_whose_spending_was_not_answered_is_not_lost() {
    for loses_answers in [false, true] {
        let stumbles = Arc::new(AtomicU32::new(0));
        let logins = |store| Stumbling {
            store,
            stumbles: Arc::clone(&stumbles),
            loses_answers,
        };
        let setup = Setup::over("", |stores| Stores {
            logins: Arc::new(logins(stores.logins)),
            ..stores
        })
        .await;
        let target = "/login?return_to=https://app.example/";
        let begun = setup.call("GET", target, &[]).await;
        let callback = format!("/login?state={}&code=me", begun.state());
        let done = setup.browse(&callback, &begun.cookie()).await;
        let (_, ticket) = done.header(header::LOCATION).split_once("ticket=").unwrap();
        let redeem = format!("/user/login?ticket={ticket}");
        stumbles.store(2, Ordering::Relaxed);
        let result = setup.call("POST", &redeem, &[]).await.json();
        let authorization = result["authorization"].as_str().unwrap();
        let header = [("acme-x-authorization", authorization)];
        let user = setup.call("GET", "/user", &header).await;
        assert_eq!(user.json()["username"], "{me}", "{loses_answers}");
        let again = setup.call("POST", &redeem, &[]).await;
        again.assert_problem(409, "login_used");
    }
}

#[tokio::test]
async fn a_store_that_stays_away_is_told_and_the_claims_end_says_the_rest() {
    let setup = setup(u32::MAX, false).await;
    let begun = begin(&setup).await;
    let cookie = confirm(&setup, &begun).await;
    let callback = format!("/login?state={}&error=access_denied", begun.state);
    setup
        .browse(&callback, &cookie)
        .await
        .assert_problem(503, "store_unavailable");
    assert_eq!(check(&setup, &begun.token).await["status"], "pending");
    setup.later(30);
    assert_eq!(check(&setup, &begun.token).await["status"], "failed");
}
