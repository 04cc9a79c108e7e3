//! The limits of an HTTP/2 connection, each with its reason.

use std::time::Duration;

use h2::server::Builder;

use crate::request::HeadLimits;

/// Streams open at a time. RFC 9113 section 6.5.2 recommends at least 100.
pub(crate) const MAX_STREAMS: u32 = 100;

/// Heads that wait for the connection loop before the next read. One read can bring more.
pub(crate) const MAX_WAITING_HEADS: usize = 16;

/// Heads of responses that wait for the socket while a new stream is served. Those that are served then can add one each.
/// The `h2` crate bounds the bytes of its frames, but writes only a few for each head, and no longer counts the stream.
pub(crate) const MAX_WAITING_RESPONSES: usize = MAX_STREAMS as usize;

/// Receive window of a stream, in bytes: what an upload moves in a round trip at most, so 2.5 MiB a second over 100 ms.
pub(crate) const STREAM_WINDOW: u32 = 256 * 1024;

/// Receive window of the connection, in bytes: what four uploads move in a round trip. So much waits at most to be
/// read; a form that is read is held by its stream.
pub(crate) const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Bytes of a response that wait for the client, for each stream. One piece of a usual response.
pub(crate) const SEND_BUFFER: usize = 64 * 1024;

/// What RFC 9113 section 6.5.2 counts for each field beside its bytes.
pub(crate) const FIELD_OVERHEAD: usize = 32;

/// How much larger than the configured limits a header list may be, in bytes, for clients that obey
/// `SETTINGS_MAX_HEADER_LIST_SIZE`: the gateway then rejects the request, with its usual response.
const LIST_MARGIN: usize = 16 * 1024;

/// Limit of a decoded header list, as a multiple of [`max_list`]. Above it, the request is rejected, and the connection
/// takes no more streams. The same holds for a single field above one [`max_list`].
pub(crate) const MAX_LIST_FACTOR: usize = 4;

/// Streams that the client reset before the gateway took them up; one read may bring that many. The budget ends a
/// connection earlier, and gracefully (CVE-2023-44487).
const MAX_RESET_BEFORE_START: usize = 10_000;

/// Streams whose late frames are ignored after the gateway reset them. Frames of older ones are an error.
const MAX_RESET_STREAMS: usize = 50;
/// Time for which such frames are ignored.
const RESET_STREAM_TIME: Duration = Duration::from_secs(10);

/// What small DATA frames may cost by the count of the `h2` crate, in bytes. It would end the streams of all, and
/// requests that were rejected early return nothing to it. So it is out of reach: [`SMALL_PIECE_COST`] limits the
/// number of such frames.
const DATA_FRAME_BUDGET: usize = 1024 * 1024 * 1024;

/// Cost of all frames without progress that a connection can send at once; see [`meter`](super::meter).
pub(crate) const BUDGET: u64 = 64 * 1024;
/// How much of the budget returns each second: some 60 PINGs.
pub(crate) const BUDGET_PER_SECOND: u64 = 1024;
/// Cost of a request until it is answered. With the budget, that allows 500 requests that the client resets at once,
/// and seven each second.
pub(crate) const REQUEST_COST: u64 = 128;
/// Cost of a DATA or CONTINUATION frame. Other limits apply to their bytes.
pub(crate) const PIECE_COST: u64 = 16;
/// Cost of a DATA frame below [`SMALL_PIECE`]: until it is read, it holds some 9 KiB.
pub(crate) const SMALL_PIECE_COST: u64 = 32;
/// See [`SMALL_PIECE_COST`].
pub(crate) const SMALL_PIECE: usize = 256;
/// What an answered request returns to the budget: its own cost, the cost of trailers, and of some other frames.
pub(crate) const ANSWER_CREDIT: u64 = 512;
/// What a piece of a response returns to the budget: some `WINDOW_UPDATE`; and more for its length.
pub(crate) const PIECE_CREDIT: u64 = 64;
/// The bytes of a response that return one to the budget.
pub(crate) const BYTES_PER_CREDIT: u64 = 16;

/// What each stream in flight adds to the budget of a trusted proxy: eight requests that its client resets.
pub(crate) const PROXY_STREAM: u64 = 8 * REQUEST_COST;
/// What each answered request adds to it: four such requests. With [`ANSWER_CREDIT`], a response never shrinks the budget.
pub(crate) const PROXY_REQUEST: u64 = 4 * REQUEST_COST;

/// Timeout for the client's answer to a GOAWAY: until then, requests that it sent before are accepted.
pub(crate) const GOAWAY_TIMEOUT: Duration = Duration::from_secs(1);

/// Requests that are accepted after a GOAWAY: two times the streams that can be open. Further ones are dropped.
pub(crate) const MAX_LATE_REQUESTS: u64 = 2 * MAX_STREAMS as u64;

/// Lingering close: at most 2 s and 1 MiB, since a stream that is reset ends no connection.
pub(crate) const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
/// See [`LINGER_TIMEOUT`]. A closing connection reads no more, either, while its last streams are served.
pub(crate) const MAX_LINGER_BYTES: usize = 1024 * 1024;

/// Timers that a connection keeps for its next streams.
pub(crate) const MAX_IDLE_TIMERS: usize = 8;

/// The header list that a head can have, in bytes as `SETTINGS_MAX_HEADER_LIST_SIZE` counts them.
#[must_use]
pub(crate) const fn max_list(limits: &HeadLimits) -> usize {
    limits.bytes + limits.headers * FIELD_OVERHEAD + LIST_MARGIN
}

/// The settings of a connection.
#[must_use]
pub(crate) fn settings(limits: &HeadLimits) -> Builder {
    let list = max_list(limits);
    let mut settings = Builder::new();
    settings
        .max_concurrent_streams(MAX_STREAMS)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_header_list_size(u32::try_from(list).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(MAX_RESET_BEFORE_START)
        .data_frame_budget(DATA_FRAME_BUDGET)
        // The budget bounds them: a request that is not answered returns nothing (CVE-2025-8671).
        .max_local_error_reset_streams(None)
        .max_concurrent_reset_streams(MAX_RESET_STREAMS)
        .reset_stream_duration(RESET_STREAM_TIME);
    settings
}
