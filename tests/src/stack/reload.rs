//! Changing the configuration of a running program.

use std::{fs, path::PathBuf, process::Output};

use toml::Table;

use super::{Stack, files::merge};
use crate::program::Instance;

impl Stack {
    /// A program's configuration file.
    #[must_use]
    pub fn config(&self, instance: impl Into<Instance>) -> PathBuf {
        self.files.config(instance).into()
    }

    /// The text of a program's configuration file with `toml` merged in.
    ///
    /// # Panics
    ///
    /// When `toml` is not valid.
    #[must_use]
    pub fn config_with(&self, instance: impl Into<Instance>, toml: &str) -> String {
        let text = fs::read_to_string(self.config(instance)).expect("the file exists");
        let mut table: Table = text.parse().expect("the file was written as TOML");
        merge(
            &mut table,
            &toml.parse().expect("a test's TOML is well-formed"),
        );
        toml::to_string(&table).expect("a table can be written")
    }

    /// Merges `toml` into a program's configuration file, while the program runs.
    ///
    /// # Panics
    ///
    /// When `toml` is not valid, or the file cannot be written.
    pub fn configure(&self, instance: impl Into<Instance>, toml: &str) {
        let instance = instance.into();
        let text = self.config_with(instance, toml);
        fs::write(self.config(instance), text).expect("the file can be written");
    }

    /// Runs the command that makes a program reload.
    #[must_use]
    pub fn reload(&self, instance: impl Into<Instance>) -> Output {
        let instance = instance.into();
        let config = self.files.config(instance);
        let arguments = ["reload", "--config", &config];
        instance.program.run(self.folder(), &arguments)
    }

    /// Runs the command that checks a program's file, with additional arguments.
    #[must_use]
    pub fn check(&self, instance: impl Into<Instance>, further: &[&str]) -> Output {
        let instance = instance.into();
        let config = self.files.config(instance);
        let mut arguments = vec!["check", "--config", &config];
        arguments.extend(further);
        instance.program.run(self.folder(), &arguments)
    }
}
