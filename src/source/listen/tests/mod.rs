//! Real sockets, with a receiver in the engine's place.

mod reload;
mod tcp;
mod tls;
mod unix;

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use super::super::SourceKind;
use super::super::message::{Chunk, SourceId};
use super::bind::RawListener;
use super::*;

/// Longest wait for anything that has to come.
const DEADLINE: Duration = Duration::from_secs(5);
/// What a source may wait for while others are busy or silent.
const SOON: Duration = Duration::from_secs(1);
const CHANNEL_MESSAGES: usize = 4;

pub(super) fn options(addresses: &[&str]) -> ListenOptions {
    let addresses = addresses.iter().map(|text| text.parse().unwrap());
    ListenOptions {
        addresses: addresses.collect(),
        tls: None,
        insecure: false,
        max_connections: DEFAULT_MAX_CONNECTIONS,
        connection_idle: None,
        unix_mode: DEFAULT_UNIX_MODE,
        unix_owner: None,
    }
}

fn local(taking: &RawListener) -> Option<SocketAddr> {
    match taking {
        RawListener::Tcp(listener) => listener.local_addr().ok(),
        RawListener::Unix(_) => None,
    }
}

/// Sockets that are listened on, and what has come of them.
struct Fixture {
    listening: Listening,
    /// Of the TCP sockets.
    ports: Vec<SocketAddr>,
    messages: mpsc::Sender<Message>,
    received: Received,
    stop: CancellationToken,
    tracker: TaskTracker,
    progress: Arc<ListenProgress>,
}

impl Fixture {
    fn new(addresses: &[&str]) -> Fixture {
        Fixture::with(options(addresses), Activated::default())
    }

    fn with(options: ListenOptions, activated: Activated) -> Fixture {
        let listeners = Listeners::bind(options, activated).unwrap();
        let listening = listeners.bound.iter();
        let ports = listening
            .filter_map(|bound| local(&bound.listener))
            .collect();
        let (messages, receiver) = mpsc::channel(CHANNEL_MESSAGES);
        let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
        let progress = Arc::new(ListenProgress::default());
        let listening = listeners
            .serve(
                messages.clone(),
                stop.clone(),
                Arc::clone(&progress),
                tracker.clone(),
            )
            .unwrap();
        Fixture {
            listening,
            ports,
            messages,
            received: Received::new(receiver),
            stop,
            tracker,
            progress,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.ports[0]).await.unwrap()
    }

    /// Stops, and waits until nothing is left.
    async fn stop(&mut self) {
        self.stop.cancel();
        self.tracker.close();
        timeout(DEADLINE, self.tracker.wait()).await.unwrap();
        assert_eq!(self.progress.open(SourceKind::Tcp), 0);
        assert_eq!(self.progress.open(SourceKind::Unix), 0);
    }
}

/// What came through the channel, checked for order.
struct Received {
    receiver: Receiver<Message>,
    names: HashMap<SourceId, String>,
    origins: HashSet<u128>,
    kinds: HashMap<String, SourceKind>,
    texts: HashMap<String, Vec<u8>>,
    /// Ends in good order, and errors.
    ends: HashMap<String, Result<String, String>>,
    ticks: u64,
}

impl Received {
    fn new(receiver: Receiver<Message>) -> Received {
        Received {
            receiver,
            names: HashMap::new(),
            origins: HashSet::new(),
            kinds: HashMap::new(),
            texts: HashMap::new(),
            ends: HashMap::new(),
            ticks: 0,
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Opened(opened) => {
                let name = opened.source.name.to_string();
                assert!(self.origins.insert(opened.source.origin));
                assert!(self.names.insert(opened.id, name.clone()).is_none());
                self.kinds.insert(name.clone(), opened.kind);
                self.texts.insert(name.clone(), Vec::new());
                self.ends.remove(&name);
            }
            Message::Bytes {
                id, chunk, read, ..
            } => {
                let bytes = chunk.bytes();
                assert_eq!(bytes.len() as u64, read);
                if let Chunk::Bytes(bytes) = &chunk {
                    assert!(bytes.capacity() < 2 * bytes.len() + 64, "mostly empty");
                }
                let text = self.texts.get_mut(&self.names[&id]);
                text.expect("bytes come after the opening").extend(bytes);
            }
            Message::Ended { id, message, .. } => {
                let name = self.names.remove(&id).unwrap();
                self.ends.insert(name, Ok(message));
            }
            Message::Failed {
                id,
                name,
                error,
                is_final,
            } => {
                assert!(!is_final);
                assert_eq!(self.names.remove(&id.unwrap()), Some(name.clone()));
                self.ends.insert(name, Err(error));
            }
            Message::Tick => self.ticks += 1,
            Message::Gone(_) | Message::Reload | Message::Stop => {
                panic!("connections are no files and do not steer a run")
            }
        }
    }

    async fn until(&mut self, limit: Duration, condition: impl Fn(&Received) -> bool) {
        let start = Instant::now();
        while !condition(self) {
            let left = limit.saturating_sub(start.elapsed());
            let Ok(message) = timeout(left, self.receiver.recv()).await else {
                panic!("not in time; there is {:?} {:?}", self.lines(), self.ends);
            };
            self.take(message.expect("the fixture holds a sender"));
        }
    }

    async fn text(&mut self, expected: &str) {
        self.until(DEADLINE, |received| received.has(expected))
            .await;
    }

    fn has(&self, text: &str) -> bool {
        self.texts.values().any(|one| one == text.as_bytes())
    }

    /// Waits for as many ends as that.
    async fn ended(&mut self, count: usize) {
        self.until(DEADLINE, |received| received.ends.len() >= count)
            .await;
    }

    /// Everything that came, short enough to be shown.
    fn lines(&self) -> Vec<String> {
        let shown = |text: &Vec<u8>| String::from_utf8_lossy(&text[..text.len().min(80)]).into();
        self.texts.values().map(shown).collect()
    }
}
