//! Seals all keys under a new master key, while gateways run that know it and the one before.
//! `conf/guides/applications.md`.
//!
//! A run can be interrupted at any step, and repeated: what is under the new master key is not read again. It begins with
//! the newest application, so the oldest one shows whether it has come to its end. The audit has one row of it, written
//! with the first applications.

use std::ops::ControlFlow;

use serde_json::json;
use signpost_kit::clock::Timestamp;
use signpost_proxy::{MasterKeyId, SealError, StoredApps};
use signpost_store::{
    Store, StoreError,
    tables::{
        applications,
        audit::{self, Action, Audit, Author, Entry, Filter},
        sealed_keys::{self, ResealedKeys, SealedKeys},
    },
};

/// Applications that one statement seals anew: some milliseconds, in which SQLite takes no other writes.
const PAGE: usize = 1000;

/// Limit of a page's attempts. Postgres may end a statement that locks rows in another order than a concurrent one.
const MAX_ATTEMPTS: usize = 3;

/// Limit of the passes over all applications: what changes during one is left to the next.
const MAX_PASSES: usize = 10;

/// Limit of the applications that are named because their keys cannot be opened.
const MAX_NAMED: usize = 10;

/// The subject of the audit's row.
const SUBJECT: &str = "master-key";

/// How far the rotation of the master key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The number of applications.
    pub applications: u64,
    /// Applications with a key under another master key than the new one.
    pub remaining: u64,
}

/// Applications whose keys neither of the master keys opens.
#[derive(Debug, Default)]
pub struct Unreadable {
    /// Their number.
    pub count: u64,
    /// Up to [`MAX_NAMED`] of them, and why.
    pub named: Vec<(String, SealError)>,
}

/// What a pass has done.
#[derive(Default)]
struct Pass {
    /// Applications whose keys were read, and can be opened.
    opened: u64,
    unreadable: Unreadable,
}

/// Why the master key cannot be rotated.
#[derive(Debug, thiserror::Error)]
pub enum ResealError {
    /// There is one master key.
    #[error(
        "applications.previous_master_key is missing. First set the new key as master_key and the one before as \
         previous_master_key at every gateway, and upgrade each; then run this command with such a configuration"
    )]
    OneMasterKey,
    /// The new master key is the one before.
    #[error(
        "applications.previous_master_key is the same key as master_key: set master_key to the new one"
    )]
    SameMasterKey,
    /// The store failed.
    #[error("the store is unavailable; run the command again, it goes on where it was")]
    Store(#[from] StoreError),
    /// The system has no random bytes.
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// The rotation of the master key.
pub struct MasterKeyRotation(pub StoredApps);

impl MasterKeyRotation {
    /// How far it is.
    pub async fn reseal_progress(&self) -> Result<Progress, ResealError> {
        let master_key = self.master_key().bytes();
        Ok(Progress {
            applications: applications::count(self.0.database()).await?,
            remaining: sealed_keys::count_by_another(self.0.database(), master_key).await?,
        })
    }

    /// The id of the master key that seals.
    pub fn master_key(&self) -> MasterKeyId {
        self.0.sealer().current()
    }

    /// The ids of the master keys that are to be exchanged: of the new one and of the one before.
    ///
    /// # Errors
    ///
    /// There is one master key only.
    pub fn exchanged_master_keys(&self) -> Result<(MasterKeyId, MasterKeyId), ResealError> {
        let (new, before) = (self.master_key(), self.0.sealer().previous());
        let before = before.ok_or(ResealError::OneMasterKey)?;
        if new == before {
            return Err(ResealError::SameMasterKey);
        }
        Ok((new, before))
    }

    /// Seals all keys under the new master key, and tells `on_progress` how many applications have theirs there since the
    /// last call. Concurrent changes of applications are never overwritten. Returns what cannot be opened.
    ///
    /// # Errors
    ///
    /// There is one master key only, or the store is unavailable.
    pub async fn reseal_all(
        &self,
        author: Author,
        at: Timestamp,
        mut on_progress: impl FnMut(usize),
    ) -> Result<Unreadable, ResealError> {
        let (new, before) = self.exchanged_master_keys()?;
        let rotation = Rotation {
            author,
            at,
            changes: json!({ "master_key": [before.to_string(), new.to_string()] }).to_string(),
        };
        let mut pass = Pass::default();
        for _ in 0..MAX_PASSES {
            pass = self.reseal_pass(&rotation, &mut on_progress).await?;
            // What was opened may have changed before it was replaced: only a pass without any was the last.
            if pass.opened == 0 {
                break;
            }
        }
        Ok(pass.unreadable)
    }

    async fn reseal_pass(
        &self,
        rotation: &Rotation,
        on_progress: &mut impl FnMut(usize),
    ) -> Result<Pass, ResealError> {
        let (mut pass, mut before) = (Pass::default(), i64::MAX);
        while let ControlFlow::Continue((last, resealed)) =
            self.reseal_page(before, &mut pass).await?
        {
            if !resealed.is_empty() {
                pass.opened += u64::try_from(resealed.len()).unwrap_or(u64::MAX);
                on_progress(self.replace(resealed, rotation).await?);
            }
            before = last;
        }
        Ok(pass)
    }

    /// The page of applications before an internal id. Returns the last one of the page, and those that can be opened.
    async fn reseal_page(
        &self,
        before: i64,
        pass: &mut Pass,
    ) -> Result<ControlFlow<(), (i64, Vec<ResealedKeys>)>, ResealError> {
        let master_key = self.master_key().bytes();
        let rows =
            sealed_keys::page_by_another(self.0.database(), master_key, before, PAGE).await?;
        let Some(last) = rows.last().map(|row| row.id) else {
            return Ok(ControlFlow::Break(()));
        };
        let mut resealed = Vec::with_capacity(rows.len());
        for row in rows {
            let ident = row.ident.clone();
            match self.resealed(row) {
                Ok(row) => resealed.push(row),
                // Failures of this process, not of a row: going on would report every application as unreadable.
                Err(error @ (SealError::NoRandomness | SealError::NotSealed)) => Err(error)?,
                Err(error) => pass.unreadable.add(ident, error),
            }
        }
        Ok(ControlFlow::Continue((last, resealed)))
    }

    /// Replaces the keys of a page. What was replaced by an attempt without a response is not replaced again.
    async fn replace(
        &self,
        resealed: Vec<ResealedKeys>,
        rotation: &Rotation,
    ) -> Result<usize, StoreError> {
        let store = self.0.database();
        let is_audited = rotation.is_audited(store).await?;
        let audit = || (!is_audited).then(|| rotation.audit());
        for _ in 1..MAX_ATTEMPTS {
            // A repetition does no harm: it replaces only rows that are still as they were read.
            if let Ok(replaced) = sealed_keys::replace(store, resealed.clone(), audit()).await {
                return Ok(replaced);
            }
        }
        sealed_keys::replace(store, resealed, audit()).await
    }

    fn resealed(&self, row: SealedKeys) -> Result<ResealedKeys, SealError> {
        let ident = row.ident.parse().map_err(|_| SealError::NotOpened)?;
        let previous = row.previous_key.as_deref();
        let (key, previous_key) = self.0.anew(ident, &row.key, previous, row.previous_until)?;
        Ok(ResealedKeys {
            before: row,
            key,
            previous_key,
        })
    }
}

/// What the audit says of the rotation.
struct Rotation {
    author: Author,
    at: Timestamp,
    changes: String,
}

impl Rotation {
    /// Whether an earlier page, or an interrupted run, has written the row.
    async fn is_audited(&self, store: &Store) -> Result<bool, StoreError> {
        let last = Filter {
            subject: Some(SUBJECT.to_owned()),
            action: Some(Action::RotateMasterKey),
            ..Filter::default()
        };
        let last = audit::page(store, last, 1).await?;
        Ok(last.iter().any(|row| row.entry.changes == self.changes))
    }

    fn audit(&self) -> Audit {
        let entry = Entry {
            subject: SUBJECT.to_owned(),
            revision: 1,
            changes: self.changes.clone(),
        };
        Audit::of_one(self.at, self.author.clone(), Action::RotateMasterKey, entry)
    }
}

impl Unreadable {
    fn add(&mut self, ident: String, error: SealError) {
        self.count += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push((ident, error));
        }
    }
}

#[cfg(test)]
mod both_stores;
