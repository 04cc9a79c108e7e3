//! Which store, and how a Postgres is spoken to. CONTRACT 10.

use std::time::Duration;

use signpost_store::{
    PostgresSettings, StoreAddress, StoreSettings, address::ParseStoreAddressError,
};

use super::{SecretText, problems::Problems, raw::RawPostgres};

/// The embedded store, shared with the gateway. CONTRACT 10.
const STORE: &str = "sqlite:data/signpost.db";
/// What an address may begin with; nothing else of it is ever told.
const KINDS: [&str; 3] = ["sqlite:", "postgres:", "postgresql:"];

/// The store of `source`, an address or where to find one.
pub(super) fn read(
    source: Option<&str>,
    raw: RawPostgres,
    problems: &mut Problems,
) -> Option<StoreSettings> {
    let address = address(source.unwrap_or(STORE), problems);
    let password = raw
        .password
        .as_deref()
        .map(|source| SecretText::read("postgres.password", source, problems));
    let postgres = postgres(raw, problems);
    let address = match password {
        None => address?,
        Some(password) => address?.with_password(password?.expose()),
    };
    Some(StoreSettings { address, postgres })
}

fn address(source: &str, problems: &mut Problems) -> Option<StoreAddress> {
    let text = SecretText::read("store", source, problems)?;
    text.expose()
        .parse()
        .map_err(|allowed: ParseStoreAddressError| {
            problems.add("store", &found(source, text.expose()), &allowed.to_string());
        })
        .ok()
}

/// An address may hold a password, and what is none may be one: only its kind is told.
fn found(source: &str, text: &str) -> String {
    let place = if source == text { "" } else { source };
    let kind = KINDS.into_iter().find(|kind| text.starts_with(kind));
    let what = kind.map_or_else(
        || "an address of another kind".to_owned(),
        |kind| format!("a {kind} address that cannot be used"),
    );
    match place {
        "" => what,
        place => format!("{what}, in {place}"),
    }
}

fn postgres(raw: RawPostgres, problems: &mut Problems) -> PostgresSettings {
    let default = PostgresSettings::default();
    let [least, most] = [
        *PostgresSettings::POOL_SIZES.start(),
        *PostgresSettings::POOL_SIZES.end(),
    ]
    .map(|bound| bound as u64);
    let pool_size = problems.within(
        "postgres.pool_size",
        raw.pool_size,
        default.pool_size as u64,
        least..=most,
    );
    let mut seconds = |key: &str, given, default: Duration| {
        let range = PostgresSettings::SECONDS;
        let key = format!("postgres.{key}");
        Duration::from_secs(problems.within(&key, given, default.as_secs(), range))
    };
    PostgresSettings {
        pool_size: usize::try_from(pool_size).expect("at most the largest pool"),
        connect: seconds("connect_seconds", raw.connect_seconds, default.connect),
        wait: seconds("wait_seconds", raw.wait_seconds, default.wait),
        statement: seconds(
            "statement_seconds",
            raw.statement_seconds,
            default.statement,
        ),
        root_certificate: raw.root_certificate.map(Into::into),
    }
}
