//! Shows and lists applications.

use std::{fmt, str::FromStr};

use signpost_protocol::app::AppIdent;
use signpost_proxy::AppStoreError;
use signpost_store::tables::applications::{self, ApplicationRow, folded};

use super::Administration;
use crate::administration::{fitting, summary::AppSummary};

/// Maximum number of applications of a [`Page`]: few enough for the shortest statement timeout.
pub const MAX_PAGE: usize = 10_000;

/// Which applications are listed.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Those with this ident, or whose name begins with this text; by name. `None`: all, oldest first.
    pub search: Option<String>,
    /// The end of the page before.
    pub after: Option<Cursor>,
    /// Maximum number, up to [`MAX_PAGE`].
    pub limit: usize,
}

/// A page of a [`Listing`].
#[derive(Debug)]
pub struct Page {
    /// The applications.
    pub apps: Vec<AppSummary>,
    /// Its end, if there is a next page.
    pub next: Option<Cursor>,
}

/// The end of a page: a place in the order, which stays if its application is deleted. Its text is opaque.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The internal id of the last application.
    id: i64,
    /// In a search: its name, folded; empty if its ident was found.
    name: Vec<u8>,
}

/// The text is not a cursor.
#[derive(Debug, thiserror::Error)]
#[error("what the page before ended with")]
pub struct ParseCursorError;

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, name } = self;
        write!(formatter, "{id:x}.{}", hex::encode(name))
    }
}

impl FromStr for Cursor {
    type Err = ParseCursorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (id, name) = text.split_once('.')?;
            Some(Self {
                id: i64::from_str_radix(id, 16).ok()?,
                name: hex::decode(name).ok()?,
            })
        };
        parse().ok_or(ParseCursorError)
    }
}

/// All functions fail if the store is unavailable.
impl Administration {
    /// Shows an application.
    pub async fn show(&self, ident: AppIdent) -> Result<AppSummary, AppStoreError> {
        Ok(self.row(ident).await?.into())
    }

    /// Lists applications.
    pub async fn list(&self, listing: &Listing) -> Result<Page, AppStoreError> {
        let limit = listing.limit.min(MAX_PAGE);
        let (database, after) = (self.store.database(), listing.after.as_ref());
        // An application with the ident that is searched for comes first, wherever its name would place it.
        let is_named = |row: &ApplicationRow| listing.search.as_ref() == Some(&row.ident);
        let mut rows = match &listing.search {
            None => {
                let after = after.map_or(i64::MIN, |cursor| cursor.id);
                // One more than the page has: it shows whether there is a next one.
                applications::page(database, after, limit + 1).await?
            }
            Some(text) => {
                let mut rows = Vec::new();
                if let (None, Ok(ident)) = (after, text.parse()) {
                    rows.extend(applications::find(database, ident).await?);
                }
                // A page that ended with the application found by its ident has no name: the search begins at its
                // start.
                let after = after.filter(|cursor| !cursor.name.is_empty());
                let after = after.map(|Cursor { id, name }| (name.clone(), *id));
                // Two more: the row of a next page, and the application that was found by its ident already.
                let matching = applications::search(database, text, after, limit + 2).await?;
                rows.extend(matching.into_iter().filter(|row| !is_named(row)));
                rows
            }
        };
        let fitting = fitting(&rows, limit, |row| {
            row.settings.return_to_origins.len() + row.name.len()
        });
        let has_more = rows.len() > fitting;
        rows.truncate(fitting);
        let next = rows.last().filter(|_| has_more).map(|row| Cursor {
            id: row.id.get(),
            name: match &listing.search {
                Some(_) if !is_named(row) => folded(&row.name),
                _ => Vec::new(),
            },
        });
        let apps = rows.into_iter().map(AppSummary::from).collect();
        Ok(Page { apps, next })
    }
}
