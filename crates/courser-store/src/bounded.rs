//! A connection that takes no more than its questions can be answered with. The library keeps what it reads until an
//! answer is complete, so a server that sends without end would fill the memory.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::answer::MAX_VALUE_LEN;

/// A stream that is read for as much as was asked for.
pub(crate) struct Bounded<S> {
    stream: S,
    /// Bytes that may still come.
    allowance: usize,
}

impl<S> Bounded<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, allowance: SOME_ANSWERS }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        let read = buf.filled().len() - before;
        match this.allowance.checked_sub(read) {
            Some(left) => this.allowance = left,
            None => {
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "it sends more than it was asked for",
                )));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.stream).poll_write(cx, bytes))?;
        let answers = (written / SHORTEST_COMMAND + 1).saturating_mul(LONGEST_ANSWER);
        this.allowance = this.allowance.saturating_add(answers).min(MOST);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

/// The longest greeting of a server, in bytes.
const SOME_ANSWERS: usize = 64 * 1024;
/// `PING`, as it is on the wire.
const SHORTEST_COMMAND: usize = 14;
/// A value, and what stands before and after it.
const LONGEST_ANSWER: usize = MAX_VALUE_LEN + 64;
/// Answers to as many questions as are under way at a time on a busy worker; what a server without measure can have of our
/// memory.
const MOST: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn as_much_comes_as_was_asked_for() {
        let (ours, mut theirs) = duplex(1 << 16);
        let mut ours = Bounded::new(ours);
        let sending = async move {
            let mut sent = 0;
            while sent < 2 * MOST && theirs.write_all(&[b'x'; 4096]).await.is_ok() {
                sent += 4096;
            }
        };
        let reading = async move {
            ours.write_all(&[b'?'; 100]).await.unwrap();
            let (mut room, mut taken) = (vec![0; 4096], 0);
            let error = loop {
                match ours.read(&mut room).await {
                    Ok(read) => taken += read,
                    Err(error) => break error,
                }
            };
            (taken, error.to_string())
        };
        let (_, (taken, error)) = tokio::join!(sending, reading);
        let allowed = SOME_ANSWERS + 8 * LONGEST_ANSWER;
        assert!(taken <= allowed && taken + 4096 > allowed, "{taken} of {allowed}");
        assert!(error.contains("more than it was asked for"), "{error}");
    }
}
