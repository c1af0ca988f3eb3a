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

mod reload;
mod start;

use std::io;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, WeakSender};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cli::RunOptions;
use crate::config::{Config, Environment, Input};
use crate::emit::queue::OutputQueue;
use crate::emit::stop::Stop;
use crate::engine::{Engine, Flow};
use crate::exit::Outcome;
use crate::health::{Beat, Health};
use crate::journal::{NO_HURRY, tell_unwritten};
use crate::notify::Notifier;
use crate::saving::Saving;
use crate::source::Message;
use crate::source::follow::{FollowProgress, Follower, streams};
use crate::source::listen::{Activated, Fault, ListenProgress, Listening};

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
}

/// What stands in the way of listening, in words.
fn told(faults: Vec<Fault>) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
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
