//! An application as a store keeps it, whichever store: what both dialects write and read.

use gateway_protocol::{
    app::{AppId, AppIdent},
    sign::{AppKey, SignProfile},
};
use signpost_kit::clock::{StoredTime, Timestamp};
use signpost_store::StoredRow;

use super::{
    App, AppState, PreviousKey,
    reseal::StoredKeys,
    seal::{SealError, Sealer, Slot},
    store::{AppStoreError, AppSummary, AppUpdate, Edit, NewApp, UnknownDefault},
};

/// The columns that a request needs: those of [`Record`].
pub(super) const RECORD: &str =
    "id, state, key_sealed, previous_sealed, previous_until, sign_profile, default_version";

/// The columns that an operator sees: those of [`summary_from_row`].
pub(super) const SUMMARY: &str = "ident, name, state, created_at, sign_profile, return_to_origins, default_version, \
                                  previous_until";

/// The columns that are needed to seal keys anew.
pub(super) const STORED_KEYS: &str = "id, ident, key_sealed, previous_sealed, previous_until";

/// The one letter that not every store's texts can hold.
const NUL: char = '\0';

/// Makes records of applications, and applications of records.
#[derive(Debug)]
pub(super) struct Records {
    sealer: Sealer,
}

/// An application that is to be written. Its keys are sealed.
pub(super) struct NewRecord {
    pub(super) ident: AppIdent,
    pub(super) name: String,
    pub(super) created_at: i64,
    pub(super) key_sealed: Vec<u8>,
    pub(super) sign_profile: Option<String>,
    pub(super) return_to_origins: String,
    pub(super) default_version: Option<String>,
}

/// What is to be changed of an application; `None` stays, and so do [`Edit`]s that say so.
pub(super) struct UpdateRecord {
    pub(super) name: Option<String>,
    pub(super) return_to_origins: Option<String>,
    pub(super) sign_profile: Edit<String>,
    pub(super) default_version: Edit<String>,
}

/// An application as it was read. Its keys are sealed.
pub(super) struct Record {
    pub(super) id: i64,
    pub(super) state: String,
    pub(super) key_sealed: Vec<u8>,
    pub(super) previous_sealed: Option<Vec<u8>>,
    pub(super) previous_until: Option<i64>,
    pub(super) sign_profile: Option<String>,
    pub(super) default_version: Option<String>,
}

impl Records {
    pub(super) const fn new(sealer: Sealer) -> Self {
        Self { sealer }
    }

    pub(super) fn new_record(&self, app: NewApp) -> Result<NewRecord, AppStoreError> {
        refuse_nul(&app.name)?;
        Ok(NewRecord {
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

    /// The current key of a record, sealed as the previous one for an overlap that lasts until then.
    pub(super) fn seal_as_previous(
        &self,
        key_sealed: &[u8],
        ident: AppIdent,
        until: i64,
    ) -> Result<Vec<u8>, SealError> {
        let key = self.sealer.open(key_sealed, ident, Slot::Current)?;
        self.seal(&key, ident, previous(until))
    }

    /// What seals and opens the records' keys.
    pub(super) const fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    pub(super) fn open(&self, ident: AppIdent, record: Record) -> Result<App, AppStoreError> {
        let profile = record.sign_profile.as_deref().map(serde_json::from_str);
        let profile = profile
            .transpose()
            .map_err(|_| AppStoreError::Malformed("sign_profile"))?;
        let previous_key = match (record.previous_sealed, record.previous_until) {
            (Some(sealed), Some(until)) => Some(PreviousKey {
                key: self.sealer.open(&sealed, ident, previous(until))?,
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
        })
    }
}

impl UpdateRecord {
    pub(super) fn of(update: AppUpdate) -> Result<Self, AppStoreError> {
        update.name.as_deref().map(refuse_nul).transpose()?;
        let origins = update.return_to_origins;
        Ok(Self {
            name: update.name,
            return_to_origins: origins.map(|origins| origins_json(&origins)),
            sign_profile: update.profile.map(|profile| profile_json(&profile)),
            default_version: update.default_version.map(|version| version.to_string()),
        })
    }
}

fn refuse_nul(name: &str) -> Result<(), AppStoreError> {
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

/// The slot of a key before a rotation, by the end of its overlap as it is stored.
pub(super) fn previous(until: i64) -> Slot {
    Slot::Previous {
        until: Timestamp::from_millis(until).into(),
    }
}

/// Reads the columns of [`RECORD`].
pub(super) fn record_from_row<R: StoredRow>(row: &R) -> Result<Record, R::Error> {
    Ok(Record {
        id: row.number("id")?,
        state: row.text("state")?.to_owned(),
        key_sealed: row.bytes("key_sealed")?.to_owned(),
        previous_sealed: row.optional_bytes("previous_sealed")?.map(<[u8]>::to_owned),
        previous_until: row.optional_number("previous_until")?,
        sign_profile: row.optional_text("sign_profile")?.map(str::to_owned),
        default_version: row.optional_text("default_version")?.map(str::to_owned),
    })
}

/// Reads the columns of [`SUMMARY`]. What is malformed is left out: an operator sees the rest.
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
        previous_key_until: row.optional_time("previous_until")?,
    })
}

/// Reads the columns of [`STORED_KEYS`].
pub(super) fn stored_keys_from_row<R: StoredRow>(row: &R) -> Result<StoredKeys, R::Error> {
    Ok(StoredKeys {
        id: row.number("id")?,
        ident: row.text("ident")?.to_owned(),
        current: row.bytes("key_sealed")?.to_owned(),
        previous: row.optional_bytes("previous_sealed")?.map(<[u8]>::to_owned),
        previous_until: row.optional_number("previous_until")?,
    })
}

/// Reads `ident` and `key_sealed` of the newest application; nothing if nobody can have such an ident.
pub(super) fn newest_from_row<R: StoredRow>(
    row: &R,
) -> Result<Option<(AppIdent, Vec<u8>)>, R::Error> {
    let key = row.bytes("key_sealed")?.to_owned();
    Ok(row.text("ident")?.parse().ok().map(|ident| (ident, key)))
}

/// Reads `ident` and `default_version`.
pub(super) fn unknown_default_from_row<R: StoredRow>(row: &R) -> Result<UnknownDefault, R::Error> {
    Ok(UnknownDefault {
        ident: row.text("ident")?.to_owned(),
        version: row.text("default_version")?.to_owned(),
    })
}

/// Reads `previous_until` and `key_sealed`, for a rotation.
pub(super) fn rotating_from_row<R: StoredRow>(row: &R) -> Result<(Option<i64>, Vec<u8>), R::Error> {
    let current = row.bytes("key_sealed")?.to_owned();
    Ok((row.optional_number("previous_until")?, current))
}
