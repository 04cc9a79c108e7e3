//! Where an output writes: standard output, or a file that can be opened again.
//!
//! If a write fails in the middle of a line, the rest of that line is written first when writing works again. So no line
//! is torn, and the next one begins on a line of its own.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{Access, OFlags, access},
};

use super::LogKind;
use crate::config::shared_keys::LogOutput;

/// Mode of new files, less the process' umask. The group may read, for example the group of log shippers.
const FILE_MODE: u32 = 0o640;

/// Whole lines, and the kind of each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines<'l> {
    pub(super) bytes: &'l [u8],
    pub(super) kinds: &'l [LogKind],
}

/// An open destination.
#[derive(Debug)]
pub(super) struct Sink {
    /// For standard output a duplicate of the descriptor. std's own handle has a lock: a blocked write would hold it, and
    /// block panics and the end of the process.
    file: File,
    /// `None` for standard output.
    path: Option<PathBuf>,
    /// The rest of a line that is written in part.
    rest: Option<(Vec<u8>, LogKind)>,
    /// Why the last write failed.
    failure: Option<String>,
}

impl Sink {
    pub(super) fn open(destination: &LogOutput) -> io::Result<Self> {
        match destination {
            LogOutput::Stdout => Ok(Self::new(io::stdout().as_fd().try_clone_to_owned()?, None)),
            LogOutput::File(path) => {
                Ok(Self::new(open_file(path, true)?.into(), Some(path.clone())))
            }
        }
    }

    pub(super) fn new(descriptor: OwnedFd, path: Option<PathBuf>) -> Self {
        Self {
            file: File::from(descriptor),
            path,
            rest: None,
            failure: None,
        }
    }

    /// Why the last write failed.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Writes lines, and waits for a stalled reader. If the write fails, the lines that are not written are lost: they
    /// cannot go elsewhere. Returns their kinds.
    pub(super) fn write<'l>(&mut self, lines: Lines<'l>) -> &'l [LogKind] {
        if lines.bytes.is_empty() {
            return &[];
        }
        if let Some((rest, kind)) = self.rest.take() {
            let (written, failure) = write_all(&mut self.file, &rest);
            if let Err(cause) = failure {
                self.failure = Some(cause.to_string());
                self.rest = Some((rest[written..].to_vec(), kind));
                return lines.kinds;
            }
        }
        let (written, result) = write_all(&mut self.file, lines.bytes);
        self.failure = result.err().map(|cause| cause.to_string());
        if self.failure.is_none() {
            return &[];
        }
        let (whole, rest) = unwritten(lines.bytes, written);
        match (&lines.kinds[whole..], rest.is_empty()) {
            ([kind, following @ ..], false) => {
                self.rest = Some((rest.to_vec(), *kind));
                following
            }
            (lost, _) => lost,
        }
    }

    /// Opens the file again. If that fails, the old one stays in use. Returns the kind of a line whose rest is lost,
    /// because it does not fit into another file.
    pub(super) fn reopen(&mut self) -> Option<LogKind> {
        let path = self.path.as_ref()?;
        match open_file(path, true) {
            Ok(file) => {
                self.file = file;
                self.rest.take().map(|(_, kind)| kind)
            }
            Err(cause) => {
                tracing::error!(
                    path = %path.display(), %cause,
                    "the log file cannot be reopened, the old one stays in use"
                );
                None
            }
        }
    }
}

/// Whether [`Sink::open`] could open it. Creates nothing.
pub(in crate::log) fn check(destination: &LogOutput) -> io::Result<()> {
    let LogOutput::File(path) = destination else {
        return Ok(());
    };
    match open_file(path, false) {
        // `open` would create it. A path of an output has a slash, and so a folder.
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(path);
            Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
        }
        opened => opened.map(drop),
    }
}

/// Opens a file to append to it, and creates it if `creates`. A FIFO without a reader is an error, instead of blocking.
fn open_file(path: &Path, creates: bool) -> io::Result<File> {
    // `NOCTTY`: a terminal that is the log must not become the controlling one, whose Ctrl-C ends the program.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new()
        // Each write goes to the end: beside the other process of an upgrade, and after logrotate's `copytruncate`.
        .append(true)
        .create(creates)
        .mode(FILE_MODE)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

/// Writes all bytes, or returns how many were written before the failure.
fn write_all(output: &mut File, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match output.write(&bytes[written..]) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Another process that shares the descriptor may have made it non-blocking.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let _ = poll(&mut [PollFd::new(output, PollFlags::OUT)], None);
            }
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

/// After a write of only the first bytes: the number of lines that are written as a whole, and the rest of the line
/// that is written in part.
fn unwritten(lines: &[u8], written: usize) -> (usize, &[u8]) {
    let (head, tail) = lines.split_at(written);
    let whole = head.iter().filter(|byte| **byte == b'\n').count();
    if head.last().is_none_or(|last| *last == b'\n') {
        return (whole, &[]);
    }
    let end = tail.iter().position(|byte| *byte == b'\n');
    (whole, end.map_or(tail, |end| &tail[..=end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines<'l>(bytes: &'l [u8], kinds: &'l [LogKind]) -> Lines<'l> {
        Lines { bytes, kinds }
    }

    #[test]
    fn a_line_that_is_written_in_part_has_a_rest() {
        let lines = b"one\ntwo\nthree\n";
        for (written, whole, rest) in [
            (0, 0, ""),
            (2, 0, "e\n"),
            (3, 0, "\n"),
            (4, 1, ""),
            (5, 1, "wo\n"),
            (13, 2, "\n"),
            (14, 3, ""),
        ] {
            assert_eq!(
                unwritten(lines, written),
                (whole, rest.as_bytes()),
                "{written}"
            );
        }
    }

    #[test]
    fn a_full_disk_loses_lines_and_a_fifo_without_reader_is_refused() {
        let full = LogOutput::File("/dev/full".into());
        let mut sink = Sink::open(&full).unwrap();
        let lost = sink.write(lines(b"one\ntwo\n", &[LogKind::Error, LogKind::Access]));
        assert_eq!(lost, [LogKind::Error, LogKind::Access]);
        assert!(sink.failure().is_some());
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        Sink::open(&LogOutput::File(fifo)).unwrap_err();
    }

    #[test]
    fn the_rest_of_a_line_precedes_the_next_one_but_not_in_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut sink = Sink::open(&LogOutput::File(path.clone())).unwrap();
        sink.rest = Some((b"st\n".to_vec(), LogKind::Access));
        sink.write(lines(b"second\n", &[LogKind::Error]));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "st\nsecond\n");
        sink.rest = Some((b"st\n".to_vec(), LogKind::Access));
        std::fs::rename(&path, folder.path().join("old")).unwrap();
        assert_eq!(sink.reopen(), Some(LogKind::Access));
        sink.write(lines(b"third\n", &[LogKind::Error]));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "third\n");
    }
}
