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
use crate::emit::sanitise::visible;

/// Wait after the first error of a row; each further one doubles it.
const MIN_WAIT: Duration = Duration::from_millis(10);
/// Longest wait between two attempts, after which a peer would give up or be annoyed.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// Errors that come and go, as when descriptors run out under load, are told so often.
const MAX_WARNINGS_A_MINUTE: u32 = 1;

/// Longest name of a socket in a diagnostic; no path of one is longer.
const MAX_NAME_CHARS: usize = 200;

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
        let name = visible(&raw.to_string(), MAX_NAME_CHARS).to_string();
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
    use std::env;
    use std::fs;
    use std::io::Write;
    use std::net::TcpStream;
    use std::process::Command;

    use nix::sys::resource::{Resource, setrlimit};
    use tokio::sync::mpsc;
    use tokio_util::task::TaskTracker;

    use super::super::{Activated, ListenProgress, Listeners, tests::options};
    use super::*;
    use crate::source::Message;

    /// Set where a test runs once more, in a process whose descriptors it may use up.
    const APART: &str = "TRACECHECK_TEST_APART";

    /// How many connections there are before one is accepted.
    const WAITING: usize = 10;

    #[test]
    fn connections_are_not_lost_where_descriptors_run_out() {
        if env::var_os(APART).is_some() {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(run_out_of_descriptors());
            return;
        }
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "--test-threads=1"])
            .arg(
                "source::listen::accept::tests::connections_are_not_lost_where_descriptors_run_out",
            )
            .env(APART, "yes")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("1 passed"), "{text}");
    }

    async fn run_out_of_descriptors() {
        let listeners = Listeners::bind(options(&["tcp:127.0.0.1:0"]), Activated::default());
        let listeners = listeners.unwrap();
        let name = listeners.bound[0].listener.to_string();
        let address = name.strip_prefix("tcp:").unwrap();
        let (messages, mut received) = mpsc::channel(4);
        let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
        let progress = Arc::new(ListenProgress::default());
        let _listening = listeners.serve(messages, stop, progress, tracker).unwrap();
        // Nothing is accepted while this task does not wait.
        let mut clients = Vec::new();
        for _ in 0..WAITING {
            let mut client = TcpStream::connect(address).unwrap();
            client.write_all(b"line\n").unwrap();
            clients.push(client);
        }
        let open = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
        setrlimit(Resource::RLIMIT_NOFILE, open + 1, open + 1).unwrap();

        let (mut lines, mut ends) = (0, 0);
        while ends < WAITING {
            let next = tokio::time::timeout(Duration::from_secs(5), received.recv());
            match next.await.unwrap().unwrap() {
                Message::Bytes { .. } => {
                    lines += 1;
                    // Closes the first that is open, and so makes room for the next.
                    drop(clients.remove(0));
                }
                Message::Ended { .. } => ends += 1,
                Message::Opened(_) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(lines, WAITING);
    }

    #[test]
    fn waits_grow_to_a_second() {
        let mut wait = Wait::default();
        let waits: Vec<_> = (0..9).map(|_| wait.next().as_millis()).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
    }
}
