//! Connections over TCP and Unix sockets, each a source.
//!
//! ```text
//! addresses ──> bound sockets ──> accepted ──> (TLS) ──> messages
//!  address       bind              accept       tls       connection
//!                socket_file       slots
//!                activated
//! ```

mod accept;
mod activated;
mod address;
#[cfg(test)]
mod authority;
mod bind;
mod connection;
mod fault;
mod permissions;
mod progress;
mod slots;
mod socket_file;
mod sparing;
mod stream;
mod tls;

pub(crate) use activated::Activated;
pub(crate) use address::Address;
pub(crate) use fault::Fault;
pub(crate) use permissions::Owner;
pub(crate) use permissions::parse_mode;
pub(crate) use progress::ListenProgress;
pub(crate) use tls::TlsFiles;

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::accept::Listener;
use self::bind::{Bound, Endpoint, REACHABLE, Wanted, resolve};
use self::slots::{Slots, connections_that_fit};
use self::socket_file::{Access, SocketFile};
use self::sparing::Sparing;
use super::Message;

/// Many times what one machine's agents open, and a few kilobytes each while they are idle.
pub(crate) const DEFAULT_MAX_CONNECTIONS: usize = 4096;

/// Who has the socket's user or group may connect, and nobody else.
pub(crate) const DEFAULT_UNIX_MODE: u32 = 0o660;

/// Refused handshakes that are told of one by one. Anybody who can reach the port can cause them.
const MAX_REFUSALS_TOLD_A_MINUTE: u32 = 5;

/// What to listen on and how.
#[derive(Clone, Debug)]
pub(crate) struct ListenOptions {
    pub(crate) addresses: Vec<Address>,
    /// Mutual TLS for TCP, on every address.
    pub(crate) tls: Option<TlsFiles>,
    /// Whether strangers may connect.
    pub(crate) insecure: bool,
    /// While so many are open, further ones wait.
    pub(crate) max_connections: usize,
    /// After that long without a byte a connection is closed. A change holds for connections that
    /// come after it.
    pub(crate) connection_idle: Option<Duration>,
    pub(crate) unix_mode: u32,
    pub(crate) unix_owner: Option<Owner>,
}

/// Sockets that are bound: peers can connect, and wait.
#[derive(Debug)]
pub(crate) struct Listeners {
    options: ListenOptions,
    tls: Option<Arc<ServerConfig>>,
    bound: Vec<Bound>,
}

/// Sockets that connections are taken from.
#[derive(Debug)]
pub(crate) struct Listening {
    options: ListenOptions,
    shared: Arc<Shared>,
    taking: Vec<Taking>,
}

/// A socket, and the task that takes connections from it.
#[derive(Debug)]
struct Taking {
    /// None if it was passed on by systemd.
    endpoint: Option<Endpoint>,
    file: Option<SocketFile>,
    is_reachable: bool,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    settings: watch::Sender<Settings>,
    slots: Arc<Slots>,
    messages: mpsc::Sender<Message>,
    progress: Arc<ListenProgress>,
    tracker: TaskTracker,
    stop: CancellationToken,
    /// How many there were.
    unix_connections: AtomicU64,
    refusals: Mutex<Sparing>,
}

/// What a connection is to go by when it is accepted.
#[derive(Clone, Debug)]
struct Settings {
    tls: Option<Arc<ServerConfig>>,
    connection_idle: Option<Duration>,
}

/// What the options ask for, looked up and read, and nothing bound yet.
#[derive(Debug, Default)]
struct Prepared {
    tls: Option<Arc<ServerConfig>>,
    wanted: Vec<Wanted>,
}

impl ListenOptions {
    /// Whether other machines may reach the sockets: clients show who they are, or it is meant.
    fn may_be_reachable(&self) -> bool {
        self.tls.is_some() || self.insecure
    }

    fn access(&self) -> Access {
        Access {
            mode: self.unix_mode,
            owner: self.unix_owner,
        }
    }

    /// Does what needs no socket.
    fn prepare(&self) -> Result<Prepared, Vec<Fault>> {
        let tls = self.tls.as_ref().map(tls::server_config).transpose();
        let wanted = resolve(&self.addresses, self.may_be_reachable());
        match (tls, wanted) {
            (Ok(tls), Ok(wanted)) => Ok(Prepared { tls, wanted }),
            (tls, wanted) => Err([tls.err(), wanted.err()]
                .into_iter()
                .flatten()
                .flatten()
                .collect()),
        }
    }
}

impl Listeners {
    /// Binds everything, before anything is accepted. Names are looked up, which may take a while.
    ///
    /// # Errors
    ///
    /// Everything that stands in the way; then nothing stays bound.
    pub(crate) fn bind(
        options: ListenOptions,
        activated: Activated,
    ) -> Result<Listeners, Vec<Fault>> {
        let (passed, mut faults) = activated.into_parts();
        for listener in &passed {
            if listener.is_reachable() && !options.may_be_reachable() {
                faults.push(Fault::new(listener, REACHABLE));
            }
        }
        let Prepared { tls, wanted } = options.prepare().unwrap_or_else(|more| {
            faults.extend(more);
            Prepared::default()
        });
        let mut bound: Vec<_> = passed.into_iter().map(Bound::passed_on).collect();
        match bind_all(&wanted, |_| false, options.access()) {
            Ok(new) => bound.extend(new),
            Err(more) => faults.extend(more),
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Listeners {
            options,
            tls,
            bound,
        })
    }

    /// Takes connections until `stop` is cancelled, on the current runtime; then the sockets' files
    /// are removed, and connections are dropped with what was not read of them. All of that has
    /// happened when `tracker` is empty.
    ///
    /// # Errors
    ///
    /// If the runtime cannot watch a socket.
    pub(crate) fn serve(
        self,
        messages: mpsc::Sender<Message>,
        stop: CancellationToken,
        progress: Arc<ListenProgress>,
        tracker: TaskTracker,
    ) -> io::Result<Listening> {
        let settings = Settings {
            tls: self.tls,
            connection_idle: self.options.connection_idle,
        };
        let shared = Arc::new(Shared {
            settings: watch::Sender::new(settings),
            slots: Slots::new(connections_that_fit(self.options.max_connections)),
            messages,
            progress,
            tracker,
            stop,
            unix_connections: AtomicU64::new(0),
            refusals: Mutex::new(Sparing::new(MAX_REFUSALS_TOLD_A_MINUTE)),
        });
        let ready = make_ready(self.bound)?;
        let taking = ready.into_iter().map(|one| one.start(&shared)).collect();
        Ok(Listening {
            options: self.options,
            shared,
            taking,
        })
    }
}

impl Listening {
    /// Goes over to other options: what is new is bound before what is gone is let go of. What
    /// stays is not touched, TLS files are read again, and open connections go on as they are.
    /// Sockets that systemd passed on stay.
    ///
    /// # Errors
    ///
    /// Everything that stands in the way; then nothing has changed.
    pub(crate) async fn reload(&mut self, options: ListenOptions) -> Result<(), Vec<Fault>> {
        let Prepared { tls, wanted } = options.prepare()?;
        let passed_on = self.taking.iter().filter(|one| one.endpoint.is_none());
        let faults: Vec<_> = passed_on
            .filter(|one| one.is_reachable && !options.may_be_reachable())
            .map(|_| Fault::new("a socket passed on by systemd", REACHABLE))
            .collect();
        if !faults.is_empty() {
            return Err(faults);
        }
        let new = bind_all(&wanted, |endpoint| self.takes(endpoint), options.access())?;
        let ready =
            make_ready(new).map_err(|error| vec![Fault::new("the runtime", error.to_string())])?;
        let stays = |one: &Taking| {
            let endpoint = one.endpoint.as_ref();
            one.is_in_place() && endpoint.is_none_or(|endpoint| is_wanted(&wanted, endpoint))
        };
        let (kept, gone): (Vec<_>, Vec<_>) = self.taking.drain(..).partition(stays);
        self.taking = kept;
        if let Err(faults) = self.admit(&options) {
            self.taking.extend(gone);
            return Err(faults);
        }

        self.shared.settings.send_replace(Settings {
            tls,
            connection_idle: options.connection_idle,
        });
        let max = connections_that_fit(options.max_connections);
        self.shared.slots.set_max(max);
        self.options = options;
        let new = ready.into_iter().map(|one| one.start(&self.shared));
        self.taking.extend(new);
        for one in gone {
            one.stop.cancel();
            // It panicked, and has stopped all the same.
            let _ = one.task.await;
        }
        Ok(())
    }

    /// Whether connections are taken from that endpoint. A socket whose file is gone has to be bound
    /// once more.
    fn takes(&self, endpoint: &Endpoint) -> bool {
        self.taking
            .iter()
            .any(|one| one.endpoint.as_ref() == Some(endpoint) && one.is_in_place())
    }

    /// Gives the files of sockets the mode and owner that are asked for, or leaves them all as they
    /// are.
    fn admit(&self, options: &ListenOptions) -> Result<(), Vec<Fault>> {
        let (before, after) = (self.options.access(), options.access());
        if before == after {
            return Ok(());
        }
        let files = || self.taking.iter().filter_map(|one| one.file.as_ref());
        let faults: Vec<_> = files()
            .filter_map(|file| {
                let problem = file.admit(after).err()?;
                Some(Fault::new(file, problem))
            })
            .collect();
        if faults.is_empty() {
            return Ok(());
        }
        for file in files() {
            if let Err(error) = file.admit(before) {
                tracing::warn!("{file}: {error}");
            }
        }
        Err(faults)
    }
}

impl Taking {
    /// Whether peers can find it.
    fn is_in_place(&self) -> bool {
        self.file.as_ref().is_none_or(SocketFile::is_in_place)
    }
}

fn is_wanted(wanted: &[Wanted], endpoint: &Endpoint) -> bool {
    wanted.iter().any(|one| one.endpoints.contains(endpoint))
}

fn bind_all(
    wanted: &[Wanted],
    is_kept: impl Fn(&Endpoint) -> bool,
    access: Access,
) -> Result<Vec<Bound>, Vec<Fault>> {
    let mut bound = Vec::new();
    let mut faults = Vec::new();
    for one in wanted {
        match one.listen(&is_kept, access) {
            Ok(listeners) => bound.extend(listeners),
            Err(fault) => faults.push(fault),
        }
    }
    match faults.is_empty() {
        true => Ok(bound),
        false => Err(faults),
    }
}

/// A socket of the runtime, and what is known of it.
struct Ready {
    endpoint: Option<Endpoint>,
    file: Option<SocketFile>,
    is_reachable: bool,
    listener: Listener,
}

fn make_ready(bound: Vec<Bound>) -> io::Result<Vec<Ready>> {
    let ready = |one: Bound| {
        Ok(Ready {
            endpoint: one.endpoint,
            file: one.removal.as_ref().map(|removal| removal.file().clone()),
            is_reachable: one.listener.is_reachable(),
            listener: Listener::new(one.listener, one.removal)?,
        })
    };
    bound.into_iter().map(ready).collect()
}

impl Ready {
    fn start(self, shared: &Arc<Shared>) -> Taking {
        let stop = shared.stop.child_token();
        let task = self.listener.accept_all(Arc::clone(shared), stop.clone());
        Taking {
            endpoint: self.endpoint,
            file: self.file,
            is_reachable: self.is_reachable,
            stop,
            task: shared.tracker.spawn(task),
        }
    }
}

#[cfg(test)]
mod tests;
