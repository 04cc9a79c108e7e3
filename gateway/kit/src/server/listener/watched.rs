//! Wrappers of a stream and a response body that record progress.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::progress::Progress;

/// A stream that records its reads and writes.
pub(super) struct WatchedStream<S> {
    pub(super) stream: S,
    /// Bytes that were read from it before, and come first.
    first: Bytes,
    progress: Arc<Progress>,
}

impl<S> WatchedStream<S> {
    pub(super) fn new(stream: S, first: Bytes, progress: &Arc<Progress>) -> Self {
        Self {
            stream,
            first,
            progress: Arc::clone(progress),
        }
    }

    fn watch<T>(&self, write: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.progress.write(write.is_pending());
        write
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if self.first.is_empty() {
            ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        } else {
            let length = self.first.len().min(buffer.remaining());
            buffer.put_slice(&self.first[..length]);
            self.first.advance(length);
        }
        // Bytes that were read ahead count now: they begin the timeout of a head.
        self.progress.read(buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A response body. Its drop ends the request: hyper drops it once it has taken all of it.
pub(super) struct WatchedBody<B> {
    body: Pin<Box<B>>,
    progress: Arc<Progress>,
}

impl<B> WatchedBody<B> {
    pub(super) fn new(body: B, progress: Arc<Progress>) -> Self {
        Self {
            body: Box::pin(body),
            progress,
        }
    }
}

impl<B: Body<Data = Bytes>> Body for WatchedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        self.body.as_mut().poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for WatchedBody<B> {
    fn drop(&mut self) {
        self.progress.end_request();
    }
}
