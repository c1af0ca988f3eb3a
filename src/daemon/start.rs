//! How a run that follows begins: what may stand in its way is got first, and told all together;
//! then its parts are started, and last what reads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant, SystemTime};

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Daemon, Readers, Start, paths, told};
use crate::checking::{Checker, Declaration};
use crate::config::{Config, Format, Input, Protocol};
use crate::emit::journal_socket::JournalSocket;
use crate::emit::queue::OutputQueue;
use crate::emit::stop::Stop;
use crate::emit::writer::{self, Stream, Target};
use crate::engine::Engine;
use crate::health::{Beat, Health, Phase};
use crate::metrics::{self, Metrics};
use crate::notify::{self, Notifier};
use crate::output::Output;
use crate::progress::Progress;
use crate::saving::{self, Saving};
use crate::signals;
use crate::source::follow::{FollowOptions, FollowProgress, follow, streams};
use crate::source::listen::{Activated, ListenProgress, Listeners, Listening};
use crate::source::{Archives, Message, Origin, SavedFile, read_all};
use crate::ticks;
use crate::watch::Watch;

/// Messages that wait for the engine. With the largest that connections send they take two
/// megabytes, and a turn of each of them some milliseconds.
const CHANNEL_MESSAGES: usize = 32;

/// Sockets, signals, timers and the endpoint need little, and the engine has its own thread.
const RUNTIME_THREADS: usize = 1;

/// How long the first look at all files is waited for; a disk that hangs should not keep the sockets
/// from being served.
const FIRST_LOOK: Duration = Duration::from_secs(10);

/// What others have too, or might refuse.
struct Resources {
    opened: Option<saving::Opened>,
    listeners: Option<Listeners>,
    endpoint: Option<TcpListener>,
    target: Target,
}

/// What every part looks at.
struct Shared {
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    stop: Stop,
    queue: Arc<OutputQueue>,
    queue_beat: Arc<AtomicU64>,
    notifier: Arc<Notifier>,
    /// Ends what takes from the world outside, and what tells of us, which goes on for longer.
    stop_reading: CancellationToken,
    stop_telling: CancellationToken,
    tracker: TaskTracker,
    follow_progress: Arc<FollowProgress>,
    listen_progress: Arc<ListenProgress>,
}

impl Resources {
    fn get(
        config: &Config,
        activated: Activated,
        runtime: &Runtime,
        queue: &Arc<OutputQueue>,
    ) -> Result<Resources, Vec<String>> {
        let opened = Saving::open(config, queue)?;
        let listeners = match config.listen.addresses.is_empty() && activated.is_empty() {
            true => None,
            false => Some(Listeners::bind(config.listen.clone(), activated).map_err(told)?),
        };
        let endpoint = match &config.metrics {
            Some(address) => {
                let bound = runtime.block_on(metrics::http::bind(address));
                Some(bound.map_err(|error| vec![format!("--metrics {address}: {error}")])?)
            }
            None => None,
        };
        Ok(Resources {
            opened,
            listeners,
            endpoint,
            target: target(config).map_err(one)?,
        })
    }
}

impl Shared {
    fn new(config: &Config) -> Shared {
        let now = Instant::now();
        let stop = Stop::default();
        let queue_beat = Arc::new(AtomicU64::new(0));
        Shared {
            metrics: Arc::new(Metrics::new(config.state_dir.is_some(), now)),
            health: Arc::new(Health::new(now)),
            queue: Arc::new(OutputQueue::new(stop.clone(), Arc::clone(&queue_beat))),
            queue_beat,
            stop,
            notifier: Arc::new(Notifier::from_env(|name| std::env::var_os(name))),
            stop_reading: CancellationToken::new(),
            stop_telling: CancellationToken::new(),
            tracker: TaskTracker::new(),
            follow_progress: Arc::new(FollowProgress::new()),
            listen_progress: Arc::new(ListenProgress::default()),
        }
    }

    /// The engine, with what was saved of it, and the files that were.
    fn engine(
        &self,
        config: &Arc<Config>,
        opened: Option<saving::Opened>,
        has_streams: bool,
    ) -> (Engine, Declaration, Option<Saving>, Vec<SavedFile>) {
        let (checker, declaration) = Checker::new(config);
        let output = Output::queued(config, Arc::clone(&self.queue), Progress::new(false, None));
        let mut engine = Engine::new(Arc::clone(config), checker, output);
        engine.measure(Arc::clone(&self.metrics));
        let (saving, files) = match opened {
            Some((saving, saved)) => {
                let files = engine.restore(saved, SystemTime::now());
                engine.lose_streams_in_a_crash(has_streams);
                (Some(saving), files)
            }
            None => (None, Vec::new()),
        };
        (engine, declaration, saving, files)
    }

    fn start_writer(&self, target: Target) -> io::Result<()> {
        let metrics = Arc::clone(&self.metrics);
        let note = move |took, events: u32| {
            let now = Instant::now();
            metrics.output.record(now - took, now, events.into());
        };
        writer::start(Arc::clone(&self.queue), target, note)
    }

    fn serve(&self, listeners: Listeners, sender: Sender<Message>) -> io::Result<Listening> {
        let progress = Arc::clone(&self.listen_progress);
        let stop = self.stop_reading.clone();
        listeners.serve(sender, stop, progress, self.tracker.clone())
    }

    /// Starts what tells of the run. Gives the beat of the engine.
    fn start_telling(
        &self,
        runtime: &Runtime,
        endpoint: Option<TcpListener>,
        saving: Option<&Saving>,
    ) -> Arc<Beat> {
        if let Some(endpoint) = endpoint {
            let (metrics, health) = (Arc::clone(&self.metrics), Arc::clone(&self.health));
            let stop = self.stop_telling.clone();
            runtime.spawn(metrics::http::serve(endpoint, metrics, health, stop));
        }
        let beat = self.health.part("the engine");
        let watch = Watch {
            engine: Arc::clone(&beat),
            health: Arc::clone(&self.health),
            metrics: Arc::clone(&self.metrics),
            queue: Arc::clone(&self.queue),
            queue_beat: Arc::clone(&self.queue_beat),
            follow: Arc::clone(&self.follow_progress),
            listen: Arc::clone(&self.listen_progress),
            checkpoints: saving.map(Saving::freshness),
        };
        watch.start(runtime, self.stop_telling.clone());
        beat
    }

    /// Starts what the run is told by others.
    fn start_hearing(
        &self,
        runtime: &Runtime,
        drain: Duration,
        sender: &Sender<Message>,
    ) -> io::Result<()> {
        let hands = signals::Hands {
            messages: sender.downgrade(),
            stop: self.stop.clone(),
            drain,
            stop_reading: self.stop_reading.clone(),
            notifier: Arc::clone(&self.notifier),
            health: Arc::clone(&self.health),
        };
        signals::follow(runtime, hands)?;
        ticks::start(sender.downgrade());
        Ok(())
    }
}

impl<'r> Daemon<'r> {
    /// Gets all that is needed, and then begins to read; everything that stands in the way is told.
    pub(super) fn begin(start: Start<'r>) -> Result<Self, Vec<String>> {
        let Start {
            config,
            typed,
            environment,
            activated,
        } = start;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(RUNTIME_THREADS)
            .enable_all()
            .build()
            .map_err(one)?;
        let shared = Shared::new(&config);
        let has_streams = config.inputs.contains(&Input::Stdin)
            || !config.listen.addresses.is_empty()
            || !activated.is_empty()
            || !streams(&config.inputs).is_empty();
        let Resources {
            opened,
            listeners,
            endpoint,
            target,
        } = Resources::get(&config, activated, &runtime, &shared.queue)?;

        let (mut engine, declaration, saving, files) = shared.engine(&config, opened, has_streams);
        shared.start_writer(target).map_err(one)?;
        if let Err(error) = engine.announce_declaration(declaration) {
            engine.outcome.note_output_error(&error);
        }

        let (sender, receiver): (_, Receiver<Message>) = channel(CHANNEL_MESSAGES);
        let entered = runtime.enter();
        let serve = |listeners| shared.serve(listeners, sender.clone());
        let listening = listeners.map(serve).transpose().map_err(one)?;
        let beat = shared.start_telling(&runtime, endpoint, saving.as_ref());
        let heard = shared.start_hearing(&runtime, config.drain, &sender);
        heard.map_err(one)?;
        drop(entered);

        let mut daemon = Daemon {
            messages: sender.downgrade(),
            readers: Readers {
                follower: None,
                listening,
                follow_progress: shared.follow_progress,
                listen_progress: shared.listen_progress,
            },
            config,
            typed,
            environment,
            runtime,
            engine,
            saving,
            queue: shared.queue,
            receiver,
            stop: shared.stop,
            stop_reading: shared.stop_reading,
            stop_telling: shared.stop_telling,
            tracker: shared.tracker,
            health: shared.health,
            notifier: shared.notifier,
            beat,
        };
        daemon.read(sender, files).map_err(one)?;
        daemon.tell_manager(&shared.metrics);
        Ok(daemon)
    }

    /// Begins to read what was named.
    fn read(&mut self, sender: Sender<Message>, saved: Vec<SavedFile>) -> io::Result<()> {
        let inputs = &self.config.inputs;
        let stdin = inputs.iter().filter(|input| **input == Input::Stdin);
        let mut origins: Vec<Origin> = stdin.map(|_| Origin::Stdin).collect();
        origins.extend(streams(inputs).into_iter().map(Origin::File));
        for origin in origins {
            // Each with a thread of its own, as any of them may block.
            read_all(vec![origin], Archives::Refuse, None, sender.clone());
        }
        let paths = paths(inputs);
        if !paths.is_empty() {
            self.follow(paths, sender, saved)?;
        }
        Ok(())
    }

    /// Starts the thread that follows these files.
    pub(super) fn follow(
        &mut self,
        inputs: Vec<Input>,
        sender: Sender<Message>,
        saved: Vec<SavedFile>,
    ) -> io::Result<()> {
        let options = FollowOptions {
            inputs,
            from_end: self.config.from_end,
            keyed: self.config.trace_key.is_some(),
            spans_lines: matches!(self.config.protocol, Protocol::AgUi { .. }),
            saved,
        };
        let progress = Arc::clone(&self.readers.follow_progress);
        self.readers.follower = Some(follow(options, sender, progress)?);
        Ok(())
    }

    /// Says that everything is bound and loaded, and from now on that it is alive.
    fn tell_manager(&self, metrics: &Arc<Metrics>) {
        if self.readers.follower.is_some() {
            // What is moved away from now on is not lost.
            self.readers.follow_progress.wait_begun(FIRST_LOOK);
        }
        self.health.set_phase(Phase::Ready);
        self.notifier.ready();
        let watchdog = notify::watchdog(|name| std::env::var_os(name), std::process::id());
        let (notifier, health) = (Arc::clone(&self.notifier), Arc::clone(&self.health));
        let (metrics, stop) = (Arc::clone(metrics), self.stop_telling.clone());
        self.runtime.spawn(async move {
            let status = |now| metrics::status::status(&metrics, &health, now);
            notifier.keep_up(watchdog, &health, status, stop).await;
        });
    }
}

fn one(error: io::Error) -> Vec<String> {
    vec![error.to_string()]
}

fn target(config: &Config) -> io::Result<Target> {
    Ok(match &config.format {
        Format::Journald(path) => Target::Journal(JournalSocket::new(path)?),
        Format::Json | Format::Text => Target::Stream(Stream::stdout()?),
    })
}
