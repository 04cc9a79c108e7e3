//! Conversion between applications and rows of the table `applications`, for both databases.

use signpost_kit::clock::{StoredTime, Timestamp};
use signpost_protocol::{
    app::{AppId, AppIdent},
    sign::{AppKey, SignProfile},
};
use signpost_store::StoredRow;

use super::{
    App, AppState, PreviousKey,
    seal::{SealError, Sealer, Slot},
    store::{AppStoreError, AppSummary, AppUpdate, Edit, NewApp, UnusableDefault},
};

use crate::config::OwnRate;

/// The columns of an [`AppRow`].
pub(super) const APP_COLUMNS: &str = "id, state, key_sealed, previous_sealed, previous_until, sign_profile, default_version, \
                          rate_per_second, rate_burst";

/// The columns of [`summary_from_row`].
pub(super) const SUMMARY_COLUMNS: &str = "ident, name, state, created_at, sign_profile, return_to_origins, default_version, \
                                  previous_until, rate_per_second, rate_burst";

/// The one character that Postgres' texts cannot hold.
const NUL: char = '\0';

/// Converts applications to rows and back; seals and opens their keys.
#[derive(Debug)]
pub(super) struct AppCodec {
    sealer: Sealer,
}

/// A new application's row. Its key is sealed.
pub(super) struct NewAppRow {
    pub(super) ident: AppIdent,
    pub(super) name: String,
    pub(super) created_at: i64,
    pub(super) key_sealed: Vec<u8>,
    pub(super) sign_profile: Option<String>,
    pub(super) return_to_origins: String,
    pub(super) default_version: Option<String>,
}

/// Changes of a row. `None` and [`Edit::Keep`] change nothing.
pub(super) struct AppRowUpdate {
    pub(super) name: Option<String>,
    pub(super) return_to_origins: Option<String>,
    pub(super) sign_profile: Edit<String>,
    pub(super) default_version: Edit<String>,
    /// Requests per second and at once.
    pub(super) rate_limit: Edit<[i64; 2]>,
}

/// A row as read for a request. Its keys are sealed.
pub(super) struct AppRow {
    pub(super) id: i64,
    pub(super) state: String,
    pub(super) key_sealed: Vec<u8>,
    pub(super) previous_sealed: Option<Vec<u8>>,
    pub(super) previous_until: Option<i64>,
    pub(super) sign_profile: Option<String>,
    pub(super) default_version: Option<String>,
    pub(super) rate_limit: Option<(i64, i64)>,
}

impl AppCodec {
    pub(super) const fn new(sealer: Sealer) -> Self {
        Self { sealer }
    }

    pub(super) fn new_row(&self, app: NewApp) -> Result<NewAppRow, AppStoreError> {
        reject_nul(&app.name)?;
        Ok(NewAppRow {
            ident: app.ident,
            name: app.name,
            created_at: app.created_at.as_millis(),
            key_sealed: self.seal(&app.key, app.ident, Slot::Current)?,
            sign_profile: app.profile.as_ref().map(profile_json),
            return_to_origins: origins_json(&app.return_to_origins),
            default_version: app.default_version.map(|version| version.to_string()),
        })
    }

    pub(super) fn seal(
        &self,
        key: &AppKey,
        ident: AppIdent,
        slot: Slot,
    ) -> Result<Vec<u8>, SealError> {
        self.sealer.seal(key, ident, slot)
    }

    /// Reseals a row's current key as the previous one, whose overlap ends at `until`.
    pub(super) fn seal_as_previous(
        &self,
        key_sealed: &[u8],
        ident: AppIdent,
        until: i64,
    ) -> Result<Vec<u8>, SealError> {
        let key = self.sealer.open(key_sealed, ident, Slot::Current)?;
        self.seal(&key, ident, previous_slot(until))
    }

    pub(super) fn open(&self, ident: AppIdent, record: AppRow) -> Result<App, AppStoreError> {
        let profile = record.sign_profile.as_deref().map(serde_json::from_str);
        let profile = profile
            .transpose()
            .map_err(|_| AppStoreError::Malformed("sign_profile"))?;
        let previous_key = match (record.previous_sealed, record.previous_until) {
            (Some(sealed), Some(until)) => Some(PreviousKey {
                key: self.sealer.open(&sealed, ident, previous_slot(until))?,
                until: Timestamp::from_millis(until).into(),
            }),
            _ => None,
        };
        let state = if record.state == AppState::Active.as_str() {
            AppState::Active
        } else {
            AppState::Disabled
        };
        let default_version = record.default_version.map(|name| name.parse());
        let rate_limit = record.rate_limit.map(|(per_second, burst)| {
            let own = OwnRate::from_numbers(per_second, burst);
            own.ok_or(AppStoreError::Malformed("rate_per_second"))
        });
        Ok(App {
            id: AppId::new(record.id),
            ident: Some(ident),
            state,
            key: self.sealer.open(&record.key_sealed, ident, Slot::Current)?,
            previous_key,
            profile,
            default_version: default_version
                .transpose()
                .map_err(|_| AppStoreError::Malformed("default_version"))?,
            rate_limit: rate_limit.transpose()?,
        })
    }
}

impl AppRowUpdate {
    pub(super) fn new(update: AppUpdate) -> Result<Self, AppStoreError> {
        update.name.as_deref().map(reject_nul).transpose()?;
        let origins = update.return_to_origins;
        Ok(Self {
            name: update.name,
            return_to_origins: origins.map(|origins| origins_json(&origins)),
            sign_profile: update.profile.map(|profile| profile_json(&profile)),
            default_version: update.default_version.map(|version| version.to_string()),
            rate_limit: update.rate_limit.map(OwnRate::numbers),
        })
    }

    /// The new columns of the rate limit.
    pub(super) fn rate_columns(&self) -> [Option<i64>; 2] {
        let numbers = self.rate_limit.value();
        [0, 1].map(|index| numbers.map(|numbers| numbers[index]))
    }
}

fn reject_nul(name: &str) -> Result<(), AppStoreError> {
    if name.contains(NUL) {
        Err(AppStoreError::Name)
    } else {
        Ok(())
    }
}

fn profile_json(profile: &SignProfile) -> String {
    serde_json::to_string(profile).expect("words and a list of words always serialize")
}

fn origins_json(origins: &[String]) -> String {
    serde_json::to_string(origins).expect("a list of texts always serializes")
}

/// The slot of a previous key, by the stored end of its overlap.
pub(super) fn previous_slot(until: i64) -> Slot {
    Slot::Previous {
        until: Timestamp::from_millis(until).into(),
    }
}

/// Reads [`APP_COLUMNS`].
pub(super) fn app_from_row<R: StoredRow>(row: &R) -> Result<AppRow, R::Error> {
    Ok(AppRow {
        id: row.number("id")?,
        state: row.text("state")?.to_owned(),
        key_sealed: row.bytes("key_sealed")?.to_owned(),
        previous_sealed: row.optional_bytes("previous_sealed")?.map(<[u8]>::to_owned),
        previous_until: row.optional_number("previous_until")?,
        sign_profile: row.optional_text("sign_profile")?.map(str::to_owned),
        default_version: row.optional_text("default_version")?.map(str::to_owned),
        rate_limit: rate_from_row(row)?,
    })
}

/// Reads the columns of a rate limit; `None` if one is null.
fn rate_from_row<R: StoredRow>(row: &R) -> Result<Option<(i64, i64)>, R::Error> {
    let per_second = row.optional_number("rate_per_second")?;
    Ok(per_second.zip(row.optional_number("rate_burst")?))
}

/// Reads [`SUMMARY_COLUMNS`]. Malformed values are omitted, so that an operator sees the rest.
pub(super) fn summary_from_row<R: StoredRow>(row: &R) -> Result<AppSummary, R::Error> {
    let profile = row.optional_text("sign_profile")?;
    let origins = row.text("return_to_origins")?;
    Ok(AppSummary {
        ident: row.text("ident")?.to_owned(),
        name: row.text("name")?.to_owned(),
        state: row.text("state")?.to_owned(),
        created_at: row.time("created_at")?,
        sign_profile: profile.and_then(|json| serde_json::from_str(json).ok()),
        return_to: serde_json::from_str(origins).unwrap_or_default(),
        default_version: row.optional_text("default_version")?.map(str::to_owned),
        rate_limit: rate_from_row(row)?
            .and_then(|(per_second, burst)| OwnRate::from_numbers(per_second, burst)),
        previous_key_until: row.optional_time("previous_until")?,
    })
}

/// Reads `ident` and `key_sealed` of the newest application; `None` if the ident is malformed.
pub(super) fn newest_key_from_row<R: StoredRow>(
    row: &R,
) -> Result<Option<(AppIdent, Vec<u8>)>, R::Error> {
    let key = row.bytes("key_sealed")?.to_owned();
    Ok(row.text("ident")?.parse().ok().map(|ident| (ident, key)))
}

/// Reads `ident` and `default_version`.
pub(super) fn unknown_default_from_row<R: StoredRow>(row: &R) -> Result<UnusableDefault, R::Error> {
    Ok(UnusableDefault {
        ident: row.text("ident")?.to_owned(),
        version: row.text("default_version")?.to_owned(),
    })
}

/// Reads `previous_until` and `key_sealed`, for a rotation.
pub(super) fn rotation_state_from_row<R: StoredRow>(
    row: &R,
) -> Result<(Option<i64>, Vec<u8>), R::Error> {
    let current = row.bytes("key_sealed")?.to_owned();
    Ok((row.optional_number("previous_until")?, current))
}
