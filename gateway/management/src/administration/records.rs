//! The rows of applications: how operators' changes write and read them.

use std::time::Duration;

use signpost_kit::{clock::Timestamp, config::origin::Origin};
use signpost_protocol::{
    app::{AppId, AppIdent},
    sign::{AppKey, SignProfile},
};
use signpost_proxy::{AppStoreError, Extension, OwnRate, Slot, previous_slot};
use signpost_store::tables::applications::{self, ApplicationRow, ApplicationSettings};

use super::{
    apps::Administration,
    summary::{AppSummary, NewApp},
};

impl Administration {
    /// Reads an application's record.
    pub(crate) async fn row(&self, ident: AppIdent) -> Result<ApplicationRow, AppStoreError> {
        let row = applications::find(self.store.database(), ident).await?;
        row.ok_or(AppStoreError::Unknown(ident))
    }

    /// The record of a new application.
    pub(crate) fn new_row(&self, app: NewApp) -> Result<ApplicationRow, AppStoreError> {
        Ok(ApplicationRow {
            id: AppId::new(0),
            ident: app.ident.to_string(),
            name: app.name.into(),
            state: app.state.as_str().to_owned(),
            created_at: app.created_at,
            key: self
                .store
                .sealer()
                .seal(&app.key, app.ident, Slot::Current)?,
            previous_key: None,
            previous_until: None,
            revision: 1,
            settings: ApplicationSettings {
                sign_profile: app.profile.as_ref().map(profile_json),
                return_to_origins: origins_json(&app.return_to),
                default_version: app.default_version.map(|version| version.to_string()),
                rate_limit: app.rate_limit.map(OwnRate::numbers),
                extensions: extensions_json(&app.extensions),
            },
        })
    }

    /// The record with a new key; the one before stays valid up to `until`.
    pub(crate) fn rotated(
        &self,
        ident: AppIdent,
        mut row: ApplicationRow,
        new: &AppKey,
        until: Timestamp,
    ) -> Result<ApplicationRow, AppStoreError> {
        // Opened and sealed again, not moved: a sealed key opens in its own slot only, and the end of an overlap is
        // part of the slot. So a change of the database alone cannot make an old key valid again.
        let key = self.store.sealer().open(&row.key, ident, Slot::Current)?;
        row.key = self.store.sealer().seal(new, ident, Slot::Current)?;
        row.previous_key = Some(
            self.store
                .sealer()
                .seal(&key, ident, previous_slot(until))?,
        );
        row.previous_until = Some(until);
        Ok(row)
    }

    /// The record without an overlap from `now` on. The previous key is kept, for hints.
    pub(crate) fn without_overlap(
        &self,
        ident: AppIdent,
        mut row: ApplicationRow,
        now: Timestamp,
    ) -> Result<ApplicationRow, AppStoreError> {
        if let (Some(sealed), Some(until)) = (&row.previous_key, row.previous_until)
            && until >= now
        {
            let key = self
                .store
                .sealer()
                .open(sealed, ident, previous_slot(until))?;
            // The last millisecond of an overlap is inside, so one before `now` ends it.
            let ended = now.minus(Duration::from_millis(1));
            row.previous_key = Some(
                self.store
                    .sealer()
                    .seal(&key, ident, previous_slot(ended))?,
            );
            row.previous_until = Some(ended);
        }
        Ok(row)
    }
}

/// Malformed values are omitted, so that an operator sees the rest.
impl From<ApplicationRow> for AppSummary {
    fn from(row: ApplicationRow) -> Self {
        let settings = row.settings;
        let profile = settings.sign_profile.as_deref();
        Self {
            ident: row.ident,
            name: row.name,
            state: row.state,
            created_at: row.created_at,
            sign_profile: profile.and_then(|json| serde_json::from_str(json).ok()),
            return_to: serde_json::from_str(&settings.return_to_origins).unwrap_or_default(),
            default_version: settings.default_version,
            rate_limit: settings
                .rate_limit
                .and_then(|[per_second, burst]| OwnRate::from_numbers(per_second, burst)),
            extensions: extensions_of(settings.extensions.as_deref()),
            previous_key_until: row.previous_until,
            revision: row.revision,
        }
    }
}

pub(crate) fn profile_json(profile: &SignProfile) -> String {
    serde_json::to_string(profile).expect("words and a list of words always serialize")
}

pub(crate) fn extensions_of(stored: Option<&str>) -> Vec<Extension> {
    let extensions = stored.map(serde_json::from_str);
    extensions.and_then(Result::ok).unwrap_or_default()
}

/// `None` without any.
pub(crate) fn extensions_json(extensions: &[Extension]) -> Option<String> {
    let json = || serde_json::to_string(extensions).expect("a list of texts always serializes");
    (!extensions.is_empty()).then(json)
}

pub(crate) fn origins_json<'o>(origins: impl IntoIterator<Item = &'o Origin>) -> String {
    let origins: Vec<_> = origins.into_iter().map(Origin::to_string).collect();
    serde_json::to_string(&origins).expect("a list of texts always serializes")
}
