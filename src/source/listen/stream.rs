//! The three kinds of streams, read in one way: wait until something came, then take what is there.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

/// How long a goodbye may take; the peer may not be reading.
const MAX_GOODBYE: Duration = Duration::from_secs(1);

/// What is read.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

impl Stream {
    /// Waits until something came: bytes, the end or an error. With TLS it may be less than what
    /// gives a byte, and what came before may not have been taken whole: see
    /// [`keeps_back`](Stream::keeps_back).
    pub(super) async fn ready(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.readable().await,
            Stream::Tls(stream) => stream.get_ref().0.readable().await,
            Stream::Unix(stream) => stream.readable().await,
        }
    }

    /// Whether there may be decrypted bytes that [`ready`](Stream::ready) does not know of, until
    /// [`take`](Stream::take) finds nothing.
    pub(super) fn keeps_back(&self) -> bool {
        matches!(self, Stream::Tls(_))
    }

    /// Appends what is there, as far as the buffer's capacity goes, and does not wait: none if
    /// nothing is there, 0 at the end. TLS that ends without saying so is an error, as somebody on
    /// the way may have cut it.
    pub(super) async fn take(&mut self, buffer: &mut Vec<u8>) -> Option<io::Result<usize>> {
        match self {
            Stream::Tcp(stream) => at_once(stream.read_buf(buffer)).await,
            Stream::Tls(stream) => at_once(stream.read_buf(buffer)).await,
            Stream::Unix(stream) => at_once(stream.read_buf(buffer)).await,
        }
    }

    /// Closes in good order after the peer has.
    pub(super) async fn close(self) {
        if let Stream::Tls(mut stream) = self {
            // A peer that does not take the goodbye goes without.
            let _ = timeout(MAX_GOODBYE, stream.shutdown()).await;
        }
    }
}

/// What the future gives when it is asked once.
async fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}
