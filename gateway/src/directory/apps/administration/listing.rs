//! Shows and lists applications.

use signpost_protocol::app::AppIdent;
use signpost_store::tables::applications::{self, ApplicationRow};

use super::Administration;
use crate::directory::apps::store::{AppStoreError, AppSummary};

/// Maximum number of applications of a [`Page`]: few enough for the shortest statement timeout.
pub(crate) const MAX_PAGE: usize = 10_000;

/// Which applications are listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    /// Those with this ident, or whose name begins with this text; by name. `None`: all, oldest first.
    pub search: Option<String>,
    /// The last application of the page before.
    pub after: Option<AppIdent>,
    /// Maximum number, up to [`MAX_PAGE`].
    pub limit: usize,
}

/// A page of a [`Listing`].
#[derive(Debug)]
pub(crate) struct Page {
    /// The applications.
    pub apps: Vec<AppSummary>,
    /// Whether there is a next page.
    pub has_more: bool,
}

/// All functions fail if the store is unavailable.
impl Administration {
    /// Shows an application.
    pub(crate) async fn show(&self, ident: AppIdent) -> Result<AppSummary, AppStoreError> {
        Ok(self.store.row(ident).await?.into())
    }

    /// Lists applications. Fails if the last application of the page before was deleted meanwhile.
    pub(crate) async fn list(&self, listing: &Listing) -> Result<Page, AppStoreError> {
        let limit = listing.limit.min(MAX_PAGE);
        let after = match listing.after {
            Some(ident) => Some(self.store.row(ident).await?),
            None => None,
        };
        let database = self.store.database();
        let mut rows = match &listing.search {
            None => {
                let after = after.map_or(i64::MIN, |row| row.id.get());
                applications::page(database, after, limit + 1).await?
            }
            Some(text) => {
                // An application with this ident comes first, wherever its name would place it.
                let is_named = |row: &ApplicationRow| row.ident == *text;
                let mut rows = Vec::new();
                if let (None, Ok(ident)) = (&after, text.parse()) {
                    rows.extend(applications::find(database, ident).await?);
                }
                let after = after.filter(|row| !is_named(row));
                let found = applications::search(database, text, after.as_ref(), limit + 2).await?;
                rows.extend(found.into_iter().filter(|row| !is_named(row)));
                rows
            }
        };
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let apps = rows.into_iter().map(AppSummary::from).collect();
        Ok(Page { apps, has_more })
    }
}
