//! The command lines of the other proxies, and their configurations, rendered from templates.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};

use super::{Environment, Setup};

/// Takes the place of `@PLAIN@` or `@TLS@` at the start of a line that the set-up does not use: a comment.
const UNUSED: &str = "# ";

/// A command line: a program and its arguments.
pub(super) type Line = Vec<String>;

pub(super) fn nginx(file: &Path, folder: &Path) -> Line {
    // Until nginx has read its configuration, it would log to the system-wide file.
    let log = folder.join("start.log");
    ["nginx", "-c", &text(file), "-e", &text(&log)]
        .map(str::to_owned)
        .into()
}

pub(super) fn haproxy(file: &Path) -> Line {
    ["haproxy", "-db", "-f", &text(file)]
        .map(str::to_owned)
        .into()
}

pub(super) fn bare_pingora(
    rendering: &Rendering,
    environment: &Environment,
) -> anyhow::Result<Line> {
    let mut line = vec![program(environment, "bare-pingora")?];
    for (option, address) in [
        ("--listen", rendering.listen),
        ("--v1", rendering.v1),
        ("--v2", rendering.v2),
    ] {
        line.extend([option.to_owned(), address.to_string()]);
    }
    line.extend(["--threads".to_owned(), rendering.threads.to_string()]);
    Ok(line)
}

pub(super) fn program(environment: &Environment, name: &str) -> anyhow::Result<String> {
    let path = environment.binaries.join(name);
    ensure!(
        path.is_file(),
        "{} is missing: build it with scripts/dist, or pass another folder with --binaries",
        path.display()
    );
    Ok(text(&fs::canonicalize(path)?))
}

/// The values of a template's placeholders.
#[derive(Debug)]
pub(super) struct Rendering {
    /// The address to listen on.
    pub(super) listen: SocketAddr,
    /// The backend of version 1.
    pub(super) v1: SocketAddr,
    /// The backend of version 2.
    pub(super) v2: SocketAddr,
    /// The set-up.
    pub(super) setup: Setup,
    /// Whether nginx has a master process.
    pub(super) has_master: bool,
    /// Worker threads, or worker processes.
    pub(super) threads: usize,
}

impl Rendering {
    /// Writes the rendered template, and the Lua and map files beside it, into a folder.
    pub(super) fn render(&self, from: &Path, template: &str, to: &Path) -> anyhow::Result<PathBuf> {
        for entry in fs::read_dir(from)
            .with_context(|| format!("cannot read the folder {}", from.display()))?
        {
            let path = entry?.path();
            let Some(name) = path.file_name() else {
                continue;
            };
            let is_beside = path
                .extension()
                .is_some_and(|kind| kind == "lua" || kind == "map");
            if is_beside || name == template {
                let content = fs::read_to_string(&path)?;
                fs::write(to.join(name), self.fill(&content, to))?;
            }
        }
        let file = to.join(template);
        ensure!(file.is_file(), "{} has no {template}", from.display());
        Ok(file)
    }

    fn fill(&self, template: &str, folder: &Path) -> String {
        let mode = match self.setup {
            Setup::Multi => "multi",
            Setup::Single | Setup::Replay | Setup::Tls | Setup::Headers => "single",
        };
        let (plain, tls) = match self.setup {
            Setup::Tls => (UNUSED, ""),
            Setup::Single | Setup::Multi | Setup::Replay | Setup::Headers => ("", UNUSED),
        };
        [
            ("@PLAIN@", plain.to_owned()),
            ("@TLS@", tls.to_owned()),
            ("@PORT@", self.listen.port().to_string()),
            ("@V1@", self.v1.to_string()),
            ("@V2@", self.v2.to_string()),
            ("@DIR@", text(folder)),
            ("@MODE@", mode.to_owned()),
            ("@THREADS@", self.threads.to_string()),
            (
                "@MASTER@",
                if self.has_master { "on" } else { "off" }.to_owned(),
            ),
        ]
        .iter()
        .fold(template.to_owned(), |filled, (placeholder, value)| {
            filled.replace(placeholder, value)
        })
    }
}

pub(super) fn text(path: &Path) -> String {
    path.display().to_string()
}
