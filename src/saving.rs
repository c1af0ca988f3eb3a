//! Checkpoints of a run: when they are taken, and of what.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::checkpoint::{
    CheckpointWriter, Freshness, Identity, Keeper, Loaded, Saved, State, Store,
};
use crate::config::{Config, Protocol};
use crate::emit::queue::OutputQueue;
use crate::engine::{Engine, News};

/// How long the engine waits for a checkpoint that must come before what is found next. Where the
/// disk or the reader of the output takes longer, it goes on, and a crash may give some findings a
/// second time with other ids.
const SETTLE: Duration = Duration::from_secs(1);

/// What takes checkpoints, and the one that is there.
pub(crate) type Opened = (Saving, Option<Saved<State>>);

/// Takes checkpoints of one run.
pub(crate) struct Saving {
    keeper: Keeper,
    /// Where output waits, unless it is written at once.
    queue: Option<Arc<OutputQueue>>,
}

impl Saving {
    /// Opens the state directory, if there is to be one, and gives what it holds. Checkpoints become
    /// durable behind what the queue has written.
    pub(crate) fn open(
        config: &Config,
        queue: &Arc<OutputQueue>,
    ) -> Result<Option<Opened>, Vec<String>> {
        let Some(dir) = &config.state_dir else {
            return Ok(None);
        };
        let (waited_for, queue) = (Arc::clone(queue), Arc::clone(queue));
        let wait = move |position, deadline| waited_for.wait_written(position, deadline).is_ok();
        Saving::open_in(dir, config, Some(queue), wait).map(Some)
    }

    /// The same for a run whose output is written at once.
    pub(crate) fn open_direct(config: &Config) -> Result<Option<Opened>, Vec<String>> {
        let Some(dir) = &config.state_dir else {
            return Ok(None);
        };
        Saving::open_in(dir, config, None, |_, _| true).map(Some)
    }

    fn open_in(
        dir: &Path,
        config: &Config,
        queue: Option<Arc<OutputQueue>>,
        wait: impl Fn(u64, Instant) -> bool + Send + 'static,
    ) -> Result<Opened, Vec<String>> {
        let opened = Store::open::<State>(dir, identity(config), SystemTime::now());
        let (store, Loaded { saved, problems }) =
            opened.map_err(|error| vec![error.to_string()])?;
        for problem in problems {
            tracing::warn!("{problem}");
        }
        let keeper = Keeper::start(store, Instant::now(), wait);
        let keeper = keeper.map_err(|error: io::Error| vec![error.to_string()])?;
        Ok((Saving { keeper, queue }, saved))
    }

    /// How old what is on disk is, for whoever asks.
    pub(crate) fn freshness(&self) -> Freshness {
        self.keeper.freshness()
    }

    /// Takes a checkpoint where one is due.
    pub(crate) fn tick(&mut self, engine: &mut Engine) {
        if self.keeper.is_due(Instant::now(), engine.has_changed()) {
            self.take(engine);
        }
    }

    /// Sees to it that a process that comes after a crash knows what was opened or ended: files that
    /// nobody knows could be moved away before the next checkpoint, and would be lost. `is_whole` says
    /// that no more of it is known to come.
    pub(crate) fn note_files(&mut self, engine: &mut Engine, is_whole: bool) {
        let position = self.position();
        match engine.take_news() {
            News::None => {}
            // What is found in a new generation has ids of that generation, and only to one that
            // knows the one before.
            News::Generation => {
                let deadline = Instant::now() + SETTLE;
                let save = |writer: &mut CheckpointWriter| engine.save(writer);
                self.keeper.settle(deadline, position, save);
            }
            News::File if is_whole && self.keeper.is_due_if_urgent(Instant::now()) => {
                self.take(engine);
            }
            News::File => engine.keep_news(),
        }
    }

    fn take(&mut self, engine: &mut Engine) {
        let position = self.position();
        self.keeper.take(position, |writer| engine.save(writer));
    }

    /// Takes the last one. Whether it is on disk by the deadline, behind all that was found.
    pub(crate) fn finish(self, engine: &mut Engine, deadline: Instant) -> bool {
        let position = self.position();
        self.keeper
            .finish(deadline, position, |writer| engine.save(writer))
    }

    fn position(&self) -> u64 {
        self.queue.as_ref().map_or(0, |queue| queue.position())
    }
}

/// What has to be the same for a checkpoint to be of use.
fn identity(config: &Config) -> Identity {
    let protocol = match config.protocol {
        Protocol::A3 => "a3",
        Protocol::AgUi { .. } => "ag-ui",
    };
    Identity {
        protocol: protocol.to_owned(),
        trace_key: config.trace_key.as_ref().map(ToString::to_string),
    }
}
