//! The audit: who changed what. [`Changed`](crate::Changed) carries it, so that it is written together with its change.

use signpost_protocol::label_enum;

use crate::{Batch, Timestamp, value::GIVEN, values};

/// Who changes something, from where, and why. A command takes the first two from the system.
#[derive(Clone, Debug)]
pub struct Author {
    /// A user of the system, or the name of a token.
    pub actor: String,
    /// From where: the kind of access, and the host.
    pub origin: String,
    /// Why, in the actor's words.
    pub reason: Option<String>,
}

label_enum! {
    /// What is done to a subject.
    pub enum Action {
        /// An application is created.
        CreateApp = "app.create",
        /// An application is imported, with its ident and key.
        ImportApp = "app.import",
        /// An application's settings are changed.
        UpdateApp = "app.update",
        /// An application's key is replaced.
        RotateApp = "app.rotate",
        /// The key before the last rotation is no longer valid.
        EndOverlap = "app.end-overlap",
        /// An application's requests are accepted again.
        EnableApp = "app.enable",
        /// An application's requests are rejected.
        DisableApp = "app.disable",
        /// An application is deleted.
        DeleteApp = "app.delete",
        /// All logins of an application begin to be ended. Its row is written before the first one ends.
        LogoutApp = "app.logout",
        /// All logins of an account begin to be ended. Its row is written before the first one ends.
        LogoutAccount = "account.logout",
        /// A request is signed with an application's key, to show a right signature.
        SignRequest = "app.sign",
        /// A token of the management API is created.
        CreateToken = "token.create",
        /// A token is no longer valid.
        RevokeToken = "token.revoke",
        /// The applications' keys are sealed under another master key.
        RotateMasterKey = "master-key.rotate",
        /// A gateway reloads its configuration.
        ReloadConfig = "config.reload",
        /// An address of a backend gets no new requests for a while.
        DrainBackend = "backend.drain",
        /// It gets requests again.
        UndrainBackend = "backend.undrain",
    }
}

/// What the audit says of one write: an author's action, with one row for each subject.
#[derive(Debug)]
pub struct Audit {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub author: Author,
    /// What.
    pub action: Action,
    /// The changed subjects, each with its revision and changes.
    pub entries: Vec<Entry>,
}

/// A subject of an action.
#[derive(Debug)]
pub struct Entry {
    /// Its name: an application's ident, an account's `provider/username`, a token's name, a backend's address,
    /// `application` (the only one), `configuration`, or `master-key`.
    pub subject: String,
    /// Its revision, by the change; 0 if it has none.
    pub revision: i64,
    /// JSON: `[old, new]` by name; `"changed"` in place of a secret.
    pub changes: String,
}

impl Audit {
    /// An action that has one subject.
    #[must_use]
    pub fn of_one(at: Timestamp, author: Author, action: Action, entry: Entry) -> Self {
        let entries = vec![entry];
        Self {
            at,
            author,
            action,
            entries,
        }
    }

    /// Logs it, once it is written: one line, also for many subjects.
    pub(crate) fn log_line(&self) -> impl FnOnce() + Send + use<> {
        let (author, action, number) = (
            self.author.clone(),
            self.action.as_str(),
            self.entries.len(),
        );
        let subject = self.entries.first().map(|entry| entry.subject.clone());
        // Called once the rows are committed, when the batch has consumed the audit.
        move || {
            let subject = subject.as_deref().unwrap_or_default();
            let Author {
                actor,
                origin,
                reason,
            } = author;
            tracing::info!(target: "audit", actor, origin, reason, subject, number, "{action}");
        }
    }

    /// The rows of the table `audit`, one per entry.
    pub(crate) fn into_batch(self) -> Batch {
        const COLUMNS: &str = "at, actor, origin, reason, action, subject, revision, changes";
        let Author {
            actor,
            origin,
            reason,
        } = self.author;
        let (at, action) = (self.at, self.action.as_str());
        let row = |entry: Entry| {
            values![
                at,
                actor.as_str(),
                origin.as_str(),
                reason.as_deref(),
                action,
                entry.subject,
                entry.revision,
                entry.changes,
            ]
        };
        Batch {
            sql: format!("INSERT INTO audit ({COLUMNS}) SELECT {COLUMNS} FROM {GIVEN}"),
            columns: "at bigint, actor text, origin text, reason text, action text, subject text, revision bigint, \
                      changes text",
            rows: self.entries.into_iter().map(row).collect(),
        }
    }
}
