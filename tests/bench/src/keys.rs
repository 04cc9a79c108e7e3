//! The keys of a run: those that sign requests, of one application and of 10,000, and that of the certificate.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use signpost_protocol::{app::AppIdent, sign::AppKey};
use signpost_proxy::measured::{new_app_ident, new_app_key};

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

    /// Imports the many applications into the store of a gateway's configuration.
    ///
    /// # Errors
    ///
    /// When the file cannot be written, or `signpost app import` fails.
    pub fn import(&self, signpost: &str, config: &Path) -> anyhow::Result<()> {
        let file = config.with_file_name("apps.csv");
        let lines = self.many.iter();
        let lines = lines.map(|(ident, key)| format!("{ident},{},bench\n", key.expose()));
        let lines: String = lines.collect();
        fs::write(&file, format!("ident,key,name\n{lines}"))?;
        let mut command = Command::new(signpost);
        let command = command.args(["app", "import"]).arg(&file).arg("--config");
        let status = command.arg(config).stdout(Stdio::null()).status()?;
        anyhow::ensure!(status.success(), "signpost app import fails");
        Ok(())
    }
}
