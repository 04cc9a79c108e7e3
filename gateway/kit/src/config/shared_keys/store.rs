//! The address of the store and the settings of Postgres connections: `store` and `[postgres]`. `conf/gateway.toml`.

use std::time::Duration;

use signpost_store::{
    PostgresSettings, StoreAddress, StoreSettings, address::ParseStoreAddressError,
};

use crate::{
    cache::{DEFAULT_STALE, MAX_STALE},
    config::{Read, Section},
    secret::{Secret, SecretSource},
};

/// Default address: the embedded store, in the working directory. `conf/gateway.toml`.
const STORE: &str = "sqlite:data/signpost.db";

/// Reads `store` and `[postgres]`. Messages show only the kind of an address, since it may hold a password.
///
/// # Errors
///
/// A value is invalid, or a source has none.
pub fn store(root: &mut Section<'_>) -> Read<StoreSettings> {
    // Not `?` here: the problems of `[postgres]` are reported together with it.
    let address = address(root);
    root.section("postgres", |section| {
        let password = section.secret("password");
        let postgres = postgres(section);
        let address = match password? {
            Some(password) => address?.with_password(password.expose()),
            None => address?,
        };
        Ok(StoreSettings {
            postgres: postgres?,
            ..StoreSettings::new(address)
        })
    })
}

/// Reads `stale_seconds`: how long cached data is used while the store does not answer. 0 s to 7 days, default 5 min.
///
/// # Errors
///
/// The number is invalid.
pub fn stale(root: &mut Section<'_>) -> Read<Duration> {
    let (max, default) = (MAX_STALE.as_secs(), DEFAULT_STALE.as_secs());
    root.seconds("stale_seconds", 0..=max, default)
}

/// Reads the address, or its source.
fn address(root: &mut Section<'_>) -> Read<StoreAddress> {
    const KEY: &str = "store";
    let allowed =
        |kinds: &str| format!("{kinds}; or \"env:NAME\" or \"file:PATH\" of a text with it");
    let source = root.secret_source(KEY, &allowed("an address"))?;
    let source = source.unwrap_or_else(|| SecretSource::from(STORE));
    let origin = match &source {
        SecretSource::Env(name) => Some(format!("env:{name}")),
        SecretSource::File(path) => Some(format!("file:{}", path.display())),
        SecretSource::Literal(_) => None,
    };
    let text = root.read_source(KEY, source, &allowed("an address"))?;
    let address: StoreAddress = text.expose().parse().map_err(|error| {
        let error: ParseStoreAddressError = error;
        let value = match &origin {
            Some(origin) => format!("{}, in {origin}", error.found()),
            None => error.found(),
        };
        root.problem(KEY, &value, &allowed(&error.to_string()))
    })?;
    if let Some(file) = address.file() {
        root.note_database(KEY, file);
    }
    if origin.is_none() && address.has_password() {
        root.note_secret(KEY, None);
    }
    root.set_hidden(
        KEY,
        &format!("\"{address}\""),
        Secret::from(text.expose().to_owned()),
    );
    Ok(address)
}

fn postgres(section: &mut Section<'_>) -> Read<PostgresSettings> {
    let default = PostgresSettings::default();
    let seconds = |section: &mut Section<'_>, key, default: Duration| {
        section.seconds(key, PostgresSettings::SECONDS, default.as_secs())
    };
    crate::read_all!(PostgresSettings {
        pool_size: section.number("pool_size", PostgresSettings::POOL_SIZES, default.pool_size),
        wait: seconds(section, "wait_seconds", default.wait),
        statement: seconds(section, "statement_seconds", default.statement),
        heartbeat: Ok(default.heartbeat),
        root_certificate: section.path("root_certificate"),
    })
}
