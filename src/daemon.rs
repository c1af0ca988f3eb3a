//! A run that follows: readers, the engine, the writer and what watches them, put together. It wires
//! and decides nothing.
//!
//! ```text
//! files, sockets, standard input ──> one channel ──> engine ──> one queue ──> writer
//!        (threads, tasks)              bounded     this thread   bounded      (thread)
//! ```
//!
//! Full queues hold back whoever fills them, so that a slow reader of the output slows down the
//! reading of traces and nothing is dropped. A stop closes the channel; what is in it is verified,
//! what was found is written, and the last checkpoint is taken behind it.

use std::io;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, Sender, WeakSender, channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::checking::Checker;
use crate::cli::RunOptions;
use crate::config::{Config, Environment, Format, Input, Protocol};
use crate::emit::journal_socket::JournalSocket;
use crate::emit::queue::OutputQueue;
use crate::emit::stop::Stop;
use crate::emit::writer::{self, Stream, Target};
use crate::engine::{Engine, Flow};
use crate::exit::Outcome;
use crate::health::{Beat, Health, Phase};
use crate::journal::{NO_HURRY, tell_unwritten};
use crate::metrics::{self, Metrics};
use crate::notify::{self, Notifier};
use crate::output::Output;
use crate::progress::Progress;
use crate::saving::Saving;
use crate::signals;
use crate::source::follow::{Command, FollowOptions, FollowProgress, Follower, follow, streams};
use crate::source::listen::{Activated, Fault, ListenProgress, Listeners, Listening};
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

/// What follows where the end could not be saved.
const OLD_CHECKPOINT: &str =
    "the last checkpoint is from before the end; some findings may come again";

/// What a run needs before it begins.
#[derive(Debug)]
pub(crate) struct Start<'r> {
    pub(crate) config: Arc<Config>,
    /// What was typed, for when the configuration is read again.
    pub(crate) typed: &'r RunOptions,
    pub(crate) environment: &'r Environment,
    /// What systemd passed on.
    pub(crate) activated: Activated,
}

/// Follows until there is nothing to follow any more, or somebody ends it.
pub(crate) fn run(start: Start<'_>) -> Outcome {
    match Daemon::begin(start) {
        Ok(daemon) => daemon.work(),
        Err(problems) => {
            for problem in problems {
                tracing::error!("{problem}");
            }
            Outcome {
                not_begun: true,
                ..Outcome::default()
            }
        }
    }
}

struct Daemon<'r> {
    config: Arc<Config>,
    typed: &'r RunOptions,
    environment: &'r Environment,
    runtime: Runtime,
    engine: Engine,
    saving: Option<Saving>,
    queue: Arc<OutputQueue>,
    messages: WeakSender<Message>,
    receiver: Receiver<Message>,
    readers: Readers,
    stop: Stop,
    /// Ends what takes from the world outside, and what tells of us, which goes on for longer.
    stop_reading: CancellationToken,
    stop_telling: CancellationToken,
    tracker: TaskTracker,
    health: Arc<Health>,
    notifier: Arc<Notifier>,
    beat: Arc<Beat>,
}

/// What reads files and sockets.
struct Readers {
    follower: Option<Follower>,
    listening: Option<Listening>,
    follow_progress: Arc<FollowProgress>,
    listen_progress: Arc<ListenProgress>,
}

impl<'r> Daemon<'r> {
    /// Gets all that is needed, and then begins to read; everything that stands in the way is told.
    fn begin(start: Start<'r>) -> Result<Self, Vec<String>> {
        let Start {
            config,
            typed,
            environment,
            activated,
        } = start;
        let one = |error: io::Error| vec![error.to_string()];
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(RUNTIME_THREADS)
            .enable_all()
            .build()
            .map_err(one)?;
        let now = Instant::now();
        let metrics = Arc::new(Metrics::new(config.state_dir.is_some(), now));
        let health = Arc::new(Health::new(now));
        let stop = Stop::default();
        let queue_beat = Arc::new(AtomicU64::new(0));
        let queue = Arc::new(OutputQueue::new(stop.clone(), Arc::clone(&queue_beat)));

        let reads_stdin = config.inputs.contains(&Input::Stdin);
        let has_streams = reads_stdin
            || !config.listen.addresses.is_empty()
            || !activated.is_empty()
            || !streams(&config.inputs).is_empty();
        let opened = Saving::open(&config, &queue)?;
        let listeners = bind(&config, activated)?;
        let endpoint = match &config.metrics {
            Some(address) => {
                let bound = runtime.block_on(metrics::http::bind(address));
                Some(bound.map_err(|error| vec![format!("--metrics {address}: {error}")])?)
            }
            None => None,
        };
        let target = target(&config).map_err(one)?;

        let (checker, declaration) = Checker::new(&config);
        let output = Output::queued(&config, Arc::clone(&queue), Progress::new(false, None));
        let mut engine = Engine::new(Arc::clone(&config), checker, output);
        engine.measure(Arc::clone(&metrics));
        let (saving, saved_files) = match opened {
            Some((saving, saved)) => {
                let files = engine.restore(saved, SystemTime::now());
                engine.lose_streams_in_a_crash(has_streams);
                (Some(saving), files)
            }
            None => (None, Vec::new()),
        };
        let written = Arc::clone(&metrics);
        writer::start(Arc::clone(&queue), target, move |took, events| {
            let now = Instant::now();
            written.output.record(now - took, now, events.into());
        })
        .map_err(one)?;
        if let Err(error) = engine.announce_declaration(declaration) {
            engine.outcome.note_output_error(&error);
        }

        let (sender, receiver) = channel(CHANNEL_MESSAGES);
        let (stop_reading, stop_telling) = (CancellationToken::new(), CancellationToken::new());
        let tracker = TaskTracker::new();
        let notifier = Arc::new(Notifier::from_env(|name| std::env::var_os(name)));
        let follow_progress = Arc::new(FollowProgress::new());
        let listen_progress = Arc::new(ListenProgress::default());
        let _guard = runtime.enter();
        let listening = listeners
            .map(|listeners| {
                let progress = Arc::clone(&listen_progress);
                let stop = stop_reading.clone();
                listeners.serve(sender.clone(), stop, progress, tracker.clone())
            })
            .transpose()
            .map_err(one)?;
        if let Some(endpoint) = endpoint {
            let (metrics, health) = (Arc::clone(&metrics), Arc::clone(&health));
            runtime.spawn(metrics::http::serve(
                endpoint,
                metrics,
                health,
                stop_telling.clone(),
            ));
        }
        let beat = health.part("the engine");
        let watch = Watch {
            engine: Arc::clone(&beat),
            health: Arc::clone(&health),
            metrics: Arc::clone(&metrics),
            queue: Arc::clone(&queue),
            queue_beat,
            follow: Arc::clone(&follow_progress),
            listen: Arc::clone(&listen_progress),
            checkpoints: saving.as_ref().map(Saving::freshness),
        };
        watch.start(&runtime, stop_telling.clone());
        signals::follow(
            &runtime,
            signals::Hands {
                messages: sender.downgrade(),
                stop: stop.clone(),
                drain: config.drain,
                stop_reading: stop_reading.clone(),
                notifier: Arc::clone(&notifier),
                health: Arc::clone(&health),
            },
        )
        .map_err(one)?;
        ticks::start(sender.downgrade());
        drop(_guard);
        let mut daemon = Daemon {
            messages: sender.downgrade(),
            readers: Readers {
                follower: None,
                listening,
                follow_progress,
                listen_progress,
            },
            config,
            typed,
            environment,
            runtime,
            engine,
            saving,
            queue,
            receiver,
            stop,
            stop_reading,
            stop_telling,
            tracker,
            health,
            notifier,
            beat,
        };
        daemon.read(sender, saved_files).map_err(one)?;
        daemon.tell_manager(&metrics);
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
        if !paths(inputs).is_empty() {
            self.follow(sender, saved)?;
        }
        Ok(())
    }

    fn follow(&mut self, sender: Sender<Message>, saved: Vec<SavedFile>) -> io::Result<()> {
        let options = FollowOptions {
            inputs: paths(&self.config.inputs),
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
        self.wait_for_files();
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

    /// Waits until the files that are there are open: what is moved away from now on is not lost.
    fn wait_for_files(&self) {
        let begun = Instant::now();
        let progress = &self.readers.follow_progress;
        let is_waited_for = || self.readers.follower.is_some() && !progress.has_begun();
        while is_waited_for() && begun.elapsed() < FIRST_LOOK {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn work(mut self) -> Outcome {
        let verified = self.verify();
        let finished = verified.and_then(|()| self.finish());
        if let Err(error) = finished {
            if error.kind() == io::ErrorKind::TimedOut && self.saving.is_some() {
                tracing::warn!("{OLD_CHECKPOINT}");
            }
            self.engine.outcome.note_output_error(&error);
        }
        self.end();
        self.engine.outcome.failing_findings = self.engine.has_failing_findings();
        let outcome = self.engine.outcome;
        // The process ends here, and nobody should wait for states to be freed one by one.
        mem::forget(self.engine);
        self.runtime.shutdown_background();
        outcome
    }

    /// Verifies what comes until nothing more can.
    fn verify(&mut self) -> io::Result<()> {
        loop {
            self.beat.rest();
            let Some(message) = self.receiver.blocking_recv() else {
                return Ok(());
            };
            self.beat.beat(Instant::now());
            let is_tick = matches!(message, Message::Tick);
            match self.engine.handle(message)? {
                Flow::On => {}
                // What was read already is still verified; nothing more gets in.
                Flow::Stop => self.receiver.close(),
                Flow::Reload => self.reload()?,
            }
            if let Some(saving) = &mut self.saving {
                // What is opened together is best saved together.
                let is_whole = self.receiver.is_empty() || is_tick;
                saving.note_files(&mut self.engine, is_whole);
                if is_tick {
                    saving.tick(&mut self.engine);
                }
            }
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.engine.finish()?;
        // What is still open on streams is known now.
        self.engine.lose_streams_in_a_crash(false);
        let deadline = self.deadline();
        if let Some(saving) = self.saving.take()
            && !saving.finish(&mut self.engine, deadline)
        {
            tracing::warn!("{OLD_CHECKPOINT}");
        }
        Ok(())
    }

    /// Lets the writer write what is left, and the sockets be removed.
    fn end(&mut self) {
        self.stop_reading.cancel();
        let deadline = self.deadline();
        if self.stop.deadline().is_none() {
            // Nobody is in a hurry, unless somebody is before all is written.
            let _ = self.queue.wait_written(self.queue.position(), deadline);
        }
        let left = self.queue.close(self.deadline());
        if !self.engine.outcome.output_closed {
            tell_unwritten(left, self.config.drain);
        }
        self.readers.listening = None;
        self.tracker.close();
        let tracker = self.tracker.clone();
        let gone = async move {
            let _ = tokio::time::timeout(Duration::from_secs(1), tracker.wait()).await;
        };
        self.runtime.block_on(gone);
        self.stop_telling.cancel();
    }

    /// By when everything has to be done.
    fn deadline(&self) -> Instant {
        let stop = self.stop.deadline();
        stop.unwrap_or_else(|| Instant::now() + NO_HURRY)
    }

    /// Goes over to the configuration as it is now, whole or not at all.
    fn reload(&mut self) -> io::Result<()> {
        self.notifier.reloading();
        match self.try_reload() {
            Ok(config) => {
                self.config = Arc::clone(&config);
                self.engine.reconfigure(config)?;
                tracing::info!("the configuration was read again");
            }
            Err(problems) => {
                for problem in problems {
                    tracing::error!("nothing was reloaded: {problem}");
                }
            }
        }
        self.notifier.ready();
        Ok(())
    }

    fn try_reload(&mut self) -> Result<Arc<Config>, Vec<String>> {
        let config = Config::new(self.typed.clone(), self.environment);
        let config = Arc::new(config.map_err(|error| error.problems())?);
        let fixed = self.config.what_cannot_change(&config);
        if !fixed.is_empty() {
            let problem = |name| format!("{name} cannot change while it runs");
            return Err(fixed.into_iter().map(problem).collect());
        }
        self.reload_sockets(&config)?;
        match &self.readers.follower {
            Some(follower) => {
                follower.tell(Command::Inputs(paths(&config.inputs)));
                follower.tell(Command::Reopen);
            }
            None if paths(&config.inputs).is_empty() => {}
            None => {
                let before = mem::replace(&mut self.config, Arc::clone(&config));
                let sender = self.messages.upgrade();
                let sender = sender.ok_or_else(|| vec!["the run is ending".to_owned()])?;
                if let Err(error) = self.follow(sender, Vec::new()) {
                    self.config = before;
                    return Err(vec![error.to_string()]);
                }
            }
        }
        Ok(config)
    }

    fn reload_sockets(&mut self, config: &Config) -> Result<(), Vec<String>> {
        let options = config.listen.clone();
        if let Some(listening) = &mut self.readers.listening {
            let reloaded = self.runtime.block_on(listening.reload(options));
            return reloaded.map_err(told);
        }
        if options.addresses.is_empty() {
            return Ok(());
        }
        let listeners = Listeners::bind(options, Activated::default()).map_err(told)?;
        let sender = self.messages.upgrade();
        let sender = sender.ok_or_else(|| vec!["the run is ending".to_owned()])?;
        let progress = Arc::clone(&self.readers.listen_progress);
        let (stop, tracker) = (self.stop_reading.clone(), self.tracker.clone());
        let _guard = self.runtime.enter();
        let listening = listeners.serve(sender, stop, progress, tracker);
        self.readers.listening = Some(listening.map_err(|error| vec![error.to_string()])?);
        Ok(())
    }
}

/// Binds what is to be listened on, if anything is.
fn bind(config: &Config, activated: Activated) -> Result<Option<Listeners>, Vec<String>> {
    if config.listen.addresses.is_empty() && activated.is_empty() {
        return Ok(None);
    }
    let bound = Listeners::bind(config.listen.clone(), activated);
    bound.map(Some).map_err(told)
}

/// What stands in the way of listening, in words.
fn told(faults: Vec<Fault>) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}

fn target(config: &Config) -> io::Result<Target> {
    Ok(match &config.format {
        Format::Journald(path) => Target::Journal(JournalSocket::new(path)?),
        Format::Json | Format::Text => Target::Stream(Stream::stdout()?),
    })
}

/// What the following thread is for.
fn paths(inputs: &[Input]) -> Vec<Input> {
    let others: Vec<PathBuf> = streams(inputs);
    let is_ours = |input: &&Input| match input {
        Input::Stdin => false,
        Input::Path(path) => !others.contains(path),
    };
    inputs.iter().filter(is_ours).cloned().collect()
}
