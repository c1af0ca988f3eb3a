//! The journal as the output of a run to the end: another thread writes to it, as it may be away
//! for a while.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{Config, Format};
use crate::emit::journal_socket::JournalSocket;
use crate::emit::queue::{OutputQueue, Remaining};
use crate::emit::stop::Stop;
use crate::emit::writer::{self, Target};

/// How long the output may take where nobody said that the run has to end: for ever, by any measure.
pub(crate) const NO_HURRY: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Where entries wait for the journal.
pub(crate) struct Journal {
    pub(crate) queue: Arc<OutputQueue>,
    stop: Stop,
    drain: Duration,
}

impl Journal {
    /// Begins to write, if that is where findings are to go.
    pub(crate) fn open(config: &Config) -> io::Result<Option<Journal>> {
        let Format::Journald(path) = &config.format else {
            return Ok(None);
        };
        let stop = Stop::default();
        let queue = Arc::new(OutputQueue::new(stop.clone(), Arc::default()));
        let target = Target::Journal(JournalSocket::new(path)?);
        writer::start(Arc::clone(&queue), target, |_, _| {})?;
        Ok(Some(Journal {
            queue,
            stop,
            drain: config.drain,
        }))
    }

    /// What tells it that the run has to end soon.
    pub(crate) fn hurry(&self) -> impl FnOnce() + Send + 'static {
        let (stop, drain) = (self.stop.clone(), self.drain);
        move || stop.end_by(Instant::now() + drain)
    }

    /// Waits until all is written, or there is no more time for it.
    pub(crate) fn wait(&self) -> io::Result<()> {
        let deadline = Instant::now() + NO_HURRY;
        self.queue.wait_written(self.queue.position(), deadline)
    }

    /// The same, and says what was cut off.
    pub(crate) fn finish(self) -> io::Result<()> {
        let written = self.wait();
        let is_late = self.queue.check().is_ok();
        let left = self.queue.close(Instant::now());
        if is_late {
            tell_unwritten(left, self.drain);
        }
        written
    }
}

/// Says what was not written by the end of the time for a stop.
pub(crate) fn tell_unwritten(left: Remaining, drain: Duration) {
    if left != Remaining::default() {
        tracing::error!(
            "{} events ({} bytes) were not written: nobody took them in time (--drain {})",
            left.events,
            left.bytes,
            humantime::format_duration(drain),
        );
    }
}
