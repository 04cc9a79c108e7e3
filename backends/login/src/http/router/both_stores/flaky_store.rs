//! The store fails for a moment while a login's account or outcome is stored.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use signpost_protocol::app::AppId;
use signpost_store::StoreError;

use super::{
    polling::{begin, check, confirm},
    *,
};
use crate::{
    config::ProviderName,
    records::{
        accounts::{AccountStore, User},
        credentials::{
            CredentialClaims, CredentialHash, CredentialStore, LoginHash, NewCredential, Renewal,
            RenewalState, RevokedLogin,
        },
        logins::{
            Claim, CookieHash, FinishTimes, Login, LoginStore, NewPollingLogin, Outcome,
            Redemption, SealKey, StateHash, TicketCredential, TicketHash,
        },
    },
};

/// A store whose first calls for accounts, outcomes, tickets and credentials fail.
struct FlakyStore<S: ?Sized> {
    store: Arc<S>,
    failures_left: Arc<AtomicU32>,
    /// Whether failing calls are executed, and only their responses are lost.
    loses_responses: bool,
}

impl<S: ?Sized> FlakyStore<S> {
    async fn ask<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let less = |left: u32| left.checked_sub(1);
        let order = Ordering::Relaxed;
        if self.failures_left.fetch_update(order, order, less).is_err() {
            return work.await;
        }
        if self.loses_responses {
            work.await?;
        }
        Err(StoreError::Interrupted)
    }
}

#[async_trait]
impl AccountStore for FlakyStore<dyn AccountStore> {
    async fn find_or_create(
        &self,
        provider: &ProviderName,
        user: &User,
        now: Timestamp,
    ) -> Result<(Account, bool), StoreError> {
        self.ask(self.store.find_or_create(provider, user, now))
            .await
    }
}

#[async_trait]
impl CredentialStore for FlakyStore<dyn CredentialStore> {
    async fn insert(&self, credential: NewCredential) -> Result<(), StoreError> {
        self.ask(self.store.insert(credential)).await
    }

    async fn find(
        &self,
        hash: &CredentialHash,
        now: Timestamp,
    ) -> Result<Option<CredentialClaims>, StoreError> {
        self.store.find(hash, now).await
    }

    async fn find_renewal(
        &self,
        hash: &CredentialHash,
        now: Timestamp,
    ) -> Result<Option<RenewalState>, StoreError> {
        self.store.find_renewal(hash, now).await
    }

    async fn renew(&self, renewal: Renewal, now: Timestamp) -> Result<(), StoreError> {
        self.store.renew(renewal, now).await
    }

    async fn revoke(
        &self,
        login: &LoginHash,
        application: AppId,
        now: Timestamp,
    ) -> Result<Option<RevokedLogin>, StoreError> {
        self.store.revoke(login, application, now).await
    }

    async fn sweep(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.store.sweep(now, limit).await
    }
}

#[async_trait]
impl LoginStore for FlakyStore<dyn LoginStore> {
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
        chosen: Option<&ProviderName>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.store.bind(state, cookie, chosen, now).await
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
        provider: Option<&ProviderName>,
        claim: Claim,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.store.claim(state, cookie, provider, claim, now).await
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
    ) -> Result<Redemption, StoreError> {
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

/// A setup whose stores each fail `failures` times.
async fn setup(failures: u32, loses_responses: bool) -> Setup {
    fn flaky<S: ?Sized>(store: Arc<S>, failures: u32, loses_responses: bool) -> Arc<FlakyStore<S>> {
        Arc::new(FlakyStore {
            store,
            failures_left: Arc::new(AtomicU32::new(failures)),
            loses_responses,
        })
    }
    Setup::with_stores("", |stores| Stores {
        logins: flaky(stores.logins, failures, loses_responses),
        accounts: flaky(stores.accounts, failures, loses_responses),
        credentials: flaky(stores.credentials, failures, loses_responses),
        ..stores
    })
    .await
}

#[tokio::test]
async fn an_outcome_is_stored_after_a_short_outage() {
    for loses_responses in [false, true] {
        for (grant, page, status, reason) in [
            ("code=me", 200, "complete", None),
            ("code=fail", 502, "failed", Some("provider_failed")),
            ("error=access_denied", 403, "failed", Some("access_denied")),
        ] {
            let setup = setup(2, loses_responses).await;
            let begun = begin(&setup).await;
            let cookie = confirm(&setup, &begun).await;
            let callback = format!("/login?state={}&{grant}", begun.state);
            let response = setup.browse(&callback, &cookie).await;
            assert_eq!(response.status.as_u16(), page, "{grant} {loses_responses}");
            let checked = check_with_retries(&setup, &begun.token).await;
            assert_eq!(checked["status"], status, "{grant} {loses_responses}");
            assert_eq!(
                checked["reason"].as_str(),
                reason,
                "{grant} {loses_responses}"
            );
            if status == "complete" {
                assert_eq!(checked["login"]["created"], true, "{loses_responses}");
            }
        }
    }
}

/// Calls `/check`, and retries after a 503, as clients do.
async fn check_with_retries(setup: &Setup, token: &str) -> Value {
    let target = format!("/check?token={token}");
    for _ in 0..2 {
        let response = setup.call("POST", &target, &[]).await;
        if response.status == StatusCode::OK {
            return response.json();
        }
        response.assert_problem(503, "store_unavailable");
    }
    check(setup, token).await
}

#[tokio::test]
async fn storing_a_random_credential_is_retried() {
    let setup = setup(2, false).await;
    let begun = setup.call("GET", "/login", &[]).await;
    let callback = format!("/login?state={}&code=me", begun.state());
    let done = setup.follow(&callback, &begun.cookie()).await.json();
    let authorization = done["authorization"].as_str().unwrap();
    let user = setup
        .call("GET", "/user", &[("acme-x-authorization", authorization)])
        .await;
    assert_eq!(user.json()["username"], "{me}");
}

#[tokio::test]
async fn a_ticket_works_once_if_the_response_to_its_storing_was_lost() {
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
async fn a_ticket_is_not_lost_if_redeeming_it_was_retried() {
    for loses_responses in [false, true] {
        let failures_left = Arc::new(AtomicU32::new(0));
        let logins = |store| FlakyStore {
            store,
            failures_left: Arc::clone(&failures_left),
            loses_responses,
        };
        let setup = Setup::with_stores("", |stores| Stores {
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
        failures_left.store(2, Ordering::Relaxed);
        let result = setup.call("POST", &redeem, &[]).await.json();
        let authorization = result["authorization"].as_str().unwrap();
        let header = [("acme-x-authorization", authorization)];
        let user = setup.call("GET", "/user", &header).await;
        assert_eq!(user.json()["username"], "{me}", "{loses_responses}");
        let again = setup.call("POST", &redeem, &[]).await;
        again.assert_problem(409, "login_used");
    }
}

#[tokio::test]
async fn after_a_long_outage_the_login_fails_when_the_claim_ends() {
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
