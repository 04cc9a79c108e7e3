//! The interface of a store of applications.

use async_trait::async_trait;
use signpost_protocol::app::AppIdent;

use super::{App, seal::SealError};

/// Where requests find their applications.
#[async_trait]
pub trait AppStore: Send + Sync {
    /// Finds an application, and opens its keys.
    ///
    /// # Errors
    ///
    /// The store is unavailable, the master key does not open the keys, or the record is malformed.
    async fn find(&self, ident: AppIdent) -> Result<Option<App>, AppStoreError>;
}

/// Why a store's operation failed.
#[derive(Debug, thiserror::Error)]
pub enum AppStoreError {
    /// The store is unavailable or overloaded.
    #[error("the store is unavailable")]
    Store(#[from] signpost_store::StoreError),
    /// A key cannot be opened: the master key is wrong, or the record was changed.
    #[error("an application's key cannot be decrypted")]
    Seal(#[from] SealError),
    /// No application has that ident.
    #[error("no application has the ident {0}")]
    Unknown(AppIdent),
    /// A record holds a value that no release writes.
    #[error("an application's record is malformed: {0}")]
    Malformed(&'static str),
}
