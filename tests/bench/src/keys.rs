//! The keys that requests are signed with: one application's, and those of 10,000.

use std::{fs, path::Path};

use anyhow::Context;
use end_to_end::clock::now_ms;
use gateway::measured::{Applications, Config, NewApp, new_app_ident, new_app_key, open_store};
use gateway_protocol::{app::AppIdent, sign::AppKey};
use signpost_kit::clock::Timestamp;

/// How many applications there are in the multi-application set-up.
pub const APPLICATIONS: usize = 10_000;

/// The file with the one application's key, in a contestant's folder.
pub const KEY_FILE: &str = "app.key";

/// The file with the many applications, in a contestant's folder: a line each, ident and key with a tab between.
pub const APPLICATIONS_FILE: &str = "apps.tsv";

/// Every key.
#[derive(Debug)]
pub struct Keys {
    /// The one application's.
    pub single: AppKey,
    /// The many applications'.
    pub many: Vec<(AppIdent, AppKey)>,
}

impl Keys {
    /// Makes them.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub fn generate() -> anyhow::Result<Self> {
        let application = |_| anyhow::Ok((new_app_ident()?, new_app_key()?));
        Ok(Self {
            single: new_app_key()?,
            many: (0..APPLICATIONS)
                .map(application)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Writes the files that contestants read.
    ///
    /// # Errors
    ///
    /// They cannot be written.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        fs::write(folder.join(KEY_FILE), self.single.expose())?;
        let lines: String = self
            .many
            .iter()
            .map(|(ident, key)| format!("{ident}\t{}\n", key.expose()))
            .collect();
        fs::write(folder.join(APPLICATIONS_FILE), lines)?;
        Ok(())
    }

    /// Puts the many applications into the store of a gateway's configuration, as `signpost app create` would.
    ///
    /// # Errors
    ///
    /// The configuration has none, or the store cannot be written.
    pub fn store(&self, config: &Path) -> anyhow::Result<()> {
        let config = Config::load(config)?;
        let Applications::Multi(multi) = &config.applications else {
            anyhow::bail!("a configuration without a store");
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("a runtime for the store")?;
        let created_at = Timestamp::from_millis(now_ms());
        runtime.block_on(async {
            let (_, store) = open_store(&config, multi).await?;
            for (ident, key) in &self.many {
                store
                    .create(NewApp {
                        ident: *ident,
                        key: key.clone(),
                        name: "bench".to_owned(),
                        profile: None,
                        return_to_origins: Vec::new(),
                        default_version: None,
                        created_at,
                    })
                    .await?;
            }
            Ok(())
        })
    }
}
