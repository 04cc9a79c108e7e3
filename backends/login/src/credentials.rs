//! Credentials: who is logged in, for which application, until when.

mod credential;
mod sqlite;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway_protocol::app::AppId;
use signpost_store::StoreError;

pub use self::{
    credential::{Credential, CredentialHash},
    sqlite::SqliteCredentials,
};
use crate::{accounts::Account, clock::Timestamp, read_through::ReadThrough};

/// Some 300 bytes each: a few MiB of people who are active right now.
const REMEMBERED: u64 = 20_000;
/// Longest that a credential is trusted without the store; its end is told by the change feed long before.
const TRUSTED: Duration = Duration::from_secs(5 * 60);

/// What a credential proves.
#[derive(Clone, Debug)]
pub struct LoggedIn {
    /// The person.
    pub account: Account,
    /// The application the person logged in to; the credential is no good elsewhere.
    pub application: AppId,
    /// When it ends by itself.
    pub expires_at: Timestamp,
}

/// A credential to be stored.
#[derive(Clone, Debug)]
pub struct NewCredential {
    /// What is stored of it.
    pub hash: CredentialHash,
    /// The person and the application.
    pub logged_in: LoggedIn,
    /// When the login was completed.
    pub created_at: Timestamp,
}

/// Where credentials are kept.
#[async_trait]
pub trait CredentialStore: Send + Sync {
    /// Stores a credential; if it is there already nothing changes, above all not that it was revoked.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    async fn keep(&self, credential: NewCredential) -> Result<(), StoreError>;

    /// What a credential proves, unless it is unknown, revoked or expired.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    async fn find(
        &self,
        hash: &CredentialHash,
        now: Timestamp,
    ) -> Result<Option<LoggedIn>, StoreError>;

    /// Ends a credential, and tells every process.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    async fn revoke(&self, hash: &CredentialHash, now: Timestamp) -> Result<(), StoreError>;

    /// Removes up to `limit` credentials that nobody can use any more, and says how many.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    async fn sweep(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError>;
}

/// Credentials as requests ask for them: remembered, and read through from the store.
pub struct Credentials {
    store: Arc<dyn CredentialStore>,
    remembered: ReadThrough<CredentialHash, Arc<LoggedIn>>,
}

impl Credentials {
    /// In front of `store`.
    pub fn new(store: Arc<dyn CredentialStore>) -> Self {
        Self {
            store,
            remembered: ReadThrough::new(REMEMBERED, TRUSTED),
        }
    }

    /// What `credential` proves to `application` now.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    pub async fn check(
        &self,
        credential: &Credential,
        application: AppId,
        now: Timestamp,
    ) -> Result<Option<Arc<LoggedIn>>, StoreError> {
        let hash = credential.hash();
        let read = async { Ok(self.store.find(&hash, now).await?.map(Arc::new)) };
        let found = self.remembered.find(hash, read).await?;
        Ok(found.filter(|found| found.application == application && found.expires_at > now))
    }

    /// Stores a credential; the same one again changes nothing.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    pub async fn keep(&self, credential: NewCredential) -> Result<(), StoreError> {
        self.store.keep(credential).await
    }

    /// Ends a credential: here at once, in other processes by the change feed. CONTRACT 8: within 1 s.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    pub async fn revoke(&self, credential: &Credential, now: Timestamp) -> Result<(), StoreError> {
        self.store.revoke(&credential.hash(), now).await?;
        self.remembered.forget(&credential.hash());
        Ok(())
    }

    /// Another process says that this one changed.
    pub fn forget(&self, hash: &CredentialHash) {
        self.remembered.forget(hash);
    }

    /// Changes may have been missed.
    pub fn forget_all(&self) {
        self.remembered.forget_all();
    }

    /// As [`CredentialStore::sweep`].
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    pub async fn sweep(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.store.sweep(now, limit).await
    }
}
