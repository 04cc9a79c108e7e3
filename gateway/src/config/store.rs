//! Where the store is, and how a Postgres is spoken to: `store` and `[postgres]`. CONTRACT 10.

use std::{ops::RangeInclusive, time::Duration};

use signpost_store::{
    PostgresSettings, StoreAddress, StoreSettings, address::ParseStoreAddressError,
};

use super::{secret::SecretSource, table::Section};

/// The embedded store, in the working directory. CONTRACT 10.
const STORE: &str = "sqlite:data/signpost.db";

/// Both settings; each is looked at, whatever is wrong with the other.
pub(super) fn settings(root: &mut Section<'_>) -> Option<StoreSettings> {
    let address = address(root);
    let mut section = root.section("postgres");
    let password = section.secret("password");
    let postgres = postgres(section);
    let address = match password? {
        Some(password) => address?.with_password(password.expose()),
        None => address?,
    };
    Some(StoreSettings {
        address,
        postgres: postgres?,
    })
}

/// The address itself, or where it is kept, since it may hold a password.
fn address(root: &mut Section<'_>) -> Option<StoreAddress> {
    let setting = root.unshown_text("store", "a text")?;
    let source = SecretSource::from(setting.as_deref().unwrap_or(STORE));
    let place = match &source {
        SecretSource::Env(name) => Some(format!("env:{name}")),
        SecretSource::File(path) => Some(format!("file:{}", path.display())),
        SecretSource::Literal(_) => None,
    };
    let allowed = |kinds: &str| format!("{kinds}; or \"env:NAME\" or \"file:PATH\" that holds it");
    let address = match source.read() {
        Ok(address) => address,
        Err(error) => {
            root.problem("store", &error.to_string(), &allowed("an address"));
            return None;
        }
    };
    let parsed = address.expose().parse();
    parsed
        .map_err(|error: ParseStoreAddressError| {
            let found = place.map_or_else(
                || kind_of(address.expose()).to_owned(),
                |place| format!("{place}, which holds no such address"),
            );
            root.problem("store", &found, &allowed(&error.to_string()));
        })
        .ok()
}

/// As much of an address as can be shown: whatever is not understood may be a password.
fn kind_of(address: &str) -> &'static str {
    match address.split_once(':') {
        Some(("postgres" | "postgresql", _)) => "an address that begins with postgres",
        Some(("sqlite", _)) => "\"sqlite:\" without a path",
        _ => "a text that begins otherwise",
    }
}

fn postgres(mut section: Section<'_>) -> Option<PostgresSettings> {
    let default = PostgresSettings::default();
    let pool_size = section.number("pool_size", PostgresSettings::POOL_SIZES, default.pool_size);
    let mut seconds =
        |key, default: Duration| section.seconds(key, seconds_range(), default.as_secs() as usize);
    let connect = seconds("connect_seconds", default.connect);
    let wait = seconds("wait_seconds", default.wait);
    let statement = seconds("statement_seconds", default.statement);
    let root_certificate = section.unshown_text("root_certificate", "a file's path");
    Some(PostgresSettings {
        pool_size: pool_size?,
        connect: connect?,
        wait: wait?,
        statement: statement?,
        root_certificate: root_certificate?.map(Into::into),
    })
}

const fn seconds_range() -> RangeInclusive<usize> {
    *PostgresSettings::SECONDS.start() as usize..=*PostgresSettings::SECONDS.end() as usize
}

#[cfg(test)]
mod tests;
