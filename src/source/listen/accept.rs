//! Taking connections from one listening socket.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::bind::RawListener;
use super::connection::{self, Accepted};
use super::socket_file::Removal;
use super::sparing::Sparing;

/// Wait after the first error of a row; each further one doubles it.
const MIN_WAIT: Duration = Duration::from_millis(10);
/// Longest wait between two attempts, after which a peer would give up or be annoyed.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// Errors that come and go, as when descriptors run out under load, are told so often.
const MAX_WARNINGS_A_MINUTE: u32 = 1;

/// A listening socket of the runtime.
#[derive(Debug)]
pub(super) struct Listener {
    name: String,
    /// Stands before the socket, as the file has to go first.
    removal: Option<Removal>,
    socket: Socket,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Makes a bound socket one of the current runtime.
    pub(super) fn new(raw: RawListener, removal: Option<Removal>) -> io::Result<Listener> {
        let name = raw.to_string();
        let socket = match raw {
            RawListener::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                Socket::Tcp(TcpListener::from_std(listener)?)
            }
            RawListener::Unix(listener) => {
                listener.set_nonblocking(true)?;
                Socket::Unix(UnixListener::from_std(listener)?)
            }
        };
        Ok(Listener {
            name,
            removal,
            socket,
        })
    }

    /// Accepts until `stop`. While there is no place for one more connection, at most one that was
    /// accepted waits here, unread; the others wait in the kernel.
    pub(super) async fn accept_all(self, shared: Arc<Shared>, stop: CancellationToken) {
        tracing::info!("{}: listening", self.name);
        stop.run_until_cancelled(self.accept_on(&shared)).await;
        tracing::info!("{}: no longer listening", self.name);
        drop(self.removal);
    }

    async fn accept_on(&self, shared: &Arc<Shared>) {
        let mut wait = Wait::default();
        let mut warnings = Sparing::new(MAX_WARNINGS_A_MINUTE);
        loop {
            match self.socket.accept().await {
                Ok(accepted) => {
                    wait = Wait::default();
                    let slot = shared.slots.take().await;
                    let served = connection::serve(accepted, slot, Arc::clone(shared));
                    shared.tracker.spawn(served);
                }
                Err(error) if is_the_peers(&error) => {}
                Err(error) => {
                    if warnings.admit(Instant::now()).is_some() {
                        tracing::warn!("{}: cannot accept connections: {error}", self.name);
                    }
                    tokio::time::sleep(wait.next()).await;
                }
            }
        }
    }
}

impl Socket {
    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Socket::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok(Accepted::Tcp(stream, peer))
            }
            Socket::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok(Accepted::Unix(stream))
            }
        }
    }
}

/// Whether the connection failed before it was accepted; the next one may be fine.
fn is_the_peers(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// How long to wait after an error.
#[derive(Debug, Default)]
struct Wait(Option<Duration>);

impl Wait {
    fn next(&mut self) -> Duration {
        let wait = self.0.map_or(MIN_WAIT, |wait| (wait * 2).min(MAX_WAIT));
        self.0 = Some(wait);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_second() {
        let mut wait = Wait::default();
        let waits: Vec<_> = (0..9).map(|_| wait.next().as_millis()).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
    }
}
