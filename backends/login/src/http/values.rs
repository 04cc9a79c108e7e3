//! Texts that a version keeps for accounts, without tables of its own.

use std::time::Duration;

use http::StatusCode;
use signpost_kit::clock::Timestamp;
use signpost_protocol::app::AppId;
use signpost_store::{FromRow, Row, Store, StoreError, values};

use crate::{
    error::{
        LoginError, ParamRule,
        problem::{OwnProblem, Text, Texts},
    },
    records::{accounts::AccountId, own::Sweep},
};

/// Longest key, in bytes.
const MAX_KEY_BYTES: usize = 128;

/// A version's texts of one kind, for example notes: each account has up to [`Self::max_values`] of them, by their keys,
/// and each application sees those that were stored through it.
///
/// ```
/// use login::values::Collection;
///
/// static NOTES: Collection = Collection::new("v3.notes").max_values(500).max_bytes(8192);
/// ```
#[derive(Debug)]
pub struct Collection {
    name: &'static str,
    max_values: u32,
    max_bytes: usize,
    keep: Option<Duration>,
    /// The parameters that problems name.
    parameters: [&'static str; 2],
}

impl Collection {
    /// A collection of up to 100 values of 4096 bytes for each account and application, which are kept for ever. Its name is
    /// that of the version, a dot, and a word: collections with the same name are the same.
    ///
    /// # Panics
    ///
    /// The name is not 3 to 64 of `[a-z0-9._-]` with a dot. In a constant, that does not compile.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        assert!(
            is_name(name.as_bytes()),
            "a collection's name is the version, a dot, and a word: v3.notes"
        );
        Self {
            name,
            max_values: 100,
            max_bytes: 4096,
            keep: None,
            parameters: ["key", "value"],
        }
    }

    /// The largest number of values of an account: another one is 409 `values_full`. Concurrent requests can exceed it by
    /// their number.
    #[must_use]
    pub const fn max_values(self, max_values: u32) -> Self {
        Self { max_values, ..self }
    }

    /// The longest value in bytes of UTF-8.
    #[must_use]
    pub const fn max_bytes(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }

    /// How long a value is kept after its last change.
    #[must_use]
    pub const fn keep(self, keep: Duration) -> Self {
        Self {
            keep: Some(keep),
            ..self
        }
    }

    /// The request's parameters that have key and value: the problem `param_invalid` names them. Default: `key` and
    /// `value`.
    #[must_use]
    pub const fn parameters(self, key: &'static str, value: &'static str) -> Self {
        Self {
            parameters: [key, value],
            ..self
        }
    }

    fn key(&self, key: &str) -> Result<Vec<u8>, LoginError> {
        if (1..=MAX_KEY_BYTES).contains(&key.len()) && !key.contains('\0') {
            Ok(key.as_bytes().to_vec())
        } else {
            Err(self.invalid(0, MAX_KEY_BYTES))
        }
    }

    fn value<'v>(&self, value: &'v str) -> Result<&'v str, LoginError> {
        // Postgres cannot store U+0000 in a text.
        if value.len() <= self.max_bytes && !value.contains('\0') {
            Ok(value)
        } else {
            Err(self.invalid(1, self.max_bytes))
        }
    }

    fn invalid(&self, parameter: usize, max_bytes: usize) -> LoginError {
        LoginError::ParamInvalid {
            name: self.parameters[parameter],
            rule: ParamRule::MaxBytes(max_bytes),
        }
    }
}

const fn is_name(name: &[u8]) -> bool {
    let (mut index, mut dots) = (0, 0);
    while index < name.len() {
        match name[index] {
            b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => {}
            b'.' => dots += 1,
            _ => return false,
        }
        index += 1;
    }
    dots > 0 && index >= 3 && index <= 64
}

/// The values of one account, seen by one application. All methods fail if the store is unavailable.
#[derive(Debug)]
pub struct Values<'a> {
    pub(crate) collection: &'a Collection,
    pub(crate) store: &'a Store,
    pub(crate) account: AccountId,
    pub(crate) application: AppId,
    pub(crate) now: Timestamp,
}

/// A stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredValue {
    /// Its key: 1 to 128 bytes.
    pub key: String,
    /// The value.
    pub value: String,
    /// The time of its last change.
    pub updated_at: Timestamp,
}

impl FromRow for StoredValue {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        let key = String::from_utf8(row.get("key")?);
        Ok(Self {
            key: key.map_err(|_| StoreError::Malformed("key"))?,
            value: row.get("value")?,
            updated_at: row.get("updated_at")?,
        })
    }
}

/// Values in the order of their keys' bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuePage {
    /// The values.
    pub values: Vec<StoredValue>,
    /// `after` of the next page; `None` on the last one.
    pub next: Option<String>,
}

impl ValuePage {
    /// The largest number of values of a page.
    pub const MAX_VALUES: u64 = 100;
}

/// The rows of an account that have not expired. Parameters: account, application, collection, the time.
const OWN: &str = "account_id = $1 AND application_id = $2 AND collection = $3 \
                   AND (expires_at IS NULL OR expires_at > $4)";

impl Values<'_> {
    /// Stores a value, also in place of the one that has this key.
    ///
    /// # Errors
    ///
    /// `param_invalid`: key or value is too long, or has U+0000; `values_full`; `store_unavailable`, as all others.
    pub async fn put(&self, key: &str, value: &str) -> Result<(), LoginError> {
        let (key, value) = (self.collection.key(key)?, self.collection.value(value)?);
        let put = format!(
            "INSERT INTO account_values \
                 (account_id, application_id, collection, updated_at, key, value, expires_at) \
             SELECT $1, $2, $3, $4, $5, $6, $7 \
             WHERE (SELECT count(*) FROM account_values WHERE {OWN} AND key <> $5) < $8 \
             ON CONFLICT (account_id, application_id, collection, key) DO UPDATE SET \
                 updated_at = excluded.updated_at, value = excluded.value, expires_at = excluded.expires_at"
        );
        let expires_at = self.collection.keep.map(|keep| self.now.plus(keep));
        let mut values = self.values();
        values.extend(values![
            key,
            value,
            expires_at,
            i64::from(self.collection.max_values)
        ]);
        match self.store.execute(&put, values).await? {
            0 => Err(LoginError::from(&VALUES_FULL)),
            _ => Ok(()),
        }
    }

    /// The value with this key.
    ///
    /// # Errors
    ///
    /// `param_invalid`: the key is too long, or has U+0000.
    pub async fn get(&self, key: &str) -> Result<Option<StoredValue>, LoginError> {
        let get =
            format!("SELECT key, value, updated_at FROM account_values WHERE {OWN} AND key = $5");
        let mut values = self.values();
        values.extend(values![self.collection.key(key)?]);
        Ok(self.store.row(&get, values).await?)
    }

    /// Deletes the value with this key; whether there was one.
    ///
    /// # Errors
    ///
    /// As [`Self::get`].
    pub async fn remove(&self, key: &str) -> Result<bool, LoginError> {
        let remove = format!("DELETE FROM account_values WHERE {OWN} AND key = $5");
        let mut values = self.values();
        values.extend(values![self.collection.key(key)?]);
        Ok(self.store.execute(&remove, values).await? > 0)
    }

    /// The values behind the key `after`, or from the first one: up to `limit`, which is at most
    /// [`ValuePage::MAX_VALUES`].
    ///
    /// # Errors
    ///
    /// As [`Self::get`].
    pub async fn page(&self, after: Option<&str>, limit: u64) -> Result<ValuePage, LoginError> {
        let after = after.map(|after| self.collection.key(after)).transpose()?;
        let limit = usize::try_from(limit.clamp(1, ValuePage::MAX_VALUES)).expect("at most 100");
        // One more than asked for shows whether there is a next page.
        let page = format!(
            "SELECT key, value, updated_at FROM account_values WHERE {OWN} AND key > $5 ORDER BY key LIMIT {}",
            limit + 1
        );
        let mut values = self.values();
        values.extend(values![after.unwrap_or_default()]);
        let mut values: Vec<StoredValue> = self.store.rows(&page, values).await?;
        let has_more = values.len() > limit;
        values.truncate(limit);
        let last = values.last().filter(|_| has_more);
        Ok(ValuePage {
            next: last.map(|last| last.key.clone()),
            values,
        })
    }

    /// The parameters of [`OWN`].
    fn values(&self) -> Vec<signpost_store::Value> {
        values![
            self.account.get(),
            self.application.get(),
            self.collection.name,
            self.now
        ]
    }
}

/// The values that have expired.
pub(crate) const EXPIRED: Sweep = Sweep {
    table: "account_values",
    key: "account_id, application_id, collection, key",
    expires_at: "expires_at",
};

static VALUES_FULL: OwnProblem = OwnProblem::new(
    "values_full",
    StatusCode::CONFLICT,
    Texts {
        en: Text {
            title: "Nothing more can be stored",
            detail: "This user has as many entries as are allowed. Remove one first.",
        },
        zh_cn: Text {
            title: "无法再存储",
            detail: "该用户的条目数已达上限。请先删除一个条目。",
        },
        zh_tw: Text {
            title: "無法再儲存",
            detail: "該使用者的項目數已達上限。請先刪除一個項目。",
        },
        ja: Text {
            title: "これ以上保存できません",
            detail: "このユーザーの項目数は上限に達しています。先に項目を一つ削除してください。",
        },
        ko: Text {
            title: "더 저장할 수 없습니다",
            detail: "이 사용자의 항목 수가 한도에 도달했습니다. 먼저 항목을 하나 삭제하세요.",
        },
    },
);

#[cfg(test)]
mod both_stores;
