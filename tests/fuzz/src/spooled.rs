//! Bodies that are received piece by piece, in memory and in files.

use std::{
    env, io,
    net::Ipv4Addr,
    num::NonZeroU32,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use signpost_protocol::sign::BodyHash;
use signpost_proxy::measured::{
    BodyLength, BodyLimits, Client, ClientConnection, Drain, Http1Exchange, Recipient, SendLimits,
    Spool, SpoolReader,
};
use tokio::{
    io::{AsyncRead, ReadBuf, join, sink},
    runtime::{Builder, Runtime},
};

use crate::naive::chunked::{self as naive, End};

/// The data of a chunk that stands before the input, as often as its first byte says: beyond 64 KiB, a file has it.
const BEFORE: usize = 7919;
const MAX: usize = 200_000;
/// About as many pieces come at most: of each byte of a large body, they would take a second.
const PIECES: usize = 1024;

/// Receives the input as a body of known length and as chunks, and compares it with what a naive reader finds.
///
/// # Panics
///
/// When two results differ.
pub fn spooled(input: &[u8]) -> bool {
    let [times, piece, rest @ ..] = input else {
        return false;
    };
    let times = usize::from(times % 32);
    let piece = (1 + usize::from(*piece) * 97).max((times * BEFORE + rest.len()) / PIECES);
    let data: Vec<_> = (0..BEFORE).map(|index| (index % 251) as u8).collect();
    let chunk = [format!("{BEFORE:x}\r\n").as_bytes(), &data, b"\r\n"].concat();
    let sent = [chunk.repeat(times), rest.to_vec()].concat();
    let expected = naive::read(&sent);
    let received = receive(&sent, piece, BodyLength::Unknown);
    let is_whole = matches!(expected.end, End::Whole(_)) && expected.data.len() <= MAX;
    assert_eq!(received.as_ref(), is_whole.then_some(&expected.data));
    let whole = [data.repeat(times), rest.to_vec()].concat();
    let length = whole.len().saturating_sub(1);
    let received = receive(&whole, piece, BodyLength::Known(length as u64));
    assert!(received.is_some_and(|received| received == whole[..length]));
    // One byte that never comes.
    let length = BodyLength::Known(whole.len() as u64 + 1);
    assert_eq!(receive(&whole, piece, length), None);
    assert_eq!(spool().taken(), [0, 0]);
    is_whole
}

/// The body of this length, in pieces; `None` if it is not whole.
fn receive(sent: &[u8], piece: usize, length: BodyLength) -> Option<Vec<u8>> {
    let limits = BodyLimits {
        bytes: MAX,
        timeout: Duration::from_secs(3600),
        min_rate: NonZeroU32::MIN,
    };
    let (drain, recipient) = (
        Drain::new(),
        Recipient {
            is_http_1_0: false,
            is_head: false,
        },
    );
    let stream = join(Pieces { rest: sent, piece }, sink());
    let send = SendLimits {
        timeout: limits.timeout,
        min_rate: limits.min_rate,
    };
    let mut connection = ClientConnection::new(stream, send);
    let mut client = Http1Exchange::new(&mut connection, &drain, recipient, length, true);
    runtime().block_on(async {
        let mut receiving = spool().begin(Ipv4Addr::LOCALHOST.into(), true);
        client
            .read_pieces(false, limits, &mut receiving)
            .await
            .ok()?;
        let (body, hash) = receiving.finish().await.expect("there is room");
        let mut bytes = body.in_memory().to_vec();
        if let Some(spooled) = body.spooled() {
            let mut reader = SpoolReader::new(Arc::clone(spooled));
            while let Some(piece) = reader.next_piece() {
                bytes.extend(piece.await.expect("it was written"));
            }
        }
        let known = BodyHash::of(&bytes);
        assert_eq!(
            format!("{:?}", hash.expect("it is signed")),
            format!("{known:?}")
        );
        Some(bytes)
    })
}

fn spool() -> &'static Spool {
    static SPOOL: OnceLock<Spool> = OnceLock::new();
    SPOOL.get_or_init(|| Spool::new(&env::temp_dir(), 1 << 30))
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let built = Builder::new_current_thread().enable_all().build();
        built.expect("the system has what it needs")
    })
}

/// Delivers pieces of a size, then the end.
struct Pieces<'a> {
    rest: &'a [u8],
    piece: usize,
}

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let length = self.piece.min(buffer.remaining()).min(self.rest.len());
        let (now, later) = self.rest.split_at(length);
        buffer.put_slice(now);
        self.rest = later;
        Poll::Ready(Ok(()))
    }
}
