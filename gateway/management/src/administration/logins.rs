//! Operators end the logins of an account, or of an application. Every gateway and every login service rejects their
//! credentials within 1 s. `signpost account` and `app logout` and the [API](crate::api) are its callers.

use serde::Serialize;
use serde_json::{Value, json};
use signpost_kit::clock::Timestamp;
use signpost_protocol::app::{AppId, AppIdent};
use signpost_store::{
    Store, StoreError,
    tables::{
        accounts::{self, Username},
        applications,
        audit::{self, Action, Audit, AuditRow, Author, Entry, Filter},
        ended_logins::{self, Whose},
    },
};
use utoipa::ToSchema;

/// The audit's name of the only application.
const ONLY_APPLICATION: &str = "application";

/// Rows of the audit that are looked at; an account that has more was ended often enough.
const MAX_ENDED: usize = 100;

/// What was ended.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct EndedLogins {
    /// Number of logins whose credentials were valid.
    pub ended: usize,
}

/// An account, as an operator names it.
#[derive(Clone, Debug)]
pub struct AccountName {
    /// The provider's name in the configuration of the login service.
    pub provider: String,
    /// The provider's identifier of the user.
    pub username: String,
}

/// Ends the logins of a store.
pub struct Logins {
    store: Store,
}

/// The number counts credentials: outcomes that no client has collected end, too. All functions can be repeated: what
/// has ended stays ended. They fail if the store is unavailable.
impl Logins {
    /// The logins of this store.
    pub const fn new(store: Store) -> Self {
        Self { store }
    }

    /// Ends all logins of an account, or only those to an application.
    ///
    /// # Errors
    ///
    /// The account or the application is unknown.
    pub async fn end_of_account(
        &self,
        name: &AccountName,
        app: Option<AppIdent>,
        author: Author,
        at: Timestamp,
    ) -> Result<EndedLogins, LogoutError> {
        let application = match app {
            Some(ident) => Some(self.application(ident).await?),
            None => None,
        };
        let account = self.account(name).await?;
        let AccountName { provider, username } = name;
        let entry = Entry {
            subject: format!("{provider}/{username}"),
            revision: 0,
            changes: app.map_or_else(|| json!({}), app_only).to_string(),
        };
        let audit = Audit::of_one(at, author, Action::LogoutAccount, entry);
        self.end(Whose::Account(account, application), audit).await
    }

    /// Whether all logins of an account to an application were begun to be ended at or after this time, or after this row of the
    /// audit: the time is by the clock of the computer that has ended them.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub(crate) async fn were_ended(
        &self,
        AccountName { provider, username }: &AccountName,
        app: AppIdent,
        since: Timestamp,
        known: i64,
    ) -> Result<bool, StoreError> {
        for (action, subject) in [
            (Action::LogoutAccount, format!("{provider}/{username}")),
            (Action::LogoutApp, app.to_string()),
        ] {
            let filter = Filter {
                action: Some(action),
                subject: Some(subject),
                ..Filter::default()
            };
            let mut rows = audit::page(&self.store, filter, MAX_ENDED).await?;
            rows.retain(|row| row.at >= since || row.id > known);
            let changes = [json!({}), app_only(app)].map(|changes| changes.to_string());
            let concerns = |row: &AuditRow| changes.contains(&row.entry.changes);
            // Further rows may have been cut off. Then the login counts as ended: the user only has to sign in again.
            if rows.len() == MAX_ENDED || rows.iter().any(concerns) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Ends all logins to an application; to the only one, if there is no ident.
    ///
    /// # Errors
    ///
    /// The application is unknown.
    pub async fn end_of_app(
        &self,
        ident: Option<AppIdent>,
        author: Author,
        at: Timestamp,
    ) -> Result<EndedLogins, LogoutError> {
        let application = match ident {
            Some(ident) => self.application(ident).await?,
            None => AppId::SINGLE,
        };
        let entry = Entry {
            subject: ident.map_or_else(|| ONLY_APPLICATION.to_owned(), |ident| ident.to_string()),
            revision: 0,
            changes: json!({}).to_string(),
        };
        let audit = Audit::of_one(at, author, Action::LogoutApp, entry);
        self.end(Whose::Application(application), audit).await
    }

    /// The row of the audit comes first: there can be more logins than fit into a transaction, and a process that is killed
    /// must leave none that has ended without it. If it was killed, the row may be all that was done.
    async fn end(&self, whose: Whose, audit: Audit) -> Result<EndedLogins, LogoutError> {
        let at = audit.at;
        audit::add(&self.store, audit).await?;
        let ended = ended_logins::end(&self.store, whose, at).await?;
        Ok(EndedLogins { ended })
    }

    async fn account(&self, name: &AccountName) -> Result<accounts::AccountId, LogoutError> {
        let AccountName { provider, username } = name;
        // Neither database has a text with it.
        let username = Username::new(username.clone()).filter(|_| !provider.contains('\0'));
        let username = username.ok_or(LogoutError::UnknownAccount)?;
        let id = accounts::find_id(&self.store, provider, &username).await?;
        id.ok_or(LogoutError::UnknownAccount)
    }

    async fn application(&self, ident: AppIdent) -> Result<AppId, LogoutError> {
        let row = applications::find(&self.store, ident).await?;
        row.map(|row| row.id).ok_or(LogoutError::UnknownApp(ident))
    }
}

fn app_only(ident: AppIdent) -> Value {
    json!({ "app": ident.as_str() })
}

/// Why no logins were ended, or not all.
#[derive(Debug, thiserror::Error)]
pub enum LogoutError {
    /// Nobody with this name has logged in by this provider.
    #[error("no account has this provider and username")]
    UnknownAccount,
    /// No application has that ident.
    #[error("no application has the ident {0}")]
    UnknownApp(AppIdent),
    /// The store failed.
    #[error("the store failed: some logins may have ended; repeat the command")]
    Store(#[from] StoreError),
}

#[cfg(test)]
mod both_stores {
    use std::time::Duration;

    use signpost_store::testing::TestStore;

    use super::*;

    #[tokio::test]
    async fn a_logout_ends_what_began_before_it_whatever_the_clocks_say() {
        let test = TestStore::chosen();
        let store = test.open().await;
        let app: AppIdent = "console".parse().unwrap();
        let (logins, now) = (Logins::new(store.clone()), Timestamp::from_millis(1 << 40));
        let account = AccountName {
            provider: "p".to_owned(),
            username: "u".to_owned(),
        };
        let newest = async || audit::newest_id(&store).await.unwrap();
        // By a clock that is an hour behind.
        for behind in [Duration::from_secs(3600), Duration::ZERO] {
            let known = newest().await;
            let ended = async |known| logins.were_ended(&account, app, now, known).await.unwrap();
            assert!(!ended(known).await);
            let author = Author {
                actor: "tests".to_owned(),
                origin: "tests".to_owned(),
                reason: None,
            };
            let entry = Entry {
                subject: app.to_string(),
                revision: 0,
                changes: "{}".to_owned(),
            };
            let row = Audit::of_one(now.minus(behind), author, Action::LogoutApp, entry);
            audit::add(&store, row).await.unwrap();
            assert!(ended(known).await);
            // A login that begins now.
            assert_eq!(ended(newest().await).await, behind.is_zero());
        }
    }
}
