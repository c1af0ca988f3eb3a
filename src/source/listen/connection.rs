//! One connection: a source from its first byte to its end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::socket::{setsockopt, sockopt};
use rustls::ServerConfig;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc::{self, Permit};
use tokio::time::{self, timeout};
use tokio_rustls::TlsAcceptor;
use tracecheck::Source;
use tracecheck::event::SourceState;
use tracecheck::framing::Position;
use xxhash_rust::xxh3::xxh3_128;

use super::super::SourceKind;
use super::super::message::{Chunk, Follows, Message, Opened, SourceId};
use super::Shared;
use super::progress::OpenConnection;
use super::slots::Slot;
use super::stream::Stream;
use crate::emit::sanitise::visible;

/// Most that one turn takes: enough to be fast, and little enough that every source's turn comes
/// soon.
const MAX_TURN_BYTES: usize = 64 << 10;

/// Longest a peer may take to show its certificate; it takes a few round trips.
const MAX_HANDSHAKE: Duration = Duration::from_secs(10);

/// Silence after which a TCP peer is asked whether it is still there, how often, and how many
/// times: one whose machine is gone is noticed after two minutes and does not keep its place.
const KEEPALIVE_IDLE_SECONDS: u32 = 60;
const KEEPALIVE_INTERVAL_SECONDS: u32 = 10;
const KEEPALIVE_PROBES: u32 = 6;

/// Longest text of an error; TLS quotes what the peer sent.
const MAX_ERROR_CHARS: usize = 400;

/// What was accepted.
#[derive(Debug)]
pub(super) enum Accepted {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

/// Reads the connection to its end, or until the process stops reading.
pub(super) async fn serve(accepted: Accepted, slot: Slot, shared: Arc<Shared>) {
    let served = shared.stop.run_until_cancelled(read(accepted, &shared));
    // An error says that nobody listens any more, and then there is nobody to tell.
    let _ = served.await;
    drop(slot);
}

/// Nobody listens any more.
struct Unheard;

async fn read(accepted: Accepted, shared: &Shared) -> Result<(), Unheard> {
    let settings = shared.settings.borrow().clone();
    let (name, kind, stream) = match accepted {
        Accepted::Tcp(stream, peer) => {
            let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
            keep_alive(&stream);
            let stream = match settings.tls {
                None => Stream::Tcp(stream),
                Some(config) => match shake_hands(stream, config).await {
                    Ok(stream) => stream,
                    Err(error) => {
                        tell_refused(shared, peer, &error);
                        return Ok(());
                    }
                },
            };
            (format!("tcp:{peer}"), SourceKind::Tcp, stream)
        }
        Accepted::Unix(stream) => {
            let number = shared.unix_connections.fetch_add(1, Ordering::Relaxed) + 1;
            (
                format!("unix:{number}"),
                SourceKind::Unix,
                Stream::Unix(stream),
            )
        }
    };
    let connection = Connection {
        id: SourceId::next(),
        name,
        kind,
        stream,
        messages: &shared.messages,
        open: shared.progress.count(kind),
        max_idle: settings.connection_idle,
    };
    connection.read().await
}

/// Errors leave the socket as it was, and it works without.
fn keep_alive(stream: &TcpStream) {
    let _ = setsockopt(stream, sockopt::KeepAlive, &true);
    let _ = setsockopt(stream, sockopt::TcpKeepIdle, &KEEPALIVE_IDLE_SECONDS);
    let _ = setsockopt(
        stream,
        sockopt::TcpKeepInterval,
        &KEEPALIVE_INTERVAL_SECONDS,
    );
    let _ = setsockopt(stream, sockopt::TcpKeepCount, &KEEPALIVE_PROBES);
}

async fn shake_hands(stream: TcpStream, config: Arc<ServerConfig>) -> io::Result<Stream> {
    let handshake = TlsAcceptor::from(config).accept(stream);
    match timeout(MAX_HANDSHAKE, handshake).await {
        Ok(stream) => stream.map(|stream| Stream::Tls(Box::new(stream))),
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no end after {} seconds", MAX_HANDSHAKE.as_secs()),
        )),
    }
}

fn tell_refused(shared: &Shared, peer: SocketAddr, error: &io::Error) {
    let untold = shared
        .refusals
        .lock()
        .expect("nobody panics with it in hand")
        .admit(Instant::now());
    let error = error.to_string();
    let error = visible(&error, MAX_ERROR_CHARS);
    match untold {
        None => {}
        Some(0) => tracing::warn!("tcp:{peer}: refused, as the TLS handshake failed: {error}"),
        Some(untold) => tracing::warn!(
            "tcp:{peer}: refused, as the TLS handshake failed: {error} ({untold} more were refused \
             since the last such message)"
        ),
    }
}

struct Connection<'s> {
    id: SourceId,
    name: String,
    kind: SourceKind,
    stream: Stream,
    messages: &'s mpsc::Sender<Message>,
    open: OpenConnection<'s>,
    max_idle: Option<Duration>,
}

/// How a connection ended.
enum End {
    Closed,
    Failed(String),
}

impl Connection<'_> {
    async fn read(mut self) -> Result<(), Unheard> {
        let opened = self.opened(SystemTime::now());
        permit(self.messages).await?.send(opened);
        let end = self.read_to_end().await?;
        let permit = permit(self.messages).await?;
        match end {
            End::Closed => {
                permit.send(Message::Ended {
                    id: self.id,
                    state: SourceState::Closed,
                    message: "the peer closed it".to_owned(),
                });
                self.stream.close().await;
            }
            End::Failed(error) => permit.send(Message::Failed {
                id: Some(self.id),
                name: self.name,
                error,
                is_final: false,
            }),
        }
        Ok(())
    }

    fn opened(&self, now: SystemTime) -> Message {
        Message::Opened(Box::new(Opened {
            id: self.id,
            source: Source {
                name: Arc::from(&*self.name),
                origin: origin(&self.name, self.id, now),
                is_resumable: false,
            },
            kind: self.kind,
            start: Position::START,
            file: None,
            follows: Follows::Nothing,
        }))
    }

    /// Takes turns with all other sources: the channel gives its places in the order in which they
    /// were asked for, and nothing is read before there is one. So a peer that sends without end
    /// keeps nobody waiting for longer than its own turn takes, and one that is silent has no
    /// buffer.
    async fn read_to_end(&mut self) -> Result<End, Unheard> {
        let mut idle = Idle::new(self.max_idle);
        let mut is_known_ready = false;
        loop {
            if !is_known_ready {
                match idle.limit(self.stream.ready()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => return Ok(End::Failed(told(&error))),
                    Err(silence) => return Ok(End::Failed(silence)),
                }
            }
            let asked = time::Instant::now();
            let permit = permit(self.messages).await?;
            idle.pass_over(asked.elapsed());

            let mut bytes = Vec::with_capacity(MAX_TURN_BYTES);
            match self.stream.take(&mut bytes).await {
                None => is_known_ready = false,
                Some(Ok(0)) => return Ok(End::Closed),
                Some(Ok(_)) => {
                    let arrived = Instant::now();
                    idle.restart();
                    is_known_ready = self.stream.keeps_back();
                    bytes.shrink_to_fit();
                    self.open.add_bytes(bytes.len() as u64);
                    permit.send(Message::Bytes {
                        id: self.id,
                        read: bytes.len() as u64,
                        chunk: Chunk::Bytes(bytes),
                        arrived,
                    });
                }
                Some(Err(error)) => return Ok(End::Failed(told(&error))),
            }
        }
    }
}

/// A place in the channel.
async fn permit(messages: &mpsc::Sender<Message>) -> Result<Permit<'_, Message>, Unheard> {
    messages.reserve().await.map_err(|_| Unheard)
}

/// How long the peer may still be silent.
struct Idle {
    max: Option<Duration>,
    deadline: Option<time::Instant>,
}

impl Idle {
    fn new(max: Option<Duration>) -> Idle {
        let mut idle = Idle {
            max,
            deadline: None,
        };
        idle.restart();
        idle
    }

    fn restart(&mut self) {
        self.deadline = self
            .max
            .and_then(|max| time::Instant::now().checked_add(max));
    }

    /// Time in which nothing was read does not count: it was not the peer who was silent.
    fn pass_over(&mut self, time: Duration) {
        self.deadline = self
            .deadline
            .and_then(|deadline| deadline.checked_add(time));
    }

    /// What the future gives in time, or what is said of the silence.
    async fn limit<T>(&self, future: impl Future<Output = T>) -> Result<T, String> {
        let Some(deadline) = self.deadline else {
            return Ok(future.await);
        };
        time::timeout_at(deadline, future).await.map_err(|_| {
            let max = humantime::format_duration(self.max.unwrap_or_default());
            format!("no bytes for {max} (--connection-idle)")
        })
    }
}

/// Identity of a connection: no other has it, of this process or another.
fn origin(name: &str, id: SourceId, now: SystemTime) -> u128 {
    let nanos = now
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    xxh3_128(format!("{nanos} {id:?} {name}").as_bytes())
}

fn told(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            "TLS was cut off: the peer is gone without a close_notify".to_owned()
        }
        _ => visible(&error.to_string(), MAX_ERROR_CHARS).to_string(),
    }
}
