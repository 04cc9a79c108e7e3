//! Ends writes that make no progress, whatever is being written: pingora limits bodies only.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Sleep, sleep};

/// Watches over the writes of one connection.
#[derive(Debug)]
pub struct Stall {
    patience: Duration,
    /// Runs while the other end takes nothing.
    limit: Option<Pin<Box<Sleep>>>,
}

impl Stall {
    /// The other end may take nothing for so long.
    #[must_use]
    pub fn new(patience: Duration) -> Self {
        Self {
            patience,
            limit: None,
        }
    }

    /// What a write came to, or, once it has come to nothing for too long, an error.
    pub fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        write: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if write.is_ready() {
            self.limit = None;
            return write;
        }
        let limit = self
            .limit
            .get_or_insert_with(|| Box::pin(sleep(self.patience)));
        limit
            .as_mut()
            .poll(context)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn a_write_that_makes_no_progress_ends() {
        let mut stall = Stall::new(Duration::from_millis(20));
        let ended = poll_fn(|context| stall.watch::<()>(context, Poll::Pending)).await;
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn progress_begins_the_wait_anew() {
        let mut stall = Stall::new(Duration::from_secs(3600));
        let mut polls = 0;
        let written = poll_fn(|context| {
            polls += 1;
            let write = if polls < 3 {
                context.waker().wake_by_ref();
                Poll::Pending
            } else {
                Poll::Ready(Ok(polls))
            };
            stall.watch(context, write)
        });
        assert_eq!(written.await.unwrap(), 3);
        assert!(stall.limit.is_none());
    }
}
