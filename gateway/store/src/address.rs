//! The `store` setting: where the database is. CONTRACT 10.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

/// Where the database is: `sqlite:PATH`, relative to the working directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreAddress(PathBuf);

impl StoreAddress {
    /// The database's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl FromStr for StoreAddress {
    type Err = ParseStoreAddressError;

    fn from_str(address: &str) -> Result<Self, Self::Err> {
        match address.strip_prefix("sqlite:") {
            Some(path) if !path.is_empty() => Ok(Self(path.into())),
            _ => Err(ParseStoreAddressError),
        }
    }
}

/// The address is of no kind that there is. Does not repeat it: an address may hold a password.
#[derive(Debug, thiserror::Error)]
#[error("sqlite:PATH, \"sqlite:data/signpost.db\" say")]
pub struct ParseStoreAddressError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_file() {
        let address: StoreAddress = "sqlite:data/signpost.db".parse().unwrap();
        assert_eq!(address.path(), Path::new("data/signpost.db"));
        for bad in ["", "sqlite:", "data/signpost.db", "mysql://x"] {
            assert!(bad.parse::<StoreAddress>().is_err(), "{bad}");
        }
    }
}
