//! Bodies that are received whole before they are forwarded: small ones in memory, others in a file without a name.
//!
//! A stranger can start one: it takes memory, and room in the folder, only as bytes arrive, and both have a bound and a
//! share for each network ([BOUNDS.md](../../BOUNDS.md)).

use std::{
    fs::File,
    future::Future,
    io,
    net::IpAddr,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use ring::digest;
use signpost_protocol::sign::BodyHash;
use tokio::{sync::Semaphore, task::spawn_blocking};

use super::places::{Place, Places};
use crate::request::{
    client::{BodySink, PIECE},
    rejection::Rejection,
};

/// Bytes of a body that need no place: as much as a head.
const FREE: usize = 16 * 1024;
/// The memory of all bodies together: places of a piece each.
const MEMORY_PLACES: usize = 2048;
/// The unit in which room in the folder is given out.
const UNIT: u64 = 1024 * 1024;
/// As many threads read and write files of bodies at a time.
const THREADS: usize = 8;

static TURNS: Semaphore = Semaphore::const_new(THREADS);

/// Where bodies wait that are too large for memory.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    bytes: u64,
    room: Arc<Places>,
    memory: Arc<Places>,
}

impl Spool {
    /// A spool in `folder` for `bytes` in all.
    #[must_use]
    pub fn new(folder: &Path, bytes: u64) -> Self {
        let units = usize::try_from(bytes / UNIT).unwrap_or(usize::MAX);
        Self {
            folder: folder.to_owned(),
            bytes,
            room: Places::new(units),
            memory: Places::new(MEMORY_PLACES),
        }
    }

    /// Whether it is the one of these settings.
    pub(crate) fn is(&self, folder: &Path, bytes: u64) -> bool {
        self.folder == folder && self.bytes == bytes
    }

    /// The bytes of the folder and of the memory that are taken.
    #[must_use]
    pub fn taken(&self) -> [u64; 2] {
        let [room, memory] = [&self.room, &self.memory].map(|places| places.taken() as u64);
        [room * UNIT, memory * PIECE as u64]
    }

    /// Begins to receive a body of a client. With `is_signed`, it is hashed.
    #[must_use]
    pub fn begin(&self, client: IpAddr, is_signed: bool) -> Receiving<'_> {
        Receiving {
            spool: self,
            client,
            hash: is_signed.then(|| digest::Context::new(&digest::SHA256)),
            buffer: Vec::new(),
            memory: None,
            file: None,
            length: 0,
        }
    }
}

/// A whole body.
pub enum Body {
    /// A form, which may be empty.
    Form(Vec<u8>),
    /// Another one, in memory.
    Memory {
        bytes: Vec<u8>,
        _place: Option<Box<Place>>,
    },
    /// Another one, in a file.
    Spooled(Arc<SpooledBody>),
}

// Prints no content, which may include credentials.
signpost_protocol::hide_in_debug!(Body);

impl Default for Body {
    fn default() -> Self {
        Self::Form(Vec::new())
    }
}

impl Body {
    /// The bytes, if they are in memory; otherwise none.
    #[must_use]
    pub fn in_memory(&self) -> &[u8] {
        match self {
            Self::Form(bytes) | Self::Memory { bytes, .. } => bytes,
            Self::Spooled(_) => b"",
        }
    }

    /// The form; empty if it is none.
    pub(crate) fn form(&self) -> &[u8] {
        match self {
            Self::Form(form) => form,
            Self::Memory { .. } | Self::Spooled(_) => b"",
        }
    }

    /// The file, if it is in one.
    #[must_use]
    pub const fn spooled(&self) -> Option<&Arc<SpooledBody>> {
        match self {
            Self::Form(_) | Self::Memory { .. } => None,
            Self::Spooled(body) => Some(body),
        }
    }

    /// A body of the same kind with other bytes.
    pub(crate) fn with(self, bytes: Vec<u8>) -> Self {
        match self {
            Self::Form(_) => Self::Form(bytes),
            Self::Memory { _place, .. } => Self::Memory { bytes, _place },
            Self::Spooled(_) => Self::Memory {
                bytes,
                _place: None,
            },
        }
    }

    /// The number of its bytes.
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Form(bytes) | Self::Memory { bytes, .. } => bytes.len() as u64,
            Self::Spooled(body) => body.length,
        }
    }
}

/// A body in a file without a name: nothing is left of it, however the process ends.
#[derive(Debug)]
pub struct SpooledBody {
    file: Arc<SpoolFile>,
    length: u64,
}

/// The file, with its room in the folder.
#[derive(Debug)]
struct SpoolFile {
    file: File,
    room: Mutex<Vec<Place>>,
}

/// A body that arrives.
pub struct Receiving<'s> {
    spool: &'s Spool,
    client: IpAddr,
    hash: Option<digest::Context>,
    buffer: Vec<u8>,
    memory: Option<Place>,
    file: Option<Arc<SpoolFile>>,
    /// Of the file, without the buffer.
    length: u64,
}

impl BodySink for Receiving<'_> {
    async fn take(&mut self, mut piece: &[u8]) -> Result<(), Rejection> {
        if let Some(hash) = &mut self.hash {
            hash.update(piece);
        }
        while self.buffer.len() + piece.len() > PIECE {
            let (now, later) = piece.split_at(PIECE - self.buffer.len());
            self.hold(now)?;
            self.write().await?;
            piece = later;
        }
        self.hold(piece)
    }
}

impl Receiving<'_> {
    /// The whole body, and its hash.
    ///
    /// # Errors
    ///
    /// There is no room for its end.
    pub async fn finish(mut self) -> Result<(Body, Option<BodyHash>), Rejection> {
        let body = if self.file.is_none() {
            Body::Memory {
                bytes: std::mem::take(&mut self.buffer),
                _place: self.memory.take().map(Box::new),
            }
        } else {
            self.write().await?;
            match self.file.take() {
                Some(file) => Body::Spooled(Arc::new(SpooledBody {
                    file,
                    length: self.length,
                })),
                None => Body::default(),
            }
        };
        let hash = self.hash.and_then(|hash| {
            let hash = hash.finish().as_ref().try_into().ok()?;
            Some(BodyHash::new(hash))
        });
        Ok((body, hash))
    }

    /// Keeps a piece in memory; it fits.
    fn hold(&mut self, piece: &[u8]) -> Result<(), Rejection> {
        if self.memory.is_none() && self.buffer.len() + piece.len() > FREE {
            let place = self.spool.memory.take(self.client);
            self.memory = Some(place.ok_or(Rejection::SpoolFull(None))?);
            // In one step: otherwise its growth would copy it several times.
            self.buffer.reserve_exact(PIECE - self.buffer.len());
        }
        self.buffer.extend_from_slice(piece);
        Ok(())
    }

    /// Writes what is in memory to the file.
    async fn write(&mut self) -> Result<(), Rejection> {
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => {
                let folder = self.spool.folder.clone();
                let file = blocking(move || tempfile::tempfile_in(folder)).await?;
                let room = Mutex::default();
                let file = Arc::new(SpoolFile { file, room });
                Arc::clone(self.file.insert(file))
            }
        };
        let end = self.length + self.buffer.len() as u64;
        file.reserve(end, &self.spool.room, self.client)?;
        let (at, mut buffer) = (self.length, std::mem::take(&mut self.buffer));
        self.buffer = blocking(move || {
            file.file.write_all_at(&buffer, at)?;
            buffer.clear();
            Ok(buffer)
        })
        .await?;
        self.length = end;
        Ok(())
    }
}

impl SpoolFile {
    /// Takes room for a file of this length.
    fn reserve(&self, length: u64, room: &Arc<Places>, client: IpAddr) -> Result<(), Rejection> {
        let mut taken = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        while (taken.len() as u64) * UNIT < length {
            taken.push(room.take(client).ok_or(Rejection::SpoolFull(None))?);
        }
        Ok(())
    }
}

/// Runs a call of the file system on a thread of its own.
async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Rejection> {
    // The semaphore is never closed.
    let turn = TURNS.acquire().await;
    let done = spawn_blocking(move || {
        // Held by the work, not by its caller, who may be gone.
        let _turn = turn;
        call()
    });
    match done.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Rejection::SpoolFull(Some(Box::new(error)))),
        Err(_) => Err(Rejection::Internal("a file of a body panicked".into())),
    }
}

/// A piece that is being read.
pub(crate) type Piece = Pin<Box<dyn Future<Output = io::Result<Vec<u8>>> + Send>>;

/// Reads a body in a file from its beginning, piece by piece.
pub struct SpoolReader {
    body: Arc<SpooledBody>,
    at: u64,
}

impl SpoolReader {
    /// From the beginning.
    #[must_use]
    pub const fn new(body: Arc<SpooledBody>) -> Self {
        Self { body, at: 0 }
    }

    /// Reads the next piece; `None` at the end.
    #[must_use]
    pub fn next_piece(&mut self) -> Option<Piece> {
        let left = self.body.length - self.at;
        let length = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        if length == 0 {
            return None;
        }
        let (file, at) = (Arc::clone(&self.body.file), self.at);
        self.at += length as u64;
        Some(Box::pin(async move {
            let read = blocking(move || {
                let mut piece = vec![0; length];
                file.file.read_exact_at(&mut piece, at)?;
                Ok(piece)
            });
            read.await
                .map_err(|_| io::Error::other("a file of a body cannot be read"))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    async fn received(spool: &Spool, length: usize) -> Result<(Body, Option<BodyHash>), Rejection> {
        let bytes: Vec<_> = (0..length).map(|index| (index % 251) as u8).collect();
        let mut receiving = spool.begin(CLIENT, true);
        for piece in bytes.chunks(10_007) {
            receiving.take(piece).await?;
        }
        receiving.finish().await
    }

    async fn bytes_of(body: &Body) -> Vec<u8> {
        let Some(spooled) = body.spooled() else {
            return body.in_memory().to_vec();
        };
        let mut reader = SpoolReader::new(Arc::clone(spooled));
        let mut bytes = Vec::new();
        while let Some(piece) = reader.next_piece() {
            bytes.extend(piece.await.unwrap());
        }
        bytes
    }

    #[tokio::test]
    async fn a_body_comes_back_as_it_was_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(folder.path(), 64 * UNIT);
        for length in [0, 1, FREE, FREE + 1, PIECE, PIECE + 1, 3 * PIECE, 1_500_000] {
            let (body, hash) = received(&spool, length).await.unwrap();
            let bytes = bytes_of(&body).await;
            assert_eq!(body.length(), length as u64);
            assert_eq!(body.spooled().is_some(), length > PIECE, "{length}");
            assert!(
                bytes
                    .iter()
                    .enumerate()
                    .all(|(index, byte)| *byte == (index % 251) as u8)
            );
            let known = BodyHash::of(&bytes);
            assert_eq!(format!("{:?}", hash.unwrap()), format!("{known:?}"));
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
        assert_eq!(spool.taken(), [0, 0]);
    }

    #[tokio::test]
    async fn beyond_a_share_of_the_room_a_body_is_rejected_and_its_room_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        // A quarter is one network's: one unit.
        let spool = Spool::new(folder.path(), 4 * UNIT);
        let (kept, _) = received(&spool, 200_000).await.unwrap();
        assert_eq!(spool.taken()[0], UNIT);
        let full = received(&spool, 200_000).await.unwrap_err();
        assert!(matches!(full, Rejection::SpoolFull(None)), "{full}");
        drop(kept);
        let full = received(&spool, 2_000_000).await.unwrap_err();
        assert!(matches!(full, Rejection::SpoolFull(None)), "{full}");
        assert_eq!(spool.taken(), [0, 0]);
        received(&spool, 1_000_000).await.unwrap();
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_written_is_named_by_its_error() {
        let spool = Spool::new(Path::new("/nonexistent"), 64 * UNIT);
        let failed = received(&spool, 100_000).await.unwrap_err();
        assert!(matches!(failed, Rejection::SpoolFull(Some(_))), "{failed}");
        assert_eq!(spool.taken(), [0, 0]);
    }
}
