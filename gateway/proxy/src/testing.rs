//! What tests of this crate and of those above it need: configurations, gateways, applications.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test that panics fails"
)]

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
};

use signpost_kit::{config::ConfigError, secret::SecretSource, server::descriptors::Descriptors};

pub use crate::directory::apps::snapshot::{SnapshotError, SnapshotFile};
use crate::{
    config::{Applications, Config, MasterKey, Versions},
    directory::apps::{directory::AppDirectory, seal::Sealer},
    serve::{Gateway, State},
};

/// A configuration with one version and one application.
pub const MINIMAL: &str = "prefix = 'Acme'\n[application]\nkey = '4283fefc63f0cd0e873a0000c6d07ef7'\n[versions.v1]\nbackend = '127.0.0.1:7001'\n";

/// Parses a whole configuration.
pub fn load(toml: &str) -> Result<Config, ConfigError> {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("signpost-config-{}-{count}.toml", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(name);
    fs::write(&path, toml).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let config = Config::load(&path);
    fs::remove_file(&path).unwrap();
    config
}

/// The versions, for tests of the phases.
pub fn versions(toml: &str) -> Versions {
    let start = MINIMAL.replace("[application]\nkey = '4283fefc63f0cd0e873a0000c6d07ef7'\n[versions.v1]\nbackend = '127.0.0.1:7001'\n", "");
    load(&format!(
        "{start}{toml}\n[application]\nkey = '4283fefc63f0cd0e873a0000c6d07ef7'\n"
    ))
    .unwrap()
    .versions
}

/// The gateway of a configuration with one application.
pub fn gateway(config: Config) -> Gateway {
    let Applications::Single(key) = &config.applications else {
        unreachable!("the configuration has one application")
    };
    let apps = AppDirectory::single(key.clone());
    let state = State::new(&apps, Descriptors::raise_limit());
    Gateway::new(config, apps, state).unwrap()
}

/// Seals with a master key for tests.
#[must_use]
pub fn sealer() -> Sealer {
    let key = SecretSource::from(&*"ab".repeat(32)).read().unwrap();
    Sealer::from_config(&MasterKey::Given(key), false).unwrap()
}
