//! The keys of a run: those that sign requests, of one application and of 10,000, and that of the certificate.

use std::{fs, path::Path};

use anyhow::Context;
use end_to_end::clock::now_ms;
use gateway::measured::{Applications, Config, NewApp, new_app_ident, new_app_key, open_store};
use signpost_kit::clock::Timestamp;
use signpost_protocol::{app::AppIdent, sign::AppKey};

use crate::tls::Tls;

/// Number of applications in the multi-application set-up.
pub const APPLICATIONS: usize = 10_000;

/// Name of the file with the single application's key, in a contestant's folder.
pub const KEY_FILE: &str = "app.key";

/// Name of the file with the many applications, in a contestant's folder. Each line is ident, tab, key.
pub const APPLICATIONS_FILE: &str = "apps.tsv";

/// All keys.
#[derive(Debug)]
pub struct Keys {
    /// The single application's key.
    pub single: AppKey,
    /// Idents and keys of the many applications.
    pub many: Vec<(AppIdent, AppKey)>,
    /// The certificate of contestants that speak TLS.
    pub tls: Tls,
}

impl Keys {
    /// Generates the keys.
    ///
    /// # Errors
    ///
    /// When the system returns no random bytes, or no certificate can be issued.
    pub fn generate() -> anyhow::Result<Self> {
        let application = |_| anyhow::Ok((new_app_ident()?, new_app_key()?));
        Ok(Self {
            single: new_app_key()?,
            many: (0..APPLICATIONS)
                .map(application)
                .collect::<Result<_, _>>()?,
            tls: Tls::generate()?,
        })
    }

    /// Writes the files that contestants read.
    ///
    /// # Errors
    ///
    /// When they cannot be written.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        fs::write(folder.join(KEY_FILE), self.single.expose())?;
        let lines: String = self
            .many
            .iter()
            .map(|(ident, key)| format!("{ident}\t{}\n", key.expose()))
            .collect();
        fs::write(folder.join(APPLICATIONS_FILE), lines)?;
        self.tls.write(folder)
    }

    /// Creates the many applications in the store of a gateway's configuration, like `signpost app create`.
    ///
    /// # Errors
    ///
    /// When the configuration is not for many applications, or the store cannot be written.
    pub fn store(&self, config: &Path) -> anyhow::Result<()> {
        let config = Config::load(config)?;
        let Applications::Multi(multi) = &config.applications else {
            anyhow::bail!("the configuration has no [applications]");
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
                        name: "bench".parse()?,
                        profile: None,
                        return_to: Vec::new(),
                        default_version: None,
                        rate_limit: None,
                        created_at,
                    })
                    .await?;
            }
            Ok(())
        })
    }
}
