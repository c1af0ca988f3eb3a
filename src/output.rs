//! Where the engine's reports go.

use std::io::{self, Write};
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Instant, SystemTime};

use tracecheck::Report;
use tracecheck::event::{SourceState, Summary};

use crate::config::{Config, Format, Protocol};
use crate::emit::queue::OutputQueue;
use crate::emit::{self, Emitter, Terms};
use crate::progress::Progress;

/// Most that is handed on together to another thread: enough that the handing on does not count.
const BATCH_REPORTS: usize = 256;

/// Takes reports and says what the program does, clear of the progress bar. After an error
/// nothing more is written.
pub(crate) struct Output {
    target: Target,
    progress: Progress,
    error: Option<io::Error>,
    /// What has come together and is to be written.
    pub(crate) reports: Vec<Report>,
}

enum Target {
    /// They are written here.
    Emitter(Box<Emitter<Box<dyn Write>>>),
    /// Another thread writes them, in batches.
    Thread {
        batch: Vec<Told>,
        batches: SyncSender<Vec<Told>>,
    },
}

/// What is told of a run, on its way to the thread that writes it.
#[derive(Debug)]
pub(crate) enum Told {
    /// A finding or the end of a trace.
    Report(Report),
    /// What became of a source.
    Source {
        state: SourceState,
        source: String,
        message: String,
    },
}

impl Output {
    /// Writes to `out` as the configuration says; not to the journal.
    pub(crate) fn new(config: &Config, out: Box<dyn Write>, progress: Progress) -> Output {
        let emitter = Emitter::new(out, format(config), config.trace_events, SystemTime::now);
        Output::through(config, emitter, progress)
    }

    /// Writes through a queue.
    pub(crate) fn queued(config: &Config, queue: Arc<OutputQueue>, progress: Progress) -> Output {
        let (trace_events, clock) = (config.trace_events, SystemTime::now);
        let emitter = match &config.format {
            Format::Journald(_) => Emitter::journal(queue, trace_events, clock),
            _ => Emitter::queued(queue, format(config), trace_events, clock),
        };
        Output::through(config, emitter, progress)
    }

    fn through(config: &Config, emitter: Emitter<Box<dyn Write>>, progress: Progress) -> Output {
        let terms = match config.protocol {
            Protocol::A3 => Terms::Traces,
            Protocol::AgUi { .. } => Terms::Runs,
        };
        let target = Target::Emitter(Box::new(emitter.in_terms_of(terms)));
        Output::to(target, progress)
    }

    /// Leaves the writing to whoever receives the batches.
    pub(crate) fn to_thread(batches: SyncSender<Vec<Told>>, progress: Progress) -> Output {
        let batch = Vec::new();
        Output::to(Target::Thread { batch, batches }, progress)
    }

    fn to(target: Target, progress: Progress) -> Output {
        Output {
            target,
            progress,
            error: None,
            reports: Vec::new(),
        }
    }

    /// Writes the reports that have come together.
    #[inline]
    pub(crate) fn write_reports(&mut self) {
        if !self.reports.is_empty() {
            self.write_some_reports();
        }
    }

    fn write_some_reports(&mut self) {
        let mut reports = mem::take(&mut self.reports);
        for report in reports.drain(..) {
            if self.error.is_none() {
                self.error = self.tell(Told::Report(report)).err();
            }
        }
        // Its room serves the next ones.
        self.reports = reports;
    }

    /// Writes what a verifying thread has to tell.
    pub(crate) fn tell(&mut self, told: Told) -> io::Result<()> {
        match &mut self.target {
            Target::Emitter(emitter) => match told {
                Told::Report(report) => emitter.report(&report),
                Told::Source {
                    state,
                    source,
                    message,
                } => emitter.source_state(state, &source, &message),
            },
            Target::Thread { batch, batches } => {
                batch.push(told);
                match batch.len() < BATCH_REPORTS {
                    true => Ok(()),
                    false => send(batch, batches),
                }
            }
        }
    }

    pub(crate) fn source_state(
        &mut self,
        state: SourceState,
        source: &str,
        message: &str,
    ) -> io::Result<()> {
        self.result()?;
        self.tell(Told::Source {
            state,
            source: source.to_owned(),
            message: message.to_owned(),
        })
    }

    /// Writes the summary, which is for whoever writes.
    pub(crate) fn summary(&mut self, summary: &Summary) -> io::Result<()> {
        self.result()?;
        self.progress.finish();
        match &mut self.target {
            Target::Emitter(emitter) => emitter.summary(summary),
            Target::Thread { .. } => Ok(()),
        }
    }

    /// Hands on what was written.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.result()?;
        match &mut self.target {
            Target::Emitter(emitter) => emitter.flush(),
            // What is handed on late is written late, which nobody sees in a run to the end.
            Target::Thread { .. } => Ok(()),
        }
    }

    /// Hands on the rest, where another thread writes.
    pub(crate) fn hand_on(&mut self) -> io::Result<()> {
        self.result()?;
        match &mut self.target {
            Target::Emitter(_) => Ok(()),
            Target::Thread { batch, batches } => send(batch, batches),
        }
    }

    /// Says when that was read of which is told from now on.
    pub(crate) fn set_arrived(&mut self, arrived: Option<Instant>) {
        if let Target::Emitter(emitter) = &mut self.target {
            emitter.set_arrived(arrived);
        }
    }

    /// Tells ends of traces in good order too, or no longer.
    pub(crate) fn set_trace_events(&mut self, trace_events: bool) {
        if let Target::Emitter(emitter) = &mut self.target {
            emitter.set_trace_events(trace_events);
        }
    }

    /// Tells how much more was read.
    pub(crate) fn advance(&self, read: u64) {
        self.progress.advance(read);
    }

    /// Writes a diagnostic.
    pub(crate) fn say(&self, diagnostic: impl FnOnce()) {
        self.progress.suspend(diagnostic);
    }

    fn result(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }
}

fn format(config: &Config) -> emit::Format {
    match &config.format {
        Format::Text => emit::Format::Text {
            color: config.color,
            quiet: config.quiet,
        },
        Format::Json | Format::Journald(_) => emit::Format::Json,
    }
}

fn send(batch: &mut Vec<Told>, batches: &SyncSender<Vec<Told>>) -> io::Result<()> {
    // Whoever writes is gone only where it cannot write any more, and says so itself.
    let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
    batches.send(mem::take(batch)).map_err(gone)
}
