//! One connection, from its first byte to its close.

use std::{
    convert::Infallible,
    error::Error,
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header::CONNECTION};
use http_body::Body;
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{HttpService, service_fn},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::watch,
    time::{Instant, Sleep, sleep, sleep_until, timeout},
};

use super::{
    HttpTimeouts,
    places::Place,
    progress::{Progress, Stage},
    watched::{WatchedBody, WatchedStream},
};
use crate::server::shutdown::Phase;

/// Lingering close: at most 1 s and 256 KiB. A close with unread bytes resets the connection, and the client may lose
/// the response.
const LINGER: Duration = Duration::from_secs(1);
/// Size of the read buffer, and so the limit on a head: twice what the gateway sends.
const MAX_BUFFER: usize = 128 * 1024;
const MAX_LINGER_BYTES: usize = 256 * 1024;

/// The response to a head that timed out. There is no request yet, so language and format of errors are unknown.
const TIMED_OUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// How a connection ended.
enum Ended {
    /// Closed by HTTP on either side, or by an error.
    Closed,
    /// A timeout expired.
    TimedOut,
    /// No request is in flight, and the program stops, or a new connection needs the place.
    WhileIdle,
}

/// How far a stop of the program has come on one connection.
enum Stop {
    NotYet,
    /// The first request of a connection that was accepted just before may still arrive.
    Settling(Pin<Box<Sleep>>),
    /// The connection ends with its request.
    Begun,
}

/// When a connection ends that a stop closes.
enum Ending {
    AtOnce,
    WithRequest,
}

impl Stop {
    /// Ready once, when the stop decides on the end of the connection. `closing` is ready once idle connections close.
    fn poll(
        &mut self,
        closing: Pin<&mut impl Future>,
        is_idle: bool,
        has_begun: bool,
        settle: Duration,
        context: &mut Context<'_>,
    ) -> Poll<Ending> {
        if matches!(self, Self::NotYet) && closing.poll(context).is_ready() {
            *self = Self::Settling(Box::pin(sleep(settle)));
        }
        let Self::Settling(settled) = self else {
            return Poll::Pending;
        };
        if !is_idle {
            *self = Self::Begun;
            return Poll::Ready(Ending::WithRequest);
        }
        // Between two requests clients expect a close (RFC 9112 section 9.5), before the first one they do not.
        if has_begun {
            return Poll::Ready(Ending::AtOnce);
        }
        settled.as_mut().poll(context).map(|()| Ending::AtOnce)
    }
}

/// Serves the requests of a connection; `first` are bytes that were read from it.
pub(super) async fn serve_connection<S, H, F, B>(
    stream: S,
    first: Bytes,
    timeouts: impl Fn() -> HttpTimeouts + Send + Sync + 'static,
    settle: Duration,
    place: Place,
    phase: watch::Receiver<Phase>,
    handler: H,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
{
    let first_deadline = Instant::now() + timeouts().head;
    let progress = Arc::new(Progress::new(timeouts, place));
    let stream = WatchedStream::new(stream, first, &progress);
    let closing = phase.clone();
    let service = service_fn(|request| {
        progress.begin_request();
        let response = handler(request);
        let (progress, phase) = (Arc::clone(&progress), phase.clone());
        async move {
            let mut response = response.await;
            // Until the last byte is written: hyper drops the response's parts with the head.
            progress.state.lock().held = response.extensions_mut().remove();
            let mut response = response.map(|body| WatchedBody::new(body, progress));
            // After the handler: a stop that began meanwhile counts.
            announce_close(response.headers_mut(), *phase.borrow());
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = http1::Builder::new()
        .max_buf_size(MAX_BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let ended = until_ended(&mut connection, &progress, closing, settle, first_deadline).await;
    finish(
        ended,
        &progress,
        connection.into_parts().io.into_inner().stream,
    )
    .await;
}

/// Drives a connection until it closes, or until something else ends it.
async fn until_ended<T, S, B>(
    connection: &mut http1::Connection<T, S>,
    progress: &Progress,
    mut phase: watch::Receiver<Phase>,
    settle: Duration,
    first_deadline: Instant,
) -> Ended
where
    T: hyper::rt::Read + hyper::rt::Write + Unpin,
    S: HttpService<Incoming, ResBody = B, Error = Infallible>,
    B: Body<Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
{
    let mut closing = pin!(phase.wait_for(|phase| *phase >= Phase::Closing));
    let mut stop = Stop::NotYet;
    let mut alarm = pin!(sleep_until(first_deadline));
    let mut is_place_needed = pin!(progress.place.is_needed());
    let mut makes_room = |context: &mut Context<'_>| {
        let (stage, has_begun) = progress.stage();
        // A connection beyond the limit is there for its first request.
        let is_without_request =
            stage != Stage::Serving && (has_begun || !progress.place.is_beyond_limit());
        is_without_request && is_place_needed.as_mut().poll(context).is_ready()
    };
    poll_fn(|context| {
        // Its place is taken, even if a first request arrives now: otherwise a network could exceed its share.
        if !progress.stage().1 && makes_room(context) {
            return Poll::Ready(Ended::WhileIdle);
        }
        // Polled first: a request that has arrived is served before a stop closes idle connections.
        if Pin::new(&mut *connection).poll(context).is_ready() {
            return Poll::Ready(Ended::Closed);
        }
        progress.release_sent();
        if makes_room(context) {
            return Poll::Ready(Ended::WhileIdle);
        }
        let (stage, has_begun) = progress.stage();
        let is_idle = matches!(stage, Stage::Idle { .. });
        match stop.poll(closing.as_mut(), is_idle, has_begun, settle, context) {
            Poll::Ready(Ending::AtOnce) => return Poll::Ready(Ended::WhileIdle),
            Poll::Ready(Ending::WithRequest) => {
                Pin::new(&mut *connection).graceful_shutdown();
                // Polls the connection again.
                context.waker().wake_by_ref();
            }
            Poll::Pending => {}
        }
        // Last: a request that has arrived by now wins over a deadline that has passed.
        poll_deadline(progress, alarm.as_mut(), context).map(|()| Ended::TimedOut)
    })
    .await
}

/// During a stop, asks the client to close the connection.
fn announce_close(headers: &mut HeaderMap, phase: Phase) {
    if phase != Phase::Serving {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

/// Closes a connection that has ended.
async fn finish(ended: Ended, progress: &Progress, stream: impl AsyncRead + AsyncWrite + Unpin) {
    let (stage, saw_end) = {
        let state = progress.state.lock();
        (state.stage, state.saw_end)
    };
    match (ended, stage) {
        // Once the client has closed its side, nothing can be unread, and a close does not reset.
        (Ended::Closed, _) if !saw_end => linger(stream).await,
        // Only within a head: before its first byte no response is expected, and within one a 408 would be its body.
        (Ended::TimedOut, Stage::Head { .. }) => send_timeout_response(stream).await,
        _ => {}
    }
}

/// Ready once the connection's deadline has passed. The timer is reset only if it would fire too late, so that a
/// request that arrives in one piece costs no timer operation.
fn poll_deadline(
    progress: &Progress,
    mut alarm: Pin<&mut Sleep>,
    context: &mut Context<'_>,
) -> Poll<()> {
    let Some(deadline) = progress.deadline() else {
        return Poll::Pending;
    };
    if alarm.deadline() > deadline || alarm.is_elapsed() {
        alarm.as_mut().reset(deadline);
    }
    // The timer may have fired for an earlier deadline, which progress has moved.
    while alarm.as_mut().poll(context).is_ready() {
        if Instant::now() >= deadline {
            return Poll::Ready(());
        }
        alarm.as_mut().reset(deadline);
    }
    Poll::Pending
}

async fn linger(mut stream: impl AsyncRead + Unpin) {
    let read_rest = async {
        let mut piece = [0; 4096];
        let mut rest = 0;
        while rest < MAX_LINGER_BYTES {
            match stream.read(&mut piece).await {
                Ok(length) if length > 0 => rest += length,
                _ => return,
            }
        }
    };
    // On timeout the client has had time to read the response.
    let _ = timeout(LINGER, read_rest).await;
}

async fn send_timeout_response(mut stream: impl AsyncWrite + Unpin) {
    let sent = async {
        stream.write_all(TIMED_OUT).await?;
        stream.shutdown().await
    };
    // The client may have disconnected.
    let _ = timeout(LINGER, sent).await;
}
