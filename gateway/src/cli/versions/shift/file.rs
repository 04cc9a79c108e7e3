//! The configuration file, which is replaced as a whole, and restored if that has to be undone.

use std::{
    fs,
    io::Write,
    os::unix::fs::{MetadataExt, fchown},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use tempfile::NamedTempFile;

use signpost_proxy::Config;

/// A configuration file that is edited.
pub(super) struct EditedFile {
    /// The file itself: behind links.
    path: PathBuf,
    original: String,
    /// What was written; `None`: the original is there.
    written: Option<String>,
}

impl EditedFile {
    /// Reads the file at `path`, which may be a link to it.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let read = || {
            let path = path.canonicalize()?;
            let original = fs::read_to_string(&path)?;
            Ok::<_, std::io::Error>(Self {
                path,
                original,
                written: None,
            })
        };
        read().with_context(|| format!("cannot read {}", path.display()))
    }

    /// The text before any change.
    pub(super) fn original(&self) -> &str {
        &self.original
    }

    /// Whether the file is changed.
    pub(super) const fn is_changed(&self) -> bool {
        self.written.is_some()
    }

    /// Reads the configuration that `text` would be.
    pub(super) fn check(&self, text: &str) -> anyhow::Result<Config> {
        let file = self.beside(text)?;
        Config::load(file.path()).context("with the new address the file would be invalid")
    }

    /// Replaces the file. Its owner, its mode and links to it stay.
    pub(super) fn write(&mut self, text: &str) -> anyhow::Result<()> {
        let path = self.path.display();
        let expected = self.written.as_ref().unwrap_or(&self.original);
        if fs::read_to_string(&self.path)? != *expected {
            bail!("{path} was changed by someone else meanwhile");
        }
        let file = self.beside(text)?;
        file.persist(&self.path)
            .map_err(|error| error.error)
            .with_context(|| format!("cannot replace {path}"))?;
        self.written = (text != self.original).then(|| text.to_owned());
        Ok(())
    }

    /// Writes the original again.
    pub(super) fn restore(&mut self) -> anyhow::Result<()> {
        self.write(&self.original.clone())
    }

    /// A new file beside this one, with the same owner and mode.
    fn beside(&self, text: &str) -> anyhow::Result<NamedTempFile> {
        let folder = self.path.parent().context("a file is in a folder")?;
        let write = || {
            let metadata = fs::metadata(&self.path)?;
            let mut file = NamedTempFile::new_in(folder)?;
            let created = file.as_file().metadata()?;
            if (created.uid(), created.gid()) != (metadata.uid(), metadata.gid()) {
                fchown(file.as_file(), Some(metadata.uid()), Some(metadata.gid()))?;
            }
            file.as_file().set_permissions(metadata.permissions())?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            Ok::<_, std::io::Error>(file)
        };
        write().with_context(|| format!("cannot write a file in {}", folder.display()))
    }
}
